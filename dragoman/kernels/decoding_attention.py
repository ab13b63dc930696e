"""Attention in a decoding step, where a sentence has as many queries as beams and many keys. Three
twins of `MultiHeadAttention.look`, which compute what it computes. Knows tensors only.

B sentences, K beams, H heads, E width of a head, N keys: K for each position of a cache, or those
of a memory.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.kernels.jit import jit, next_power_of_2, precision, tl
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.model_config import ModelConfig
from dragoman.model.sight import KeysValues, Mask, Record

MOST_BEAMS = 64  # in one program of the Triton kernel
_BLOCK = 64  # keys that a program looks at together


def look_by_products(
    attention: MultiHeadAttention,
    query: Tensor,
    seen: KeysValues,
    mask: Mask,
    last: Tensor | None,
    record: Record,
) -> Tensor:
    """Plain products, which for few queries are faster on a CPU than torch's fused kernel."""
    if record is not None:
        return MultiHeadAttention.look(attention, query, seen, mask, last, record)
    return products(query, seen, mask)


def look_along_text(
    attention: MultiHeadAttention,
    query: Tensor,
    seen: KeysValues,
    mask: Mask,
    last: Tensor | None,
    record: Record,
) -> Tensor:
    """For a decoder alone: for one query and very many keys the fused kernel is faster."""
    if mask is None:
        return MultiHeadAttention.look(attention, query, seen, mask, last, record)
    return look_by_products(attention, query, seen, mask, last, record)


def look_by_triton(
    attention: MultiHeadAttention,
    query: Tensor,
    seen: KeysValues,
    mask: Mask,
    last: Tensor | None,
    record: Record,
) -> Tensor:
    """One Triton kernel, which does not look at keys behind the position `last`."""
    too_many = query.size(2) > MOST_BEAMS
    by_head = mask is not None and mask.size(1) > 1
    if too_many or by_head or record is not None or torch.is_grad_enabled():
        return look_along_text(attention, query, seen, mask, last, record)
    return launch(query, seen, mask, last)


def fits(config: ModelConfig) -> bool:
    """Whether the Triton kernel has a program for heads of this size."""
    return config.size in (16, 32, 64, 128)


def products(query: Tensor, seen: KeysValues, mask: Mask) -> Tensor:
    """Equation 1, (B, H, K, E) -> (B, H, K, E); the mask (B, 1 or H, K or 1, N) is added.

    Keys times queries are computed, which is twice as fast as queries times keys.
    """
    rows, heads, beams, size = query.shape
    key = seen[0].flatten(0, 1)  # (B * H, N, E)
    value = seen[1].flatten(0, 1)
    columns = query.transpose(2, 3).reshape(rows * heads, size, beams)
    zero = query.new_zeros(1, 1, 1)
    scores = torch.baddbmm(zero, key, columns, beta=0, alpha=size**-0.5)
    scores = scores.transpose(1, 2)  # (B * H, K, N)
    if mask is not None:
        of_heads = mask.expand(rows, heads, -1, -1)
        scores = scores + of_heads.flatten(0, 1)
    found = torch.bmm(scores.softmax(-1), value)
    return found.unflatten(0, (rows, heads))


def launch(query: Tensor, seen: KeysValues, mask: Mask, last: Tensor | None) -> Tensor:
    """The same by Triton; the mask is (B, 1, K or 1, N).

    Of the N keys, K for each position, those behind the position `last` (1,) are not looked at.
    """
    key, value = seen
    rows, heads, beams, size = query.shape
    assert key.stride() == value.stride()
    assert query.stride(3) == key.stride(3) == 1
    assert mask is None or mask.stride(3) == 1
    out = torch.empty(rows, beams, heads, size, dtype=query.dtype, device=query.device)
    mask_rows = 0 if mask is None else mask.stride(0)
    one_for_all = mask is None or mask.size(2) == 1
    mask_beams = 0 if mask is None or one_for_all else mask.stride(2)
    unused = query  # an argument that is not used still has to be a tensor
    _attend[(rows, heads)](
        query,
        key,
        value,
        unused if mask is None else mask,
        out,
        unused if last is None else last,
        key.size(2),
        *query.stride()[:3],
        *key.stride()[:3],
        mask_rows,
        mask_beams,
        size**-0.5,
        heads,
        BEAMS=beams,
        ROWS=max(16, next_power_of_2(beams)),
        E=size,
        BLOCK=_BLOCK,
        GROWS=last is not None,
        MASKED=mask is not None,
        PRECISION=precision(query),
    )
    return out.transpose(1, 2)


@jit
def _attend(
    query,
    key,
    value,
    mask,
    out,
    last,
    n_keys,
    query_b,
    query_h,
    query_k,
    key_b,
    key_h,
    key_n,
    mask_b,
    mask_k,
    scale,
    heads,
    BEAMS: tl.constexpr,
    ROWS: tl.constexpr,
    E: tl.constexpr,
    BLOCK: tl.constexpr,
    GROWS: tl.constexpr,
    MASKED: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One program for a head of a sentence. It walks over blocks of keys and keeps, for each beam,
    the highest score so far, the sum of exponentials below it, and the weighted sum of values."""
    b = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1)
    rows = tl.arange(0, ROWS)[:, None]  # the beams; those behind BEAMS are idle
    e = tl.arange(0, E)[None]
    is_beam = rows < BEAMS
    first_query = b * query_b + h * query_h
    first_key = b * key_b + h * key_h
    q = tl.load(query + first_query + rows * query_k + e, is_beam, 0.0)
    seen = (tl.load(last).to(tl.int32) + 1) * BEAMS if GROWS else n_keys
    highest = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    result = tl.zeros((ROWS, E), tl.float32)
    for start in range(0, seen, BLOCK):
        n = start + tl.arange(0, BLOCK)
        is_key = n < seen
        address = first_key + n[:, None] * key_n + e
        k = tl.load(key + address, is_key[:, None], 0.0)
        products = tl.dot(q, tl.trans(k), input_precision=PRECISION)  # (ROWS, BLOCK)
        scores = tl.where(is_key[None], products * scale, float("-inf"))
        if MASKED:
            inside = is_beam & is_key[None]
            mask_address = b * mask_b + rows * mask_k + n[None]
            added = tl.load(mask + mask_address, inside, 0.0)
            scores += added.to(tl.float32)
        higher = tl.maximum(highest, tl.max(scores, 1))
        floor = tl.where(higher == float("-inf"), 0.0, higher)  # nothing seen yet: no inf - inf
        weights = tl.exp(scores - floor[:, None])
        shrink = tl.exp(highest - floor)
        v = tl.load(value + address, is_key[:, None], 0.0)
        product = tl.dot(weights.to(v.dtype), v, input_precision=PRECISION)
        result = result * shrink[:, None] + product
        total = total * shrink + tl.sum(weights, 1)
        highest = higher
    mean = result / total[:, None]
    beam_row = (b * BEAMS + rows) * heads + h  # out is (B, K, H, E)
    tl.store(out + beam_row * E + e, mean.to(out.dtype.element_ty), is_beam)
