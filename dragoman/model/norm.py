"""Normalisation, and the box "Add & Norm" of figure 1 (§3.1), with the dropout of §5.4 in it."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from dragoman.model.model_config import ModelConfig


class Residual(nn.Module):
    """LayerNorm(x + Dropout(sublayer(x))). With the norm first: x + Dropout(sublayer(Norm(x)))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = build_norm(config)
        self.dropout = nn.Dropout(config.dropout)
        self.norm_first = config.norm_first

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """x (B, T, D) -> (B, T, D)."""
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


def build_norm(config: ModelConfig) -> nn.LayerNorm | nn.RMSNorm:
    """Over the width of the model.

    It is a norm of mean and variance (Ba et al. 2016), as in the paper, or of the root mean square
    alone.
    """
    kind = nn.LayerNorm if config.norm == "layer" else nn.RMSNorm
    return kind(config.d_model, eps=config.norm_epsilon)
