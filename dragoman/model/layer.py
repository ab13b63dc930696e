"""One layer of a stack (§3.1): what figure 1 draws in a grey box. Knows no stack and no tokens."""

from __future__ import annotations

from torch import Tensor, nn

from dragoman.model.attention import MultiHeadAttention
from dragoman.model.feedforward import FeedForward
from dragoman.model.model_config import ModelConfig
from dragoman.model.norm import Residual
from dragoman.model.sight import Past, Sight


class Layer(nn.Module):
    """Attention to itself, in a decoder also to the memory of an encoder, then feed-forward."""

    def __init__(self, config: ModelConfig, causal: bool = False, across: bool = False) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config, causal=causal)
        if across:
            self.cross_attention = MultiHeadAttention(config, across=True)
        d_ff = config.decoder_d_ff if causal and config.decoder_d_ff else config.d_ff
        self.feedforward = FeedForward(config, d_ff)
        self.after_attention = Residual(config)
        if across:
            self.after_cross_attention = Residual(config)
        self.after_feedforward = Residual(config)

    def forward(self, x: Tensor, own: Sight, across: Sight | None = None) -> Tensor:
        """Whole sequences, (B, T, D) -> (B, T, D)."""
        x = self.after_attention(x, lambda y: self.attention(y, *own))
        if across is not None:
            x = self.after_cross_attention(x, lambda y: self.cross_attention(y, *across))
        return self.after_feedforward(x, self.feedforward)

    def step(self, x: Tensor, own: Past, across: Past | None = None) -> Tensor:
        """The newest position of K beams, (B, K, D) -> (B, K, D)."""
        x = self.after_attention(x, lambda y: self.attention.step(y, *own))
        if across is not None:
            x = self.after_cross_attention(x, lambda y: self.cross_attention.step(y, *across))
        return self.after_feedforward(x, self.feedforward)
