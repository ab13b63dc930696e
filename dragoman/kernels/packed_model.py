"""The Transformer over sentences that lie end to end, without padding, as it is trained on a GPU.
The layers are the model's own, with `attend` in the place of their attention; what is around them
is done here for one long row of tokens.

S source and T target tokens of all sentences together, D d_model.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.kernels.packed_attention import attend_to_memory, attend_to_own
from dragoman.kernels.packed_segments import Segments
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.embeddings import Embeddings
from dragoman.model.sight import Sight
from dragoman.model.transformer import Transformer


class Side(NamedTuple):
    """One side of all pairs: sentence i from starts[i] up to starts[i + 1]."""

    tokens: Tensor  # (S) or (T)
    starts: Tensor  # (sentences + 1), int32


def packed_features(model: Transformer, source: Side, target: Side, longest: int) -> Tensor:
    """`Transformer.features`, (T, D), for a model that `accelerate_training` made packed.

    No sentence of either side has more than `longest` tokens.
    """
    memory = _encode(model, source, longest)
    if torch.is_autocast_enabled(memory.device.type):  # once, rather than in each layer
        memory = memory.to(torch.get_autocast_dtype(memory.device.type))
    own = Segments(target.starts, target.starts, longest)
    across = Segments(target.starts, source.starts, longest)
    x = _embed(model.decoder.embeddings, target.tokens, own)
    for layer in model.decoder.layers:
        x = layer(x, _sight(own), _sight(across, memory))
    return model.decoder.norm(x)


def attend(
    attention: MultiHeadAttention,
    x: Tensor,
    memory: Tensor | None = None,
    segments: Segments | None = None,
    *_: None,
) -> Tensor:
    """`MultiHeadAttention.forward` of x (T, D), with segments in the place of a mask; nothing is
    recorded or kept."""
    assert segments is not None
    if memory is not None:
        query = attention.query(x)
        key_value = attention.key_value(memory)
        heads = attend_to_memory(query, key_value, segments, attention.n_heads)
        return attention.out(heads)
    weight = torch.cat((attention.query.weight, attention.key_value.weight))
    bias = torch.cat((attention.query.bias, attention.key_value.bias))
    joint = F.linear(x, weight, bias)
    return attention.out(attend_to_own(joint, segments, attention.n_heads, attention.causal))


def _encode(model: Transformer, source: Side, longest: int) -> Tensor:
    """The memory (S, D)."""
    embeddings = model.encoder.embeddings
    assert isinstance(embeddings, Embeddings)
    own = Segments(source.starts, source.starts, longest)
    x = _embed(embeddings, source.tokens, own)
    for layer in model.encoder.layers:
        x = layer(x, _sight(own))
    return model.encoder.norm(x)


def _embed(embeddings: Embeddings, tokens: Tensor, segments: Segments) -> Tensor:
    """`Embeddings.forward`, each token at its position in its sentence."""
    assert embeddings.positions is not None
    x = embeddings.tokens(tokens) * embeddings.scale
    rows = embeddings.positions.table[segments.positions(len(x))]
    return embeddings.dropout(embeddings.norm(x + rows.to(x.dtype)))


def _sight(segments: Segments, memory: Tensor | None = None) -> Sight:
    return Sight(memory, segments)  # type: ignore[arg-type]
