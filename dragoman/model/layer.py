"""One layer of the stack (§3.1, figure 1): attention to itself, in the decoder also to the memory, then feed-forward."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from dragoman.model.attention import KeysValues, MultiHeadAttention
from dragoman.model.cache import LayerCache
from dragoman.model.config import ModelConfig
from dragoman.model.dropout import dropout
from dragoman.model.feedforward import FeedForward


class Residual(nn.Module):
    """LayerNorm(x + Dropout(sublayer(x))) as in §3.1 and §5.4, or x + Dropout(sublayer(LayerNorm(x))) with the norm first."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.d_model)
        self.dropout = config.dropout
        self.norm_first = config.norm_first

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.norm_first:
            return x + dropout(sublayer(self.norm(x)), self.dropout, self.training)
        return self.norm(x + dropout(sublayer(x), self.dropout, self.training))


class EncoderLayer(nn.Module):
    """The left half of figure 1."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config.d_model, config.n_heads)
        self.feedforward = FeedForward(config.d_model, config.d_ff)
        self.after_attention = Residual(config)
        self.after_feedforward = Residual(config)

    def forward(self, x: Tensor, mask: Tensor | None, record: list[Tensor] | None = None) -> Tensor:
        x = self.after_attention(x, lambda y: self.attention(y, self.attention.project(y), mask, record=record))
        return self.after_feedforward(x, self.feedforward)


class DecoderLayer(nn.Module):
    """The right half of figure 1."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config.d_model, config.n_heads)
        self.cross_attention = MultiHeadAttention(config.d_model, config.n_heads)
        self.feedforward = FeedForward(config.d_model, config.d_ff)
        self.after_attention = Residual(config)
        self.after_cross_attention = Residual(config)
        self.after_feedforward = Residual(config)

    def forward(
        self,
        x: Tensor,
        memory: KeysValues,
        memory_mask: Tensor | None,
        cache: LayerCache | None = None,
        records: tuple[list[Tensor], list[Tensor]] | tuple[None, None] = (None, None),
    ) -> Tensor:
        """x (B, T, D) in training; (B * K, 1, D), one token of each of K beams, where there is a cache."""
        x = self.after_attention(x, lambda y: self._attend_back(y, cache, records[0]))
        x = self.after_cross_attention(x, lambda y: self._attend_memory(y, memory, memory_mask, records[1]))
        return self.after_feedforward(x, self.feedforward)

    def _attend_back(self, y: Tensor, cache: LayerCache | None, record: list[Tensor] | None) -> Tensor:
        """Attention to this and earlier positions only."""
        keys_values = self.attention.project(y)
        if cache is None:
            return self.attention(y, keys_values, causal=True, record=record)
        return self.attention(y, cache.append(*keys_values), record=record)

    def _attend_memory(self, y: Tensor, memory: KeysValues, mask: Tensor | None, record: list[Tensor] | None) -> Tensor:
        """Attention to the encoder's output; the beams of a sentence are queries over one copy of it."""
        queries = y.view(memory[0].size(0), -1, y.size(-1))  # (B * K, 1, D) -> (B, K, D); no change in training
        return self.cross_attention(queries, memory, mask, record=record).view_as(y)
