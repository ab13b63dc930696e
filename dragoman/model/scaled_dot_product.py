"""Scaled dot-product attention (§3.2.1; figure 2, left), in one head or in many side by side.
Knows queries, keys, values and masks.

B sentences, H heads, T queries, S keys, E width of a head.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.model.sight import KeysValues, Mask, Record


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Mask = None,
    causal: bool = False,
) -> tuple[Tensor, Tensor]:
    """Equation 1: softmax(Q K^T / sqrt(d_k)) V (…, T, E), and its weights (…, T, S).

    If `causal`, there is no other mask, and query t sees the keys up to t.
    """
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (…, T, S)
    if causal:
        assert mask is None
        every = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device)
        mask = every.tril()
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, -math.inf)
    elif mask is not None:
        scores = scores + mask
    weights = scores.softmax(-1)
    return weights @ value, weights


def attend(
    query: Tensor,
    keys_values: KeysValues | Tensor,
    mask: Mask = None,
    causal: bool = False,
    record: Record = None,
) -> Tensor:
    """Equation 1 by torch's own kernel, unless the weights are wanted for the record."""
    key, value = keys_values
    if record is None:
        return F.scaled_dot_product_attention(query, key, value, mask, is_causal=causal)
    output, weights = attention(query, key, value, mask, causal)
    record.append(weights)
    return output


def split_queries(x: Tensor, n_heads: int) -> Tensor:
    """(B, T, H * E) -> (B, H, T, E)."""
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def split_keys_values(x: Tensor, kv_heads: int, n_heads: int) -> Tensor:
    """All keys, then all values, of `kv_heads` heads (B, T, 2 * kv_heads * E) -> (2, B, H, T, E).

    Where there are fewer of them than heads of queries, each serves a group of those.
    """
    both = x.unflatten(-1, (2, kv_heads, -1)).permute(2, 0, 3, 1, 4)
    if kv_heads == n_heads:
        return both
    return both.repeat_interleave(n_heads // kv_heads, dim=2)


def join_heads(x: Tensor) -> Tensor:
    """(B, H, T, E) -> (B, T, H * E)."""
    return x.transpose(1, 2).flatten(2)
