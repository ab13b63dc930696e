"""How sure a model is of a text that is known already, and where it looked while reading it."""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.model.sight import AttentionWeights
from dragoman.model.transformer import Transformer


@torch.no_grad()
def token_probabilities(
    model: Transformer, memory: Tensor | None, target: Tensor
) -> tuple[Tensor, AttentionWeights]:
    """Return the probability of each target token (B, T) but the first, and where the decoder
    looked before it. `memory` is the encoder's output, None for a decoder alone."""
    weights = AttentionWeights()
    records = (weights.decoder, weights.cross)
    logits = model.logits(model.decoder(target[:, :-1], memory, None, records))  # (B, T-1, V)
    chosen = logits.float().softmax(-1).gather(-1, target[:, 1:, None])
    return chosen[..., 0], weights
