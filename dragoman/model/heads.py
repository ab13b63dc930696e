"""What stands on an encoder that is used alone: a classifier, or the step before an output layer
that fills in tokens. Knows vectors; what the classes are called is not known here."""

from __future__ import annotations

from torch import Tensor, nn

from dragoman.model.feedforward import ACTIVATIONS
from dragoman.model.model_config import ModelConfig
from dragoman.model.norm import build_norm


class Classifier(nn.Module):
    """The first position (B, D) -> (B, classes), through a layer with tanh if there is a pooler."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pooler = nn.Linear(config.d_model, config.d_model) if config.pooler else None
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(config.d_model, config.classes)

    def forward(self, x: Tensor) -> Tensor:
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
