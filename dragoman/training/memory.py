"""How many tokens a device computes at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import nn

from dragoman.data.batches import Batch, PackedBatch

CPU_TOKENS = 4096  # larger parts leave the cache
SHARE = 0.8  # of the GPU's memory; the rest is for shapes that the probes did not have


def fit_micro_tokens(
    module: nn.Module,
    device: torch.device,
    autocast: Callable[[], AbstractContextManager[object]],
    packed: bool,
) -> int:
    """On a GPU: measures what 2,048 and 8,192 tokens take, and draws the line through both."""
    if device.type != "cuda":
        return CPU_TOKENS
    small, large = (_peak(module, device, autocast, packed, rows) for rows in (32, 128))
    each = max(1.0, (large - small) / (96 * 64))
    moments = 2 * 4 * sum(parameter.numel() for parameter in module.parameters())
    room = (
        SHARE * torch.cuda.get_device_properties(device).total_memory
        - (small - 32 * 64 * each)
        - moments
    )
    return max(1024, int(room / each))


def _peak(
    module: nn.Module,
    device: torch.device,
    autocast: Callable[[], AbstractContextManager[object]],
    packed: bool,
    rows: int,
) -> float:
    """Bytes at the most in a forward and backward pass over rows of 64 tokens."""
    torch.cuda.reset_peak_memory_stats(device)
    tokens = torch.ones(rows, 64, dtype=torch.long, device=device)
    flat, starts = (
        tokens.flatten(),
        torch.arange(0, 64 * rows + 1, 64, dtype=torch.int32, device=device),
    )
    padded = Batch(
        tokens,
        tokens,
        torch.full((rows,), 63, device=device),
        torch.arange(64 * rows, device=device),
        flat,
    )
    with autocast():
        smoothed, _ = module(
            PackedBatch(64, flat, flat, flat, starts, starts) if packed else padded
        )
        smoothed.backward()
    module.zero_grad()
    return float(torch.cuda.max_memory_allocated(device))
