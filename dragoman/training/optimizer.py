"""The optimiser and its learning rate (§5.3)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import nn

from dragoman.training.training_options import TrainingOptions


def learning_rate(step: int, options: TrainingOptions, d_model: int, seconds: float = 0.0) -> float:
    """The rate of a step; steps count from 1. The cosine ends with the steps or, where there is a
    limit, with the minutes."""
    peak = options.learning_rate
    warmup = options.warmup
    if options.schedule == "paper":  # equation 3
        return peak * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    rate = peak * step / warmup if step < warmup else peak
    if options.schedule == "inverse_sqrt" and step > warmup:
        return peak * math.sqrt(warmup / step)
    if options.schedule == "cosine":
        by_steps = (step - warmup) / max(1, options.steps - warmup)
        by_time = seconds / 60 / (options.minutes or math.inf)
        done = min(1.0, max(0.0, by_steps, by_time))
        return rate * 0.5 * (1 + math.cos(math.pi * done))
    return rate


def build_optimizer(
    parameters: Iterable[tuple[str, nn.Parameter]], options: TrainingOptions
) -> torch.optim.Optimizer:
    """Adam, or AdamW whose decay leaves biases, norms and embeddings alone."""
    betas = (options.beta1, options.beta2)
    matrices = []
    others = []
    both = []
    for name, parameter in parameters:
        both.append(parameter)
        if parameter.dim() > 1 and "tokens" not in name:
            matrices.append(parameter)
        else:
            others.append(parameter)
    if options.optimizer == "adam":
        return torch.optim.Adam(both, lr=0.0, betas=betas, eps=options.epsilon, fused=True)
    groups = [
        {"params": matrices, "weight_decay": options.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=betas, eps=options.epsilon, fused=True)
