"""How many tokens a device computes at once."""

from __future__ import annotations

import torch
from torch import nn

from dragoman.data.batches import Batch, PackedBatch
from dragoman.folder.description import PAIR_TASKS
from dragoman.training.compute import Compute
from dragoman.training.training_options import TrainingOptions

CPU_TOKENS = 4096  # larger parts leave the cache
SHARE = 0.8  # of the GPU's memory; the rest is for shapes that the probes did not have
WIDTH = 64  # tokens of a probe's rows
FEW_ROWS = 32
MANY_ROWS = 128


def fit_micro_tokens(
    module: nn.Module, options: TrainingOptions, compute: Compute, task: str
) -> int:
    """The tokens of a part: what the user named, or what the device holds."""
    if options.micro_tokens:
        return options.micro_tokens
    if compute.device.type != "cuda":
        return CPU_TOKENS
    if task not in PAIR_TASKS:
        return options.batch_tokens
    return _measured_micro_tokens(module, compute)


def _measured_micro_tokens(module: nn.Module, compute: Compute) -> int:
    """Measures what few and many tokens take on a GPU, and draws the line through both."""
    few = _peak_bytes(module, compute, FEW_ROWS)
    many = _peak_bytes(module, compute, MANY_ROWS)
    bytes_per_token = max(1.0, (many - few) / ((MANY_ROWS - FEW_ROWS) * WIDTH))
    without_tokens = few - FEW_ROWS * WIDTH * bytes_per_token
    moments = 2 * 4 * sum(parameter.numel() for parameter in module.parameters())
    whole = torch.cuda.get_device_properties(compute.device).total_memory
    left = SHARE * whole - without_tokens - moments
    return max(1024, int(left / bytes_per_token))


def _peak_bytes(module: nn.Module, compute: Compute, rows: int) -> float:
    """The most memory in use during a forward and backward pass over rows of WIDTH tokens."""
    torch.cuda.reset_peak_memory_stats(compute.device)
    with compute.autocast():
        probe = _packed(rows, compute.device) if compute.packed else _padded(rows, compute.device)
        smoothed, _ = module(probe)
        smoothed.backward()
    module.zero_grad()
    return float(torch.cuda.max_memory_allocated(compute.device))


def _packed(rows: int, device: torch.device) -> PackedBatch:
    tokens = torch.ones(rows * WIDTH, dtype=torch.long, device=device)
    starts = torch.arange(0, rows * WIDTH + 1, WIDTH, dtype=torch.int32, device=device)
    return PackedBatch(WIDTH, tokens, tokens, tokens, starts, starts)


def _padded(rows: int, device: torch.device) -> Batch:
    tokens = torch.ones(rows, WIDTH, dtype=torch.long, device=device)
    lengths = torch.full((rows,), WIDTH - 1, device=device)
    positions = torch.arange(rows * WIDTH, device=device)
    return Batch(tokens, tokens, lengths, positions, tokens.flatten())
