"""Normalisation: over the mean and the variance (Ba et al. 2016), as in the paper, or over the
root mean square alone."""

from __future__ import annotations

from torch import nn

from dragoman.model.model_config import ModelConfig


def build_norm(config: ModelConfig) -> nn.LayerNorm | nn.RMSNorm:
    """Over the width of the model."""
    kind = nn.LayerNorm if config.norm == "layer" else nn.RMSNorm
    return kind(config.d_model, eps=config.norm_epsilon)
