"""Where the tokens of an output look in the source. Knows tensors and the model; no text.

B sentences, S source and T target tokens, H heads.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.model.sight import padding_mask
from dragoman.model.transformer import Transformer


def of_pairs(
    model: Transformer,
    source: Tensor,
    target: Tensor,
    lengths: Tensor,
    memory: Tensor | None = None,
) -> Tensor:
    """Return where the tokens of finished pairs look, (B, T, S); `memory` is what the encoder made
    of the source, if that is known.

    The encoder keeps no record of where it looks itself, so that the fastest one will do.
    """
    mask = padding_mask(source, lengths)
    if memory is None:
        memory = model.encoder(source, mask)
    cross: list[Tensor] = []
    model.decoder(target, memory, mask, (None, cross))
    return middle(cross)


def middle(layers: list[Tensor]) -> Tensor:
    """Of each layer's weights (B, H, T, S) the mean (B, T, S) over the heads of those in the
    middle, which align best."""
    count = len(layers)
    edge = count // 4
    chosen = torch.stack(layers[edge : count - edge])
    return chosen.mean((0, 2))
