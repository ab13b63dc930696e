"""What stands on an encoder that is used alone: a classifier, or the step before an output layer
that fills in tokens. Knows vectors; what the classes are called is not known here."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dragoman.model.feedforward import ACTIVATIONS
from dragoman.model.model_config import ModelConfig
from dragoman.model.norm import build_norm


class Classifier(nn.Module):
    """One position of (B, S, D) -> (B, classes), through a layer with tanh if there is a pooler."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pooler = nn.Linear(config.d_model, config.d_model) if config.pooler else None
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(config.d_model, config.classes)
        self.of_last = config.pooled == "last"

    def forward(self, memory: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`lengths` (B,) say where the padding begins; None: every row is full."""
        x = memory[:, 0]
        if self.of_last:
            rows = torch.arange(len(memory), device=memory.device)
            x = memory[:, -1] if lengths is None else memory[rows, lengths - 1]
        if self.pooler is not None:
            x = self.pooler(x).tanh()
        return self.output(self.dropout(x))


class OutputTransform(nn.Module):
    """(…, D) -> (…, D)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.norm = build_norm(config)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.activation(self.dense(x)))
