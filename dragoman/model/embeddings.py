"""Embeddings (§3.4): tokens to vectors times sqrt(d_model), with the position added; dropout on the sum (§5.4)."""

from __future__ import annotations

import math

from torch import Tensor, nn

from dragoman.model.config import ModelConfig
from dragoman.model.dropout import dropout
from dragoman.model.positions import Positions


class Embeddings(nn.Module):
    """The input of a stack. The matrix may be shared with the other side and with the output layer."""

    def __init__(self, config: ModelConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        self.tokens = tokens
        self.scale = math.sqrt(config.d_model)
        self.positions = Positions(config.max_length, config.d_model)
        self.dropout = config.dropout

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens (B, T) -> (B, T, D)."""
        x = self.positions(self.tokens(tokens) * self.scale)
        return dropout(x, self.dropout, self.training)

    def at(self, tokens: Tensor, position: Tensor) -> Tensor:
        """tokens (B, K), all at the one position (1,) -> (B, K, D)."""
        return self.tokens(tokens) * self.scale + self.positions.table.index_select(0, position)
