"""Attention over sentences that lie end to end, without padding, and its gradient, as operations
that torch.compile and autograd know. Knows tensors only.

Training on a GPU is quick where no work is done for padding and where every kernel but attention
sees one long row of tokens. packed_triton.py computes it in kernels; where there is no Triton, or a
sentence is too long, its twin packed_padded.py does the same in torch, on padded rows.

B sentences, N queries and M keys of all of them, H heads, E width of a head, D = H * E.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from dragoman.kernels import packed_padded, packed_triton
from dragoman.kernels.jit import has_triton
from dragoman.kernels.packed_segments import Heads, Projected, Segments


def attend_to_own(joint: Tensor, segments: Segments, heads: int, causal: bool) -> Tensor:
    """joint (N, 3 * D): query, key and value side by side -> (N, D)."""
    result: Tensor = _own(joint, segments.queries, segments.longest, heads, causal)
    return result


def attend_to_memory(query: Tensor, both: Tensor, segments: Segments, heads: int) -> Tensor:
    """query (N, D), both (M, 2 * D): key and value side by side -> (N, D)."""
    result: Tensor = _memory(query, both, segments.queries, segments.keys, segments.longest, heads)
    return result


def has_kernels(device: torch.device, size: int) -> bool:
    """Whether heads of this size are computed by kernels, in sentences up to LONGEST."""
    return has_triton(device) and size in packed_triton.SIZES


def _twin(query: Tensor, segments: Segments, heads: Heads) -> ModuleType:
    fits = segments.longest <= packed_triton.LONGEST
    kernels = has_kernels(query.device, heads.size(query))
    return packed_triton if fits and kernels else packed_padded


def _forward(of: Projected, segments: Segments, heads: Heads) -> Tensor:
    twin = _twin(of.query, segments, heads)
    result: Tensor = twin.forward(of, segments, heads)
    return result


def _backward(
    gradient: Tensor,
    of: Projected,
    to: Projected,
    segments: Segments,
    heads: Heads,
) -> None:
    twin = _twin(of.query, segments, heads)
    twin.backward(gradient, of, to, segments, heads)


def _parts(joint: Tensor) -> Projected:
    """Views of query, key and value side by side, (N, 3 * D)."""
    width = joint.size(1) // 3
    return Projected(joint[:, :width], joint[:, width:])


@custom_op("dragoman::attend_to_own", mutates_args=())
def _own(joint: Tensor, starts: Tensor, longest: int, heads: int, causal: bool) -> Tensor:
    segments = Segments(starts, starts, longest)
    return _forward(_parts(joint), segments, Heads(heads, causal))


@custom_op("dragoman::attend_to_own_backward", mutates_args=())
def _own_backward(
    gradient: Tensor,
    joint: Tensor,
    starts: Tensor,
    longest: int,
    heads: int,
    causal: bool,
) -> Tensor:
    out = torch.empty_like(joint)
    segments = Segments(starts, starts, longest)
    _backward(gradient, _parts(joint), _parts(out), segments, Heads(heads, causal))
    return out


@custom_op("dragoman::attend_to_memory", mutates_args=())
def _memory(
    query: Tensor,
    both: Tensor,
    queries: Tensor,
    keys: Tensor,
    longest: int,
    heads: int,
) -> Tensor:
    segments = Segments(queries, keys, longest)
    return _forward(Projected(query, both), segments, Heads(heads, causal=False))


@custom_op("dragoman::attend_to_memory_backward", mutates_args=())
def _memory_backward(
    gradient: Tensor,
    query: Tensor,
    both: Tensor,
    queries: Tensor,
    keys: Tensor,
    longest: int,
    heads: int,
) -> tuple[Tensor, Tensor]:
    of = Projected(query, both)
    to = Projected(torch.empty_like(query), torch.empty_like(both))
    segments = Segments(queries, keys, longest)
    _backward(gradient, of, to, segments, Heads(heads, causal=False))
    return to.query, to.both


# What torch.compile and autograd need to know of the four: the shapes they return, and which of
# them is whose gradient.
@_own.register_fake
def _own_shape(joint, *_):
    return joint.new_empty(joint.size(0), joint.size(1) // 3)


@_own_backward.register_fake
def _own_backward_shape(gradient, joint, *_):
    return torch.empty_like(joint)


@_memory.register_fake
def _memory_shape(query, *_):
    return torch.empty_like(query)


@_memory_backward.register_fake
def _memory_backward_shape(gradient, query, both, *_):
    return torch.empty_like(query), torch.empty_like(both)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    tensors = [item for item in inputs if isinstance(item, Tensor)]
    ctx.save_for_backward(*tensors)
    ctx.others = [item for item in inputs if not isinstance(item, Tensor)]


def _own_gradient(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    to_joint = _own_backward(gradient.contiguous(), *ctx.saved_tensors, *ctx.others)
    return to_joint, None, None, None, None


def _memory_gradient(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    inputs = (*ctx.saved_tensors, *ctx.others)
    to_query, to_both = _memory_backward(gradient.contiguous(), *inputs)
    return to_query, to_both, None, None, None, None


_own.register_autograd(_own_gradient, setup_context=_keep)
_memory.register_autograd(_memory_gradient, setup_context=_keep)
