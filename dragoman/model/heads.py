"""What stands on an encoder that is used alone: a classifier, the vector of a whole text, or the
step before an output layer that fills in tokens. Knows vectors; what the classes are called is not
known here."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.model.feedforward import ACTIVATIONS
from dragoman.model.model_config import ModelConfig
from dragoman.model.norm import build_norm


class Classifier(nn.Module):
    """One position of (B, S, D) -> (B, classes), or every one -> (B, S, classes); through a layer
    with tanh if there is a pooler."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pooler = nn.Linear(config.d_model, config.d_model) if config.pooler else None
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(config.d_model, config.classes)
        self.pooled = config.pooled

    def forward(self, memory: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`lengths` (B,) say where the padding begins; None: every row is full."""
        x = self._read(memory, lengths)
        if self.pooler is not None:
            x = self.pooler(x).tanh()
        return self.output(self.dropout(x))

    def _read(self, memory: Tensor, lengths: Tensor | None) -> Tensor:
        if self.pooled == "every":
            return memory
        if self.pooled == "first":
            return memory[:, 0]
        if lengths is None:
            return memory[:, -1]
        rows = torch.arange(len(memory), device=memory.device)
        return memory[rows, lengths - 1]


class OutputTransform(nn.Module):
    """(…, D) -> (…, D)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.norm = build_norm(config)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.activation(self.dense(x)))


def text_vectors(memory: Tensor, lengths: Tensor | None) -> Tensor:
    """The mean over the tokens of each text, of length 1: (B, S, D) -> (B, D)."""
    if lengths is not None:
        there = torch.arange(memory.size(1), device=memory.device) < lengths[:, None]
        memory = memory * there[..., None]
    # Its length will be 1, so a sum is as good as a mean.
    return F.normalize(memory.sum(1), dim=-1)
