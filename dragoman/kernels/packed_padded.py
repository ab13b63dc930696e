"""Attention over sentences that lie end to end, and its gradient, in plain torch: the twin of
packed_triton.py. Sentences are laid into padded rows and taken out again.

B sentences, N queries and M keys of all of them, L tokens of the longest, H heads, E width of a
head, D = H * E.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.kernels.packed_segments import Segments


def forward(query: Tensor, both: Tensor, segments: Segments, heads: int, causal: bool) -> Tensor:
    """query (N, D), both (M, 2 * D): keys and values side by side -> (N, D)."""
    out = torch.empty(query.size(0), query.size(1), dtype=query.dtype, device=query.device)
    weights, _, _, value = _attention(query, both, segments, heads, causal)
    _unpad(weights.to(value.dtype) @ value, segments.queries, out)
    return out


def backward(
    gradient: Tensor,
    query: Tensor,
    both: Tensor,
    to_query: Tensor,
    to_both: Tensor,
    segments: Segments,
    heads: int,
    causal: bool,
) -> None:
    """Fill `to_query` and `to_both`, which are laid out as `query` and `both` are."""
    weights, q, k, v = _attention(query, both, segments, heads, causal)
    g, _ = _pad(gradient, segments.queries, segments.longest, heads)
    to_weights = (g @ v.transpose(-2, -1)).float()
    centred = to_weights - (weights * to_weights).sum(-1, keepdim=True)
    to_scores = (weights * centred * q.size(-1) ** -0.5).to(q.dtype)
    to_keys = to_scores.transpose(-2, -1) @ q
    to_values = weights.to(q.dtype).transpose(-2, -1) @ g
    _unpad(to_scores @ k, segments.queries, to_query)
    _unpad(torch.cat((to_keys, to_values), dim=1), segments.keys, to_both)


def _attention(
    query: Tensor, both: Tensor, segments: Segments, heads: int, causal: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weights (B, H, L, L) in float32, and queries, keys and values (B, H, L, E)."""
    longest = segments.longest
    q, _ = _pad(query, segments.queries, longest, heads)
    keys_values, there = _pad(both, segments.keys, longest, 2 * heads)
    key, value = keys_values.chunk(2, dim=1)
    seen = there[:, None, None]
    if causal:
        before = torch.ones(longest, longest, dtype=torch.bool, device=q.device).tril()
        seen = seen & before
    scores = (q @ key.transpose(-2, -1)).float() * q.size(-1) ** -0.5
    # A sentence without keys sees nothing, and its softmax is still a number.
    weights = scores.masked_fill(~seen, torch.finfo(torch.float32).min).softmax(-1)
    return weights, q, key, value


def _pad(x: Tensor, starts: Tensor, longest: int, heads: int) -> tuple[Tensor, Tensor]:
    """Rows of sentences (B, heads, L, E), zeros behind their end, and where a token is, (B, L)."""
    index = torch.arange(longest, device=x.device) + starts[:-1, None]
    inside = index < starts[1:, None]
    rows = x[index.clamp(max=x.size(0) - 1)] * inside[..., None]
    return rows.unflatten(-1, (heads, -1)).transpose(1, 2), inside


def _unpad(x: Tensor, starts: Tensor, out: Tensor) -> None:
    """The way back: (B, heads, L, E) into the rows of `out`."""
    lengths = starts[1:] - starts[:-1]
    inside = torch.arange(x.size(2), device=x.device) < lengths[:, None]
    out.copy_(x.transpose(1, 2).flatten(2)[inside])
