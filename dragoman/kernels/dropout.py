"""Dropout for training, as `nn.Dropout` has it but for how it draws. Knows tensors only.

The random draws of torch's own dropout cost more than its arithmetic. On a CPU one draw here
decides over four values; in compiled code on a GPU the index of a number is hashed with a seed, in
a few operations that melt into those around them.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_NUMBERS = 2**16  # that 16 bits can be, all equally likely


def drop_by_fours(dropout: nn.Dropout, x: Tensor) -> Tensor:
    """For CPUs: four values share a draw of 64 bits."""
    if not dropout.training or dropout.p == 0.0:
        return x
    return x * _mask(x, dropout.p)


def drop_by_hash(dropout: nn.Dropout, x: Tensor) -> Tensor:
    """For GPUs: in compiled code what is dropped follows from the seed, elsewhere torch draws."""
    if not dropout.training or dropout.p == 0.0:
        return x
    if not torch.compiler.is_compiling():
        return F.dropout(x, dropout.p)
    dropped = round(dropout.p * _NUMBERS)
    kept = hashed(x.shape, dropout.seed) >= dropped  # type: ignore[arg-type]
    scale = _NUMBERS / (_NUMBERS - dropped)
    return torch.where(kept, x * scale, 0.0)


def sow(model: nn.Module, device: torch.device) -> Tensor:
    """Give every dropout of the model a seed, and return all seeds in one tensor.

    Whoever trains with `drop_by_hash` changes them before each pass.
    """
    dropouts = [module for module in model.modules() if isinstance(module, nn.Dropout)]
    seeds = torch.zeros(len(dropouts), dtype=torch.int32, device=device)
    for dropout, seed in zip(dropouts, seeds, strict=True):
        dropout.seed = seed
    return seeds


def hashed(shape: torch.Size, seed: Tensor) -> Tensor:
    """For each index a number of 16 bits that looks random.

    Two rounds of multiplying and folding, as in Wellons' lowbias32.
    """
    every = torch.arange(shape.numel(), dtype=torch.int32, device=seed.device)
    x = every.view(shape) + seed
    x = x ^ _shift_right(x, 16)
    x = x * 0x7FEB352D
    x = x ^ _shift_right(x, 15)
    x = x * (0x846CA68B - 2**32)
    return _shift_right(x, 16)


def _shift_right(x: Tensor, bits: int) -> Tensor:
    """A shift that brings in zeros; torch's own copies the sign."""
    without_sign = 2 ** (32 - bits) - 1
    return (x >> bits) & without_sign


def _mask(x: Tensor, share: float) -> Tensor:
    """0 or 1 / (1 - share) for each value of x.

    64 random bits are four numbers of 16, which are compared with one threshold.
    """
    n_draws = -(-x.numel() // 4)
    draws = torch.empty(n_draws, dtype=torch.int64)
    draws.random_(-(2**63), None)
    numbers = draws.view(torch.int16)[: x.numel()]
    numbers = numbers.view(x.shape)
    dropped = round(share * _NUMBERS)
    lowest_kept = dropped - 2**15  # the numbers begin at -32,768
    kept = torch.ge(numbers, lowest_kept, out=torch.empty_like(x))
    return kept.mul_(_NUMBERS / (_NUMBERS - dropped))
