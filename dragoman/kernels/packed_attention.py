"""Attention over sentences that lie end to end, without padding, and its gradient. Knows tensors
only.

Training on a GPU is quick where no work is done for padding and where every kernel but attention
sees one long row of tokens. A sentence is short, so one program holds a whole head of it: scores,
softmax and all five products of the gradient need no loop and nothing kept from the forward pass
but its input. Where there is no Triton, or a sentence is too long, the same is done in torch, on
padded rows.

B sentences, N queries and M keys of all of them, H heads, E width of a head, D = H * E.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.library import custom_op

try:
    import triton
    import triton.language as tl
except ImportError:  # no GPU, or a torch without it
    triton = None

LONGEST = 128  # tokens of a sentence that fit into one program
HAS_TRITON = triton is not None
_WARPS = {16: 1, 32: 2, 64: 4, 128: 4}  # for each block of tokens, as measured on an H200


class Segments(NamedTuple):
    """Which keys a query may see: sentence i has the queries from queries[i] up to queries[i +
    1], and the keys likewise."""

    queries: Tensor  # (B + 1), int32
    keys: Tensor  # (B + 1), int32
    longest: int  # at least the tokens of any sentence on either side

    def places(self, count: int) -> Tensor:
        """Where in its sentence each of `count` queries stands."""
        every = torch.arange(count, device=self.queries.device, dtype=torch.int32)
        return every - self.queries[torch.searchsorted(self.queries, every, right=True) - 1]


def attend_to_own(joint: Tensor, segments: Segments, heads: int, causal: bool) -> Tensor:
    """joint (N, 3 * D): query, key and value side by side -> (N, D)."""
    found: Tensor = _own(joint, segments.queries, segments.longest, heads, causal)
    return found


def attend_to_memory(query: Tensor, both: Tensor, segments: Segments, heads: int) -> Tensor:
    """query (N, D), both (M, 2 * D): key and value side by side -> (N, D)."""
    found: Tensor = _memory(query, both, segments.queries, segments.keys, segments.longest, heads)
    return found


@custom_op("dragoman::attend_to_own", mutates_args=())
def _own(joint: Tensor, starts: Tensor, longest: int, heads: int, causal: bool) -> Tensor:
    width = joint.size(1) // 3
    return _forward(
        joint[:, :width], joint[:, width:], Segments(starts, starts, longest), heads, causal
    )


@custom_op("dragoman::attend_to_own_backward", mutates_args=())
def _own_backward(
    gradient: Tensor, joint: Tensor, starts: Tensor, longest: int, heads: int, causal: bool
) -> Tensor:
    width, out = joint.size(1) // 3, torch.empty_like(joint)
    segments = Segments(starts, starts, longest)
    _backward(
        gradient,
        joint[:, :width],
        joint[:, width:],
        out[:, :width],
        out[:, width:],
        segments,
        heads,
        causal,
    )
    return out


@custom_op("dragoman::attend_to_memory", mutates_args=())
def _memory(
    query: Tensor, both: Tensor, queries: Tensor, keys: Tensor, longest: int, heads: int
) -> Tensor:
    return _forward(query, both, Segments(queries, keys, longest), heads, False)


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
    to_query, to_both = torch.empty_like(query), torch.empty_like(both)
    _backward(
        gradient, query, both, to_query, to_both, Segments(queries, keys, longest), heads, False
    )
    return to_query, to_both


# What torch.compile and autograd need to know of the four: the shapes they return, and which of
# them is whose gradient.
_own.register_fake(lambda joint, *_: joint.new_empty(joint.size(0), joint.size(1) // 3))
_own_backward.register_fake(lambda gradient, joint, *_: torch.empty_like(joint))
_memory.register_fake(lambda query, *_: torch.empty_like(query))
_memory_backward.register_fake(
    lambda gradient, query, both, *_: (torch.empty_like(query), torch.empty_like(both))
)


def _keep(ctx, inputs, output) -> None:
    ctx.save_for_backward(*[item for item in inputs if isinstance(item, Tensor)])
    ctx.others = [item for item in inputs if not isinstance(item, Tensor)]


def _own_gradient(ctx, gradient):
    return (
        _own_backward(gradient.contiguous(), *ctx.saved_tensors, *ctx.others),
        None,
        None,
        None,
        None,
    )


def _memory_gradient(ctx, gradient):
    return (
        *_memory_backward(gradient.contiguous(), *ctx.saved_tensors, *ctx.others),
        None,
        None,
        None,
        None,
    )


_own.register_autograd(_own_gradient, setup_context=_keep)
_memory.register_autograd(_memory_gradient, setup_context=_keep)


def _forward(query: Tensor, both: Tensor, segments: Segments, heads: int, causal: bool) -> Tensor:
    out = torch.empty(query.size(0), query.size(1), dtype=query.dtype, device=query.device)
    if not _fits(query, segments, heads):
        weights, _, _, value = _padded(query, both, segments, heads, causal)
        _unpad(weights.to(value.dtype) @ value, segments.queries, out)
        return out
    block, size = _block(segments), query.size(1) // heads
    _attend[(len(segments.queries) - 1, heads)](
        query, both, out, segments.queries, segments.keys, query.stride(0), both.stride(0),
        size**-0.5, heads * size, size, block, causal, _precision(query), num_warps=_WARPS[block],
    )  # fmt: skip
    return out


def _backward(
    gradient: Tensor,
    query: Tensor,
    both: Tensor,
    to_query: Tensor,
    to_both: Tensor,
    segments: Segments,
    heads: int,
    causal: bool,
) -> None:
    """Fills `to_query` and `to_both`, which are laid out as `query` and `both` are."""
    if not _fits(query, segments, heads):
        weights, q, k, v = _padded(query, both, segments, heads, causal)
        g = _pad(gradient, segments.queries, segments.longest, heads)[0]
        to_weights = (g @ v.transpose(-2, -1)).float()
        to_scores = (
            weights
            * (to_weights - (weights * to_weights).sum(-1, keepdim=True))
            * q.size(-1) ** -0.5
        )
        to_scores = to_scores.to(q.dtype)
        _unpad(to_scores @ k, segments.queries, to_query)
        to_keys, to_values = (
            to_scores.transpose(-2, -1) @ q,
            weights.to(q.dtype).transpose(-2, -1) @ g,
        )
        _unpad(torch.cat((to_keys, to_values), dim=1), segments.keys, to_both)
        return
    block, size = _block(segments), query.size(1) // heads
    _attend_backward[(len(segments.queries) - 1, heads)](
        gradient, query, both, to_query, to_both, segments.queries, segments.keys, query.stride(0), both.stride(0),
        size**-0.5, heads * size, size, block, causal, _precision(query), num_warps=_WARPS[block],
    )  # fmt: skip


def has_kernels(device: torch.device, size: int) -> bool:
    """Whether heads of this size are computed by our kernels, sentences up to LONGEST that is."""
    return triton is not None and device.type == "cuda" and size in (16, 32, 64, 128)


def _fits(query: Tensor, segments: Segments, heads: int) -> bool:
    return segments.longest <= LONGEST and has_kernels(query.device, query.size(1) // heads)


def _block(segments: Segments) -> int:
    return max(16, 1 << (segments.longest - 1).bit_length())


def _precision(x: Tensor) -> str:
    return "ieee" if x.dtype == torch.float32 else "tf32"


def _padded(
    query: Tensor, both: Tensor, segments: Segments, heads: int, causal: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weights (B, H, L, L) in float32, and queries, keys and values (B, H, L, E)."""
    q, _ = _pad(query, segments.queries, segments.longest, heads)
    k_v, seen = _pad(both, segments.keys, segments.longest, 2 * heads)
    key, value = k_v.chunk(2, dim=1)
    allowed = seen[:, None, None]
    if causal:
        allowed = (
            allowed
            & torch.ones(
                segments.longest, segments.longest, dtype=torch.bool, device=q.device
            ).tril()
        )
    scores = (q @ key.transpose(-2, -1)).float() * q.size(-1) ** -0.5
    weights = scores.masked_fill(~allowed, torch.finfo(torch.float32).min).softmax(-1)
    return weights, q, key, value


