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
from dragoman.kernels.packed_segments import Heads, Projected, Segments

LONGEST = 128  # tokens of a sentence that fit into one program
SIZES = (16, 32, 64, 128)  # widths of a head
_WARPS = {16: 1, 32: 2, 64: 4, 128: 4}  # for each block of tokens, as measured on an H200


def forward(of: Projected, segments: Segments, heads: Heads) -> Tensor:
    """Return what each query finds, (N, D)."""
    query, both = of
    out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
    block = _block(segments)
    size = heads.size(query)
    _attend[(segments.n_sentences, heads.number)](
        query,
        both,
        out,
        segments.queries,
        segments.keys,
        query.stride(0),
        both.stride(0),
        size**-0.5,
        heads.number * size,
        E=size,
        BLOCK=block,
        CAUSAL=heads.causal,
        PRECISION=precision(query),
        num_warps=_WARPS[block],
    )
    return out


def backward(
    gradient: Tensor,
    of: Projected,
    to: Projected,
    segments: Segments,
    heads: Heads,
) -> None:
    """Fill `to`, which is laid out as `of` is."""
    query, both = of
    block = _block(segments)
    size = heads.size(query)
    _attend_backward[(segments.n_sentences, heads.number)](
        gradient,
        query,
        both,
        to.query,
        to.both,
        segments.queries,
        segments.keys,
        query.stride(0),
        both.stride(0),
        size**-0.5,
        heads.number * size,
        E=size,
        BLOCK=block,
        CAUSAL=heads.causal,
        PRECISION=precision(query),
        num_warps=_WARPS[block],
    )


def _block(segments: Segments) -> int:
    return max(16, next_power_of_2(segments.longest))


@jit
def _weights(
    q,
    k,
    own,
    count,
    scale,
    BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The softmax (BLOCK, BLOCK) of `own` queries over `count` keys, zeros around it."""
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, BLOCK)[None]
    seen = (i < own) & (j < count)
    if CAUSAL:
        seen = seen & (j <= i)
    products = tl.dot(q, tl.trans(k), input_precision=PRECISION)
    scores = tl.where(seen, products * scale, -1e30)
    highest = tl.max(scores, 1)
    exponentials = tl.exp(scores - highest[:, None])
    weights = tl.where(seen, exponentials, 0.0)
    total = tl.maximum(tl.sum(weights, 1), 1e-30)
    return weights / total[:, None]


@jit
def _attend(
    query,
    both,
    out,
    queries,
    keys,
    query_n,
    both_n,
    scale,
    D,
    E: tl.constexpr,
    BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
):
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
    is_query = row < own
    is_key = row < count
    query_row = first + row
    key_row = first_key + row
    q = tl.load(query + query_row * query_n + e, is_query, 0.0)
    address = key_row * both_n + e
    k = tl.load(both + address, is_key, 0.0)
    v = tl.load(both + address + D, is_key, 0.0)
    weights = _weights(q, k, own, count, scale, BLOCK, CAUSAL, PRECISION)
    weights = weights.to(v.dtype)
    result = tl.dot(weights, v, input_precision=PRECISION)
    result = result.to(out.dtype.element_ty)
    tl.store(out + query_row * D + e, result, is_query)


@jit
def _attend_backward(
    gradient,
    query,
    both,
    to_query,
    to_both,
    queries,
    keys,
    query_n,
    both_n,
    scale,
    D,
    E: tl.constexpr,
    BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
):
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
    is_query = row < own
    is_key = row < count
    query_row = first + row
    key_row = first_key + row
    query_address = query_row * query_n + e
    key_address = key_row * both_n + e
    value_address = key_address + D
    q = tl.load(query + query_address, is_query, 0.0)
    k = tl.load(both + key_address, is_key, 0.0)
    weights = _weights(q, k, own, count, scale, BLOCK, CAUSAL, PRECISION)
    g = tl.load(gradient + query_row * D + e, is_query, 0.0)
    v = tl.load(both + value_address, is_key, 0.0)

    to_weights = tl.dot(g, tl.trans(v), input_precision=PRECISION)
    mean = tl.sum(weights * to_weights, 1)
    centred = to_weights - mean[:, None]
    to_scores = weights * centred * scale
    to_scores = to_scores.to(q.dtype)

    weights = weights.to(g.dtype)
    to_value = tl.dot(tl.trans(weights), g, input_precision=PRECISION)
    tl.store(to_both + value_address, to_value.to(v.dtype), is_key)
    to_q = tl.dot(to_scores, k, input_precision=PRECISION)
    tl.store(to_query + query_address, to_q.to(q.dtype), is_query)
    to_k = tl.dot(tl.trans(to_scores), q, input_precision=PRECISION)
    tl.store(to_both + key_address, to_k.to(q.dtype), is_key)
