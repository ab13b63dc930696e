"""Embeddings (§3.4): tokens to vectors times sqrt(d_model), with the position added; dropout on
the sum (§5.4). Some of the family leave the factor out, norm the sum, or bring positions into
attention instead."""

from __future__ import annotations

import math

from torch import Tensor, nn

from dragoman.kernels.packed_attention import Segments
from dragoman.model.dropout import Dropout
from dragoman.model.model_config import ModelConfig
from dragoman.model.norm import build_norm
from dragoman.model.positions import Positions


class Embeddings(nn.Module):
    """The input of a stack. The matrix may be shared with the other side and with the output layer."""

    def __init__(self, config: ModelConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        self.tokens = tokens
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        added = config.positions in ("sinusoidal", "learned")
        self.positions = (
            Positions(config.max_length, config.d_model, config.positions == "learned")
            if added
            else None
        )
        self.norm = build_norm(config) if config.norm_embeddings else nn.Identity()
        self.dropout = Dropout(config.dropout)

    def forward(self, tokens: Tensor, segments: Segments | None = None) -> Tensor:
        """tokens (B, T) -> (B, T, D), or (T) -> (T, D) where sentences lie end to end."""
        x = self.tokens(tokens) * self.scale
        return self.dropout(self.norm(x if self.positions is None else self.positions(x, segments)))

    def at(self, tokens: Tensor, position: Tensor) -> Tensor:
        """tokens (B, K), all at the one position (1,) -> (B, K, D)."""
        x = self.tokens(tokens) * self.scale
        return self.norm(x if self.positions is None else self.positions.at(x, position))
