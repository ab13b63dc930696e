"""One layer of the stack (§3.1, figure 1): attention to itself, in the decoder also to the
memory, then feed-forward."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from dragoman.kernels import decode as kernels
from dragoman.kernels.packed_attention import Segments
from dragoman.model.attention import KeysValues, Memory, MultiHeadAttention, Remember
from dragoman.model.dropout import Dropout
from dragoman.model.feedforward import FeedForward
from dragoman.model.model_config import ModelConfig
from dragoman.model.norm import build_norm


class Residual(nn.Module):
    """LayerNorm(x + Dropout(sublayer(x))) as in §3.1 and §5.4, or x +
    Dropout(sublayer(LayerNorm(x))) with the norm first."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = build_norm(config)
        self.dropout = Dropout(config.dropout)
        self.norm_first = config.norm_first

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        y = self.dropout(sublayer(x))
        normed = None
        if isinstance(self.norm, nn.LayerNorm):
            normed = kernels.add_norm(x, y, self.norm.weight, self.norm.bias, self.norm.eps)
        return self.norm(x + y) if normed is None else normed


class EncoderLayer(nn.Module):
    """The left half of figure 1."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config)
        self.feedforward = FeedForward(config)
        self.after_attention = Residual(config)
        self.after_feedforward = Residual(config)

    def forward(
        self, x: Tensor, mask: Tensor | Segments | None, record: list[Tensor] | None = None
    ) -> Tensor:
        x = self.after_attention(x, lambda y: self.attention(y, mask=mask, record=record))
        return self.after_feedforward(x, self.feedforward)


class DecoderLayer(nn.Module):
    """The right half of figure 1; without the middle where there is no encoder to look at."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config)
        if config.encoder_layers:
            self.cross_attention = MultiHeadAttention(config, across=True)
        self.feedforward = FeedForward(config)
        self.after_attention = Residual(config)
        if config.encoder_layers:
            self.after_cross_attention = Residual(config)
        self.after_feedforward = Residual(config)

    def forward(
        self,
        x: Tensor,
        memory: Memory | None,
        memory_mask: Tensor | Segments | None,
        records: tuple[list[Tensor], list[Tensor]] | tuple[None, None] = (None, None),
        own: Tensor | Segments | None = None,
        keep: Callable[[Tensor], None] | None = None,
    ) -> Tensor:
        """x (B, T, D): the whole target, each position seeing itself and those before it."""
        x = self.after_attention(
            x, lambda y: self.attention(y, mask=own, causal=True, record=records[0], keep=keep)
        )
        if memory is not None:
            x = self.after_cross_attention(
                x, lambda y: self.cross_attention(y, memory, memory_mask, record=records[1])
            )
        return self.after_feedforward(x, self.feedforward)

    def step(
        self,
        x: Tensor,
        memory: KeysValues | None,
        mask: Tensor | None,
        remember: Remember,
        ancestors: Tensor | None,
        last: Tensor,
        record: list[Tensor] | None,
    ) -> Tensor:
        """x (B, K, D): the newest position of K beams, its number being `last` (1,)."""
        x = self.after_attention(
            x, lambda y: self.attention.look_back(y, remember, ancestors, last)
        )
        if memory is not None:
            x = self.after_cross_attention(
                x, lambda y: self.cross_attention.look_at(y, memory, mask, record)
            )
        return self.after_feedforward(x, self.feedforward)
