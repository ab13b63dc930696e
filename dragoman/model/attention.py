"""Attention (§3.2). Knows queries, keys, values and masks; how they came to be is the layer's business.

B sentences, T queries, S keys, D d_model, H heads, E = D / H.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

KeysValues = tuple[Tensor, Tensor]  # each (B, H, S, E)


def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """softmax(Q K^T / sqrt(d_k)) V, equation 1, with its weights (…, T, S). `mask` is true where a key may be seen."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (…, T, S)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    if causal:
        ahead = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(ahead, -math.inf)
    weights = scores.softmax(-1)
    return weights @ value, weights


class MultiHeadAttention(nn.Module):
    """§3.2.2: h attentions side by side in subspaces of d_model / h, their results joined by one more matrix."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key_value = nn.Linear(d_model, 2 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def project(self, x: Tensor) -> KeysValues:
        """Keys and values of x (B, S, D), a head each."""
        key, value = self._heads(self.key_value(x), 2 * self.n_heads).chunk(2, dim=1)
        return key, value

    def forward(
        self,
        x: Tensor,
        keys_values: KeysValues,
        mask: Tensor | None = None,
        causal: bool = False,
        record: list[Tensor] | None = None,
    ) -> Tensor:
        """What x (B, T, D) finds among the keys; the weights (B, H, T, S) go to `record` where one is given."""
        query, (key, value) = self._heads(self.query(x), self.n_heads), keys_values
        if record is None:
            heads = F.scaled_dot_product_attention(query, key, value, mask, is_causal=causal)
        else:
            heads, weights = attention(query, key, value, mask, causal)
            record.append(weights)
        return self.out(heads.transpose(1, 2).flatten(2))  # (B, T, D)

    @staticmethod
    def _heads(x: Tensor, count: int) -> Tensor:
        return x.unflatten(-1, (count, -1)).transpose(1, 2)  # (B, T, count * E) -> (B, count, T, E)
