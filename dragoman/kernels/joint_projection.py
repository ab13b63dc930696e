"""One matrix for queries, keys and values, so that a decoding step has one product for three. A
twin of `MultiHeadAttention.project`; for decoding only. Knows the model's attention."""

from __future__ import annotations

from types import MethodType

import torch
from torch import Tensor, nn

from dragoman.model.attention import MultiHeadAttention
from dragoman.model.transformer import Transformer


def join_projections(model: Transformer) -> None:
    """Join those of every decoder layer's attention to itself; the old matrices stay in place."""
    for layer in model.decoder.layers if model.config.decoder_layers else ():
        attention: MultiHeadAttention = layer.attention  # type: ignore[assignment]
        use_joint(attention, _joint(attention))


def use_joint(attention: MultiHeadAttention, joint: nn.Module) -> None:
    """Let `joint` compute queries, keys and values: (…, D) -> (…, (H + 2 * kv_heads) * E)."""
    attention.joint = joint
    attention.project = MethodType(_project, attention)  # type: ignore[method-assign]


def _project(
    attention: MultiHeadAttention, x: Tensor, memory: Tensor, position: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """`MultiHeadAttention.project` of x, which is its own memory."""
    assert memory is x
    joint: Tensor = attention.joint(x)  # type: ignore[operator]
    parts = attention.n_heads + 2 * attention.kv_heads
    width = joint.size(-1) * attention.n_heads // parts
    return attention.split(joint[..., :width], joint[..., width:], position)


def _joint(attention: MultiHeadAttention) -> nn.Linear:
    query, key_value = attention.query, attention.key_value
    with torch.device("meta"):
        rows = query.out_features + key_value.out_features
        joint = nn.Linear(query.in_features, rows, bias=query.bias is not None)
    weight = torch.cat([query.weight, key_value.weight]).detach()
    joint.weight = nn.Parameter(weight, requires_grad=False)
    if query.bias is not None:
        bias = torch.cat([query.bias, key_value.bias]).detach()
        joint.bias = nn.Parameter(bias, requires_grad=False)
    return joint
