"""The decoder (§3.1): a stack of identical layers over the target so far, looking at the memory.

B sentences, S source and T target positions, K beams, D d_model.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor, nn

from dragoman.model.cache import DecoderState, LayerCache
from dragoman.model.embeddings import Embeddings
from dragoman.model.layer import Layer
from dragoman.model.model_config import ModelConfig
from dragoman.model.norm import build_norm
from dragoman.model.positions import RelativeBias
from dragoman.model.sight import KeysValues, Mask, Past, Record, Sight


class Decoder(nn.Module):
    """Target tokens (B, T), each seeing those before it, and the memory -> (B, T, D)."""

    def __init__(self, config: ModelConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        self.embeddings = Embeddings(config, tokens)
        self.layers = nn.ModuleList(_layer(config) for _ in range(config.decoder_layers))
        self.norm = build_norm(config) if config.norm_first else nn.Identity()
        self.relative: RelativeBias | None = None
        if config.positions == "relative":
            self.relative = RelativeBias(config.n_heads, both_ways=False)

    def forward(
        self,
        target: Tensor,
        memory: Tensor | None,
        mask: Mask = None,
        records: tuple[Record, Record] = (None, None),
    ) -> Tensor:
        """The whole target at once, as in training.

        The two records receive the weights of attention to itself and to the memory.
        """
        x = self.embeddings(target)
        own = Sight(mask=self._biased(target.size(1)), record=records[0])
        across = None if memory is None else Sight(memory, mask, records[1])
        for layer in self.layers:
            x = layer(x, own, across)
        return self.norm(x)

    def start(self, memory: Tensor | None, mask: Mask) -> DecoderState:
        """The state before the first step."""
        device = self.embeddings.tokens.weight.device if memory is None else memory.device
        # Added to attention's scores at every step, the mask is turned into numbers only once.
        if memory is not None and mask is not None:
            seen = mask
            mask = torch.zeros_like(seen, dtype=memory.dtype)
            mask.masked_fill_(~seen, -math.inf)
        return DecoderState(
            memory=[_keys_values(layer, memory) for layer in self.layers],
            memory_mask=mask,
            layers=[LayerCache() for _ in self.layers],
            position=torch.zeros(1, dtype=torch.long, device=device),
        )

    def read(self, tokens: Tensor, state: DecoderState, beams: int = 1) -> Tensor:
        """The first tokens (B, T), at least one, of a decoder alone -> (B, T, D).

        One pass does what a step for each of them would do; all beams have them in common.
        """
        assert self.relative is None
        x = self.embeddings(tokens)
        for layer, cache in zip(self.layers, state.layers, strict=True):
            x = layer(x, Sight(keep=partial(cache.fill, beams=beams)))
        state.begin(tokens.size(1), beams, x)
        return self.norm(x)

    def step(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """The newest token of each beam, (B, K) -> (B, K, D).

        The state moves on by one position.
        """
        position = state.position
        x = self.embeddings.at(tokens, position)  # (B, K, D)
        seen, ancestors = state.extend(tokens.size(1), x)
        if self.relative is not None:
            ancestors = self._biased_ancestors(ancestors, position, seen, tokens.size(1))
        record = state.record
        if record is not None:
            record.clear()
        for layer, memory, cache in zip(self.layers, state.memory, state.layers, strict=True):
            append = partial(cache.append, position=position, seen=seen)
            own = Past(append, ancestors, position)
            across = None
            if memory is not None:
                across = Past(memory, state.memory_mask, position, record)
            x = layer.step(x, own, across)  # type: ignore[operator]
        state.advance()
        return self.norm(x)

    def _biased(self, length: int) -> Mask:
        """With relative positions, the bias of each distance, -inf where a key lies ahead."""
        if self.relative is None:
            return None
        positions = torch.arange(length, device=self.relative.weight.device)
        bias: Tensor = self.relative(positions, positions)  # (1, H, T, T)
        return bias.masked_fill(positions > positions[:, None], -math.inf)

    def _biased_ancestors(self, ancestors: Mask, position: Tensor, seen: int, beams: int) -> Tensor:
        assert self.relative is not None
        positions = torch.arange(seen, device=position.device)
        of_positions = self.relative(position, positions)
        bias: Tensor = of_positions.repeat_interleave(beams, dim=3)
        return bias if ancestors is None else ancestors + bias


def _layer(config: ModelConfig) -> nn.Module:
    """A layer of the paper, or one whose two halves stand side by side."""
    if config.parallel:
        from dragoman.model.parallel_layer import ParallelLayer

        return ParallelLayer(config, causal=True)
    return Layer(config, causal=True, across=config.encoder_layers > 0)


def _keys_values(layer: nn.Module, memory: Tensor | None) -> KeysValues | None:
    """What a layer sees of the memory at every step; nothing where there is no encoder."""
    if memory is None:
        return None
    key, value = layer.cross_attention.keys_values(memory)  # type: ignore[union-attr, operator]
    return key.contiguous(), value.contiguous()
