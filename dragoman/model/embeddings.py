"""Embeddings (§3.4): tokens to vectors times sqrt(d_model), with the position added; dropout on
the sum (§5.4). Some of the family omit the factor, norm the sum, bring positions into attention
instead, or tell the second of two texts by a vector of its own."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from dragoman.model.model_config import ModelConfig
from dragoman.model.norm import build_norm
from dragoman.model.positions import Positions


class Embeddings(nn.Module):
    """The input of a stack. The matrix may be shared with the other side and with the output."""

    def __init__(self, config: ModelConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        self.tokens = tokens
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.positions: Positions | None = None
        if config.positions in ("sinusoidal", "learned"):
            learned = config.positions == "learned"
            self.positions = Positions(config.max_length, config.d_model, learned)
        self.separator = config.separator
        self.second = nn.Parameter(torch.zeros(config.d_model)) if config.separator else None
        self.norm = build_norm(config) if config.norm_embeddings else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (B, T) of whole sequences -> (B, T, D)."""
        x = self.tokens(tokens) * self.scale
        if self.positions is not None:
            x = self.positions(x)
        if self.second is not None:
            x = x + self._of_second(tokens) * self.second
        return self.dropout(self.norm(x))

    def at(self, tokens: Tensor, position: Tensor) -> Tensor:
        """Tokens (B, K) that are all at the one position (1,) -> (B, K, D)."""
        x = self.tokens(tokens) * self.scale
        if self.positions is not None:
            x = self.positions.at(x, position)
        return self.norm(x)

    def _of_second(self, tokens: Tensor) -> Tensor:
        """(B, T, 1), true behind the first separator."""
        separates = tokens == self.separator
        before = separates.cumsum(1) - separates.long()
        return (before > 0)[..., None]
