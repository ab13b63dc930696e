"""Dropout (§5.4), which in training sets a share of all values to zero.

On a CPU the random draws of torch's own dropout cost more than its arithmetic; here one draw decides over four values.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def dropout(x: Tensor, share: float, training: bool) -> Tensor:
    """In training, x with about `share` of its values zero and the others scaled so that the expectation stays."""
    if not training or share == 0.0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, share)
    return x * _mask(x, share)


def _mask(x: Tensor, share: float) -> Tensor:
    """0 or 1 / (1 - share) for each value of x: 64 random bits are four numbers of 16, compared with one threshold."""
    draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    numbers = draws.view(torch.int16)[: x.numel()].view(x.shape)
    dropped = round(share * 2**16)  # of 65,536 equally likely numbers, which begin at -32,768
    kept = torch.ge(numbers, dropped - 2**15, out=torch.empty_like(x))
    return kept.mul_(2**16 / (2**16 - dropped))
