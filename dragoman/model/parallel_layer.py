"""A layer whose attention and feed-forward network read the same norm and are summed, as in PaLM
(Chowdhery et al. 2022) and GPT-J: x + Attention(Norm(x)) + FFN(Norm(x)). Of the two, neither waits
for the other. Knows no stack and no tokens."""

from __future__ import annotations

from torch import Tensor, nn

from dragoman.model.attention import MultiHeadAttention
from dragoman.model.feedforward import FeedForward
from dragoman.model.model_config import ModelConfig
from dragoman.model.norm import Residual
from dragoman.model.sight import Past, Sight


class ParallelLayer(nn.Module):
    """Attention to itself and feed-forward, side by side."""

    def __init__(self, config: ModelConfig, causal: bool = False) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config, causal=causal)
        self.feedforward = FeedForward(config, config.d_ff)
        self.after_both = Residual(config)

    def forward(self, x: Tensor, own: Sight, across: None = None) -> Tensor:
        """Whole sequences, (B, T, D) -> (B, T, D)."""
        return self.after_both(x, lambda y: self.attention(y, *own) + self.feedforward(y))

    def step(self, x: Tensor, own: Past, across: None = None) -> Tensor:
        """The newest position of K beams, (B, K, D) -> (B, K, D)."""
        return self.after_both(x, lambda y: self.attention.step(y, *own) + self.feedforward(y))
