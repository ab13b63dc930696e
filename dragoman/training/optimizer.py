"""The optimiser and its learning rate (§5.3)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from dragoman.training.muon import Matrix, Muon, MuonSettings
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
    """Adam; AdamW, whose decay leaves biases, norms and embeddings alone; or Muon, for the matrices
    of layers alone."""
    if options.optimizer == "muon":
        return _muon(parameters, options)
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


def _muon(parameters: Iterable[tuple[str, nn.Parameter]], options: TrainingOptions) -> Muon:
    matrices = []
    others = []
    for name, parameter in parameters:
        if parameter.dim() == 2 and "layers." in name:
            # The projections of keys and values are one matrix above the other.
            matrices.append(Matrix(parameter, parts=2 if "key_value" in name else 1))
        else:
            others.append(parameter)
    settings = MuonSettings(
        betas=(options.beta1, options.beta2),
        epsilon=options.epsilon,
        weight_decay=options.weight_decay,
    )
    return Muon(matrices, others, settings)


@torch.no_grad()
def update_running_mean(
    optimizer: torch.optim.Optimizer, weights: list[Tensor], decay: float, step: int
) -> None:
    """Brings the running mean of the weights up to a step. It lies among the optimiser's moments,
    as `ema`, and so is saved and restored with them. The first steps count for less."""
    means = []
    for weight in weights:
        state = optimizer.state[weight]
        if "ema" not in state:
            state["ema"] = weight.detach().clone()
        means.append(state["ema"])
    torch._foreach_lerp_(means, weights, 1 - min(decay, step / (step + 10)))
