"""The loss of a block of logits, and its gradient in their place, in one kernel. Its plain twin is
in `training/loss.py`. Knows tensors only.

N tokens, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.kernels.jit import has_triton, jit, next_power_of_2, tl

_WHOLE = 65_536  # logits that the registers of one program hold
_CHUNK = 4096  # of a larger vocabulary, which is read twice


def loss_gradient(logits: Tensor, gold: Tensor, smoothing: float) -> Tensor | None:
    """Turn logits (N, V) into softmax - (1 - smoothing) onehot(gold), in place.

    Returns the sums over all tokens of -log p of the gold token (N, 1) and of its logit, (2,). A
    gold token of -1 counts in neither. Returns None where there is no kernel.
    """
    return launch(logits, gold, smoothing) if has_triton(logits.device) else None


def launch(logits: Tensor, gold: Tensor, smoothing: float) -> Tensor:
    """`loss_gradient` by Triton, whatever the device."""
    rows, size = logits.shape
    sums = torch.empty(2, rows, device=logits.device)
    whole = size <= _WHOLE
    chunk = next_power_of_2(size) if whole else _CHUNK
    warps = min(32, max(4, chunk // 1024))
    share = 1.0 - smoothing
    _loss_gradient[(rows,)](
        logits,
        gold,
        sums,
        size,
        rows,
        share,
        CHUNK=chunk,
        WHOLE=whole,
        num_warps=warps,
    )
    return sums.sum(1)


@jit
def _loss_gradient(logits, gold, sums, size, rows, share, CHUNK: tl.constexpr, WHOLE: tl.constexpr):
    """One program for a token: its row of logits at once, or a chunk after the other, twice."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, CHUNK)
    start = logits + row * size
    token = tl.load(gold + row)
    chosen = tl.load(start + token, token >= 0, 0.0).to(tl.float32)
    if WHOLE:
        inside = lane < size
        x = tl.load(start + lane, inside, float("-inf"))
        x = x.to(tl.float32)
        highest = tl.max(x, 0)
        total = tl.sum(tl.exp(x - highest), 0)
        norm = highest + tl.log(total)
        expected = tl.where(lane == token, share, 0.0)
        gradient = tl.exp(x - norm) - expected
        gradient = gradient.to(logits.dtype.element_ty)
        tl.store(start + lane, gradient, inside)
    else:
        # Each lane keeps a maximum and a sum of its own; they are put together at the end.
        highest = tl.full((CHUNK,), float("-inf"), tl.float32)
        total = tl.zeros((CHUNK,), tl.float32)
        for first in range(0, size, CHUNK):
            n = first + lane
            x = tl.load(start + n, n < size, float("-inf"))
            x = x.to(tl.float32)
            higher = tl.maximum(highest, x)
            floor = tl.where(higher == float("-inf"), 0.0, higher)
            shrink = tl.exp(highest - floor)
            total = total * shrink + tl.exp(x - floor)
            highest = higher
        top = tl.max(highest, 0)
        shrink = tl.exp(highest - top)
        total = tl.sum(total * shrink, 0)
        norm = top + tl.log(total)
        for first in range(0, size, CHUNK):
            n = first + lane
            inside = n < size
            x = tl.load(start + n, inside, 0.0)
            x = x.to(tl.float32)
            expected = tl.where(n == token, share, 0.0)
            gradient = tl.exp(x - norm) - expected
            gradient = gradient.to(logits.dtype.element_ty)
            tl.store(start + n, gradient, inside)
    loss = tl.where(token >= 0, norm - chosen, 0.0)
    tl.store(sums + row, loss)
    tl.store(sums + rows + row, chosen)
