"""The decoder (§3.1): a stack of identical layers over the target so far, looking at the memory."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor, nn

from dragoman.kernels.packed_attention import Segments
from dragoman.model.attention import KeysValues, Memory, MultiHeadAttention
from dragoman.model.cache import DecoderState, LayerCache
from dragoman.model.embeddings import Embeddings
from dragoman.model.layer import DecoderLayer
from dragoman.model.model_config import ModelConfig
from dragoman.model.norm import build_norm
from dragoman.model.positions import RelativeBias


class Decoder(nn.Module):
    """Target tokens (B, T), each seeing those before it, and the memory -> (B, T, D)."""

    def __init__(self, config: ModelConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        self.embeddings = Embeddings(config, tokens)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.norm = build_norm(config) if config.norm_first else nn.Identity()
        self.relative = (
            RelativeBias(config.n_heads, both_ways=False)
            if config.positions == "relative"
            else None
        )

    def forward(
        self,
        target: Tensor,
        memory: Tensor | None,
        mask: Tensor | Segments | None = None,
        records: tuple[list[Tensor], list[Tensor]] | tuple[None, None] = (None, None),
        own: Segments | None = None,
    ) -> Tensor:
        """The whole target at once, as in training; `own` are its segments where sentences lie
        end to end."""
        x = self.embeddings(target, own)
        places = torch.arange(target.size(-1), device=target.device)
        looks = own if self.relative is None else self.relative(places, places)
        for layer in self.layers:
            keys_values: Memory | None = None
            if memory is not None:
                keys_values = layer.cross_attention.project(memory)  # type: ignore[union-attr, operator]
            x = layer(x, keys_values, mask, records, looks)
        return self.norm(x)

    def start(self, memory: Tensor | None, mask: Tensor | None) -> DecoderState:
        """The state before the first step."""
        if memory is None:
            position = torch.zeros(1, dtype=torch.long, device=self.embeddings.tokens.weight.device)
            return DecoderState(
                [None for _ in self.layers], None, [LayerCache() for _ in self.layers], position
            )
        attentions: list[MultiHeadAttention] = [layer.cross_attention for layer in self.layers]  # type: ignore[misc]
        projected: list[KeysValues] = [one.project(memory) for one in attentions]  # type: ignore[misc]
        keys_values: list[KeysValues | None] = [
            (key.contiguous(), value.contiguous()) for key, value in projected
        ]
        if (
            mask is not None
        ):  # added to attention's scores at every step, it need not be turned into numbers there
            mask = torch.zeros_like(mask, dtype=memory.dtype).masked_fill_(~mask, -math.inf)
        position = torch.zeros(1, dtype=torch.long, device=memory.device)
        return DecoderState(keys_values, mask, [LayerCache() for _ in self.layers], position)

    def read(self, tokens: Tensor, state: DecoderState, beams: int = 1) -> Tensor:
        """The first tokens (B, T), at least one, of a decoder alone -> (B, T, D): as so many
        steps, in one pass. All beams have them before their own."""
        assert self.relative is None
        x = self.embeddings(tokens)
        for layer, cache in zip(self.layers, state.layers, strict=True):
            x = layer(x, None, None, keep=partial(cache.fill, beams=beams))
        state.begin(tokens.size(1), beams, x)
        return self.norm(x)

    def step(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """The newest token of each beam, (B, K) -> (B, K, D); the state moves on by one position."""
        x = self.embeddings.at(tokens, state.position)  # (B, K, D)
        seen, ancestors = state.extend(tokens.size(1), x)
        if self.relative is not None:
            bias = self.relative(
                state.position, torch.arange(seen, device=x.device)
            ).repeat_interleave(tokens.size(1), dim=3)
            ancestors = bias if ancestors is None else ancestors + bias
        looks: list[Tensor] | None = [] if state.watched else None
        for layer, memory, cache in zip(self.layers, state.memory, state.layers, strict=True):
            remember = partial(cache.append, position=state.position, seen=seen)
            x = layer.step(x, memory, state.memory_mask, remember, ancestors, state.position, looks)  # type: ignore[operator]
        state.looks = looks
        state.advance()
        return self.norm(x)
