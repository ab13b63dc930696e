"""The decoder (§3.1): a stack of identical layers over the target so far, looking at the memory."""

from __future__ import annotations

from torch import Tensor, nn

from dragoman.model.attention import KeysValues
from dragoman.model.cache import DecoderState, LayerCache
from dragoman.model.config import ModelConfig
from dragoman.model.embeddings import Embeddings
from dragoman.model.layer import DecoderLayer


class Decoder(nn.Module):
    """Target tokens (B, T), each seeing those before it, and the memory -> (B, T, D)."""

    def __init__(self, config: ModelConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        self.embeddings = Embeddings(config, tokens)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.norm = nn.LayerNorm(config.d_model) if config.norm_first else nn.Identity()

    def forward(
        self,
        target: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        records: tuple[list[Tensor], list[Tensor]] | tuple[None, None] = (None, None),
    ) -> Tensor:
        """The whole target at once, as in training."""
        x = self.embeddings(target)
        for layer in self.layers:
            keys_values: KeysValues = layer.cross_attention.project(memory)  # type: ignore[union-attr, operator]
            x = layer(x, keys_values, mask, records=records)
        return self.norm(x)

    def start(self, memory: Tensor, mask: Tensor | None) -> DecoderState:
        """The state before the first step."""
        keys_values: list[KeysValues] = [layer.cross_attention.project(memory) for layer in self.layers]  # type: ignore[union-attr, operator]
        return DecoderState(keys_values, mask, [LayerCache() for _ in self.layers])

    def step(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """The newest token of each beam, (B, K) -> (B, K, D); the state moves on by one position."""
        state.beams = tokens.size(1)
        x = self.embeddings(tokens.reshape(-1, 1), start=state.layers[0].length)  # (B * K, 1, D)
        for layer, memory, cache in zip(self.layers, state.memory, state.layers, strict=True):
            x = layer(x, memory, state.memory_mask, cache)
        return self.norm(x).view(*tokens.shape, -1)