def _pad(x: Tensor, starts: Tensor, longest: int, heads: int) -> tuple[Tensor, Tensor]:
    """Rows of sentences (B, heads, L, E) with zeros behind their end, and where there is a
    token, (B, L)."""
    place = torch.arange(longest, device=x.device) + starts[:-1, None]
    inside = place < starts[1:, None]
    rows = x[place.clamp(max=x.size(0) - 1)] * inside[..., None]
    return rows.unflatten(-1, (heads, -1)).transpose(1, 2), inside


def _unpad(x: Tensor, starts: Tensor, out: Tensor) -> None:
    """The way back: (B, heads, L, E) into the rows of `out`."""
    inside = torch.arange(x.size(2), device=x.device) < (starts[1:] - starts[:-1])[:, None]
    out.copy_(x.transpose(1, 2).flatten(2)[inside])


if triton is not None:

    @triton.jit
    def _weights(
        q, k, own, count, scale, BLOCK: tl.constexpr, CAUSAL: tl.constexpr, PRECISION: tl.constexpr
    ):
        i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None]
        seen = (i < own) & (j < count)
        if CAUSAL:
            seen = seen & (j <= i)
        scores = tl.where(seen, tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale, -1e30)
        weights = tl.where(seen, tl.exp(scores - tl.max(scores, 1)[:, None]), 0.0)
        return weights / tl.maximum(tl.sum(weights, 1), 1e-30)[:, None]

    @triton.jit
    def _attend(
        query, both, out, queries, keys, query_n, both_n, scale, D,
        E: tl.constexpr, BLOCK: tl.constexpr, CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
    ):  # fmt: skip
        b, h = tl.program_id(0), tl.program_id(1)
        first, first_key = tl.load(queries + b).to(tl.int64), tl.load(keys + b).to(tl.int64)
        own, count = tl.load(queries + b + 1) - first, tl.load(keys + b + 1) - first_key
        if own + count == 0:
            return
        row, e = tl.arange(0, BLOCK)[:, None], h * E + tl.arange(0, E)[None]
        q = tl.load(query + (first + row) * query_n + e, row < own, 0.0)
        place = (first_key + row) * both_n + e
        k, v = tl.load(both + place, row < count, 0.0), tl.load(both + place + D, row < count, 0.0)
        weights = _weights(q, k, own, count, scale, BLOCK, CAUSAL, PRECISION)
        found = tl.dot(weights.to(v.dtype), v, input_precision=PRECISION)
        tl.store(out + (first + row) * D + e, found.to(out.dtype.element_ty), row < own)

    @triton.jit
    def _attend_backward(
        gradient, query, both, to_query, to_both, queries, keys, query_n, both_n, scale, D,
        E: tl.constexpr, BLOCK: tl.constexpr, CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
    ):  # fmt: skip
        b, h = tl.program_id(0), tl.program_id(1)
        first, first_key = tl.load(queries + b).to(tl.int64), tl.load(keys + b).to(tl.int64)
        own, count = tl.load(queries + b + 1) - first, tl.load(keys + b + 1) - first_key
        if own + count == 0:
            return
        row, e = tl.arange(0, BLOCK)[:, None], h * E + tl.arange(0, E)[None]
        at, place = (first + row) * query_n + e, (first_key + row) * both_n + e
        q, k = tl.load(query + at, row < own, 0.0), tl.load(both + place, row < count, 0.0)
        weights = _weights(q, k, own, count, scale, BLOCK, CAUSAL, PRECISION)
        g, v = (
            tl.load(gradient + (first + row) * D + e, row < own, 0.0),
            tl.load(both + place + D, row < count, 0.0),
        )
        to_weights = tl.dot(g, tl.trans(v), input_precision=PRECISION)
        to_scores = weights * (to_weights - tl.sum(weights * to_weights, 1)[:, None]) * scale
        to_value = tl.dot(tl.trans(weights.to(g.dtype)), g, input_precision=PRECISION)
        tl.store(to_both + place + D, to_value.to(v.dtype), row < count)
        to_scores = to_scores.to(q.dtype)
        tl.store(
            to_query + at, tl.dot(to_scores, k, input_precision=PRECISION).to(q.dtype), row < own
        )
        tl.store(
            to_both + place,
            tl.dot(tl.trans(to_scores), q, input_precision=PRECISION).to(q.dtype),
            row < count,
        )
