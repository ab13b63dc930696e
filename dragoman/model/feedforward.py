"""Position-wise feed-forward network (§3.3): FFN(x) = max(0, x W1 + b1) W2 + b2, the same at every
position.

Later models have smoother functions in the place of max(0, x), and some multiply by a gate (Shazeer
2020).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.model.model_config import ModelConfig

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}


class FeedForward(nn.Module):
    """Equation 2."""

    def __init__(self, config: ModelConfig, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(config.d_model, width, bias=config.bias)
        self.outer = nn.Linear(width, config.d_model, bias=config.bias)
        self.gate = nn.Linear(config.d_model, width, bias=config.bias) if config.gated else None
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x: Tensor) -> Tensor:
        if self.gate is None:
            return self.outer(self.activation(self.inner(x)))
        return self.outer(self.activation(self.gate(x)) * self.inner(x))
