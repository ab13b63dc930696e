"""The encoder (§3.1): a stack of identical layers over the source."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from dragoman.model.embeddings import Embeddings
from dragoman.model.layer import Layer
from dragoman.model.model_config import ModelConfig
from dragoman.model.norm import build_norm
from dragoman.model.positions import RelativeBias
from dragoman.model.sight import Mask, Record, Sight

if TYPE_CHECKING:
    from dragoman.model.inputs import ImageInput, SoundInput


class Encoder(nn.Module):
    """Source tokens (B, S), or an image or sound instead -> memory (B, S, D)."""

    def __init__(self, config: ModelConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        self.embeddings = _inputs(config, tokens)
        self.layers = nn.ModuleList(_layer(config) for _ in range(config.encoder_layers))
        # With the norm after each sub-layer the last output is normed already.
        self.norm = build_norm(config) if config.norm_first else nn.Identity()
        self.relative: RelativeBias | None = None
        if config.positions == "relative":
            self.relative = RelativeBias(config.n_heads, both_ways=True)

    def forward(self, source: Tensor, mask: Mask = None, record: Record = None) -> Tensor:
        """`mask` (B, 1, 1, S) is true where there is a token; None: every row is full."""
        x = self.embeddings(source)
        if self.relative is not None:
            mask = self._biased(mask, x.size(1))
        own = Sight(mask=mask, record=record)
        for layer in self.layers:
            x = layer(x, own)
        return self.norm(x)

    def _biased(self, mask: Mask, length: int) -> Tensor:
        """The bias of each distance, (1, H, S, S), and -inf where there is no token."""
        assert self.relative is not None
        positions = torch.arange(length, device=self.relative.weight.device)
        bias: Tensor = self.relative(positions, positions)
        return bias if mask is None else bias.masked_fill(~mask, -math.inf)


def _inputs(config: ModelConfig, tokens: nn.Embedding) -> Embeddings | ImageInput | SoundInput:
    """The embeddings of the paper, or what reads an image or sound instead."""
    if config.input == "tokens":
        return Embeddings(config, tokens)
    from dragoman.model.inputs import ImageInput, SoundInput

    return ImageInput(config) if config.input == "image" else SoundInput(config)


def _layer(config: ModelConfig) -> nn.Module:
    """A layer of the paper, or of the few in the family that have others."""
    if config.parallel:
        from dragoman.model.parallel_layer import ParallelLayer

        return ParallelLayer(config)
    if config.positions == "distances":
        from dragoman.model.distance_attention import DistanceLayer

        return DistanceLayer(config)
    return Layer(config)
