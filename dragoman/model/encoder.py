"""The encoder (§3.1): a stack of identical layers over the source."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from dragoman.kernels.packed_attention import Segments
from dragoman.model.embeddings import Embeddings
from dragoman.model.inputs import ImageInput, SoundInput
from dragoman.model.layer import EncoderLayer
from dragoman.model.model_config import ModelConfig
from dragoman.model.norm import build_norm
from dragoman.model.positions import RelativeBias


class Encoder(nn.Module):
    """Source tokens (B, S), or what `inputs` takes instead -> memory (B, S, D)."""

    def __init__(self, config: ModelConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        self.embeddings: Embeddings | ImageInput | SoundInput
        if config.input == "tokens":
            self.embeddings = Embeddings(config, tokens)
        else:
            self.embeddings = ImageInput(config) if config.input == "image" else SoundInput(config)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        # With the norm after each sub-layer the last output is normed already.
        self.norm = build_norm(config) if config.norm_first else nn.Identity()
        self.relative = (
            RelativeBias(config.n_heads, both_ways=True) if config.positions == "relative" else None
        )

    def forward(
        self,
        source: Tensor,
        mask: Tensor | Segments | None = None,
        record: list[Tensor] | None = None,
    ) -> Tensor:
        """mask (B, 1, 1, S), true where there is a token; None where every row is full; segments
        where source is (S)."""
        x = self.embeddings(source, mask if isinstance(mask, Segments) else None)
        if self.relative is not None:
            places = torch.arange(x.size(1), device=x.device)
            bias = self.relative(places, places)
            mask = bias if mask is None else bias.masked_fill(~mask, -math.inf)  # type: ignore[operator]
        for layer in self.layers:
            x = layer(x, mask, record)
        return self.norm(x)
