"""How many tokens a device computes at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import nn

from dragoman.model.config import ModelConfig

CPU_TOKENS = 4096  # larger parts leave the cache
SHARE = 0.8  # of the GPU's memory; the rest is for shapes that the probes did not have


def fit_micro_tokens(
    module: nn.Module, config: ModelConfig, device: torch.device, autocast: Callable[[], AbstractContextManager[object]]
) -> int:
    """On a GPU: measures what 2,048 and 8,192 tokens take, and draws the line through both."""
    if device.type != "cuda":
        return CPU_TOKENS
    small, large = (_peak(module, config, device, autocast, rows) for rows in (32, 128))
    each = max(1.0, (large - small) / (96 * 64))
    moments = 2 * 4 * sum(parameter.numel() for parameter in module.parameters())
    room = SHARE * torch.cuda.get_device_properties(device).total_memory - (small - 32 * 64 * each) - moments
    return max(1024, int(room / each))


def _peak(
    module: nn.Module,
    config: ModelConfig,
    device: torch.device,
    autocast: Callable[[], AbstractContextManager[object]],
    rows: int,
) -> float:
    """Bytes at the most in a forward and backward pass over rows of 64 tokens."""
    torch.cuda.reset_peak_memory_stats(device)
    tokens = torch.ones(rows, 64, dtype=torch.long, device=device)
    lengths = torch.full((rows,), 63, device=device)
    with autocast():
        smoothed, _ = module(tokens, tokens, lengths, torch.arange(tokens.numel(), device=device), tokens.flatten())
        smoothed.backward()
    module.zero_grad()
    return float(torch.cuda.max_memory_allocated(device))
