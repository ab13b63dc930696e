"""The optimiser and its learning rate (§5.3)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import nn

from dragoman.training.training_options import TrainingOptions


def learning_rate(step: int, options: TrainingOptions, d_model: int, seconds: float = 0.0) -> float:
    """The rate of a step, which count from 1. The cosine ends with the steps or, where there is
    a limit, with the minutes."""
    peak, warmup = options.learning_rate, options.warmup
    if options.schedule == "paper":  # equation 3
        return peak * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    rate = peak * step / warmup if step < warmup else peak
    if options.schedule == "inverse_sqrt" and step > warmup:
        return peak * math.sqrt(warmup / step)
    if options.schedule == "cosine":
        by_steps, by_time = (
            (step - warmup) / max(1, options.steps - warmup),
            seconds / 60 / (options.minutes or math.inf),
        )
        return rate * 0.5 * (1 + math.cos(math.pi * min(1.0, max(0.0, by_steps, by_time))))
    return rate


def build_optimizer(
    parameters: Iterable[tuple[str, nn.Parameter]], options: TrainingOptions
) -> torch.optim.Optimizer:
    """Adam, or AdamW whose decay leaves biases, norms and embeddings alone."""
    betas = (options.beta1, options.beta2)
    named = list(parameters)
    if options.optimizer == "adam":
        return torch.optim.Adam(
            [p for _, p in named], lr=0.0, betas=betas, eps=options.epsilon, fused=True
        )
    matrices = [p for name, p in named if p.dim() > 1 and "tokens" not in name]
    others = [p for name, p in named if p.dim() <= 1 or "tokens" in name]
    groups = [
        {"params": matrices, "weight_decay": options.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=betas, eps=options.epsilon, fused=True)
