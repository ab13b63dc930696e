"""Attention over sentences that lie end to end, and its gradient, in Triton; the plain twin is
packed_padded.py. Knows tensors only.

A sentence is short, so one program holds a whole head of it: scores, softmax and all five products
of the gradient need no loop, and nothing of the forward pass is kept but its input.

B sentences, N queries and M keys of all of them, H heads, E width of a head, D = H * E.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.kernels.jit import jit, next_power_of_2, precision, tl
from dragoman.kernels.packed_segments import Segments

LONGEST = 128  # tokens of a sentence that fit into one program
SIZES = (16, 32, 64, 128)  # widths of a head
_WARPS = {16: 1, 32: 2, 64: 4, 128: 4}  # for each block of tokens, as measured on an H200


def forward(query: Tensor, both: Tensor, segments: Segments, heads: int, causal: bool) -> Tensor:
    """query (N, D), both (M, 2 * D): keys and values side by side -> (N, D)."""
    out = torch.empty(query.size(0), query.size(1), dtype=query.dtype, device=query.device)
    block = _block(segments)
    size = query.size(1) // heads
    _attend[(len(segments.queries) - 1, heads)](
        query, both, out, segments.queries, segments.keys, query.stride(0), both.stride(0),
        size**-0.5, heads * size,
        E=size, BLOCK=block, CAUSAL=causal, PRECISION=precision(query), num_warps=_WARPS[block],
    )  # fmt: skip
    return out


def backward(
    gradient: Tensor,
    query: Tensor,
    both: Tensor,
    to_query: Tensor,
    to_both: Tensor,
    segments: Segments,
    heads: int,
    causal: bool,
) -> None:
    """Fill `to_query` and `to_both`, which are laid out as `query` and `both` are."""
    block = _block(segments)
    size = query.size(1) // heads
    _attend_backward[(len(segments.queries) - 1, heads)](
        gradient, query, both, to_query, to_both, segments.queries, segments.keys,
        query.stride(0), both.stride(0), size**-0.5, heads * size,
        E=size, BLOCK=block, CAUSAL=causal, PRECISION=precision(query), num_warps=_WARPS[block],
    )  # fmt: skip


def _block(segments: Segments) -> int:
    return max(16, next_power_of_2(segments.longest))


@jit
def _weights(
    q, k, own, count, scale, BLOCK: tl.constexpr, CAUSAL: tl.constexpr, PRECISION: tl.constexpr
):
    """The softmax (BLOCK, BLOCK) of `own` queries over `count` keys, zeros around it."""
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, BLOCK)[None]
    seen = (i < own) & (j < count)
    if CAUSAL:
        seen = seen & (j <= i)
    scores = tl.where(seen, tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale, -1e30)
    weights = tl.where(seen, tl.exp(scores - tl.max(scores, 1)[:, None]), 0.0)
    return weights / tl.maximum(tl.sum(weights, 1), 1e-30)[:, None]


@jit
def _attend(
    query, both, out, queries, keys, query_n, both_n, scale, D,
    E: tl.constexpr, BLOCK: tl.constexpr, CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One program for a head of a sentence."""
    b = tl.program_id(0)
    h = tl.program_id(1)
    first = tl.load(queries + b).to(tl.int64)
    first_key = tl.load(keys + b).to(tl.int64)
    own = tl.load(queries + b + 1) - first
    count = tl.load(keys + b + 1) - first_key
    if own + count == 0:
        return
    row = tl.arange(0, BLOCK)[:, None]
    e = h * E + tl.arange(0, E)[None]
    q = tl.load(query + (first + row) * query_n + e, row < own, 0.0)
    address = (first_key + row) * both_n + e
    k = tl.load(both + address, row < count, 0.0)
    v = tl.load(both + address + D, row < count, 0.0)
    weights = _weights(q, k, own, count, scale, BLOCK, CAUSAL, PRECISION)
    result = tl.dot(weights.to(v.dtype), v, input_precision=PRECISION)
    tl.store(out + (first + row) * D + e, result.to(out.dtype.element_ty), row < own)


@jit
def _attend_backward(
    gradient, query, both, to_query, to_both, queries, keys, query_n, both_n, scale, D,
    E: tl.constexpr, BLOCK: tl.constexpr, CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One program for a head of a sentence; the weights are computed again."""
    b = tl.program_id(0)
    h = tl.program_id(1)
    first = tl.load(queries + b).to(tl.int64)
    first_key = tl.load(keys + b).to(tl.int64)
    own = tl.load(queries + b + 1) - first
    count = tl.load(keys + b + 1) - first_key
    if own + count == 0:
        return
    row = tl.arange(0, BLOCK)[:, None]
    e = h * E + tl.arange(0, E)[None]
    query_address = (first + row) * query_n + e
    key_address = (first_key + row) * both_n + e
    q = tl.load(query + query_address, row < own, 0.0)
    k = tl.load(both + key_address, row < count, 0.0)
    weights = _weights(q, k, own, count, scale, BLOCK, CAUSAL, PRECISION)
    g = tl.load(gradient + (first + row) * D + e, row < own, 0.0)
    v = tl.load(both + key_address + D, row < count, 0.0)
    to_weights = tl.dot(g, tl.trans(v), input_precision=PRECISION)
    to_scores = weights * (to_weights - tl.sum(weights * to_weights, 1)[:, None]) * scale
    to_value = tl.dot(tl.trans(weights.to(g.dtype)), g, input_precision=PRECISION)
    tl.store(to_both + key_address + D, to_value.to(v.dtype), row < count)
    to_scores = to_scores.to(q.dtype)
    to_q = tl.dot(to_scores, k, input_precision=PRECISION)
    tl.store(to_query + query_address, to_q.to(q.dtype), row < own)
    to_k = tl.dot(tl.trans(to_scores), q, input_precision=PRECISION)
    tl.store(to_both + key_address, to_k.to(q.dtype), row < count)
