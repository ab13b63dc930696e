"""Dropout (§5.4), which in training sets a share of all values to zero.

The random draws of torch's own dropout cost more than its arithmetic. On a CPU one draw here
decides over four values; in compiled code on a GPU a number's place is hashed with a seed, in a few
operations that melt into those around them.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Dropout(nn.Module):
    """In training, x with about `share` of its values zero and the others scaled so that the
    expectation stays."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share
        self.seed: Tensor | None = (
            None  # one number, which whoever trains on a GPU changes before each pass
        )

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.share == 0.0:
            return x
        if x.device.type == "cpu":
            return x * _mask(x, self.share)
        if self.seed is None or not torch.compiler.is_compiling():
            return F.dropout(x, self.share)
        dropped = round(self.share * 2**16)
        return torch.where(
            _hashed(x.shape, self.seed) >= dropped, x * (2**16 / (2**16 - dropped)), 0.0
        )


def sow(model: nn.Module, device: torch.device) -> Tensor:
    """Gives every dropout of the model a seed; all of them are in the tensor that comes back."""
    places = [module for module in model.modules() if isinstance(module, Dropout)]
    seeds = torch.zeros(len(places), dtype=torch.int32, device=device)
    for place, seed in zip(places, seeds, strict=True):
        place.seed = seed
    return seeds


def _hashed(shape: torch.Size, seed: Tensor) -> Tensor:
    """For each place a number of 16 bits that looks random: two rounds of multiply and fold, as
    in Wellons' lowbias32."""
    x = torch.arange(shape.numel(), dtype=torch.int32, device=seed.device).view(shape) + seed
    x = (x ^ _right(x, 16)) * 0x7FEB352D
    x = (x ^ _right(x, 15)) * (0x846CA68B - 2**32)
    return _right(x, 16)


def _right(x: Tensor, bits: int) -> Tensor:
    """A shift that brings in zeros; torch's own copies the sign."""
    return (x >> bits) & (2 ** (32 - bits) - 1)


def _mask(x: Tensor, share: float) -> Tensor:
    """0 or 1 / (1 - share) for each value of x: 64 random bits are four numbers of 16, compared
    with one threshold."""
    draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    numbers = draws.view(torch.int16)[: x.numel()].view(x.shape)
    dropped = round(share * 2**16)  # of 65,536 equally likely numbers, which begin at -32,768
    kept = torch.ge(numbers, dropped - 2**15, out=torch.empty_like(x))
    return kept.mul_(2**16 / (2**16 - dropped))
