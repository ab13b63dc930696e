"""Attention over sentences that lie end to end, and its gradient, in plain torch: the twin of
packed_triton.py. Sentences are laid into padded rows and taken out again.

B sentences, N queries and M keys of all of them, L tokens of the longest, H heads, E width of a
head, D = H * E.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.kernels.packed_segments import Heads, Projected, Segments

# A score; not -inf, so that the softmax of a sentence without keys is a number.
_HIDDEN = torch.finfo(torch.float32).min


def forward(of: Projected, segments: Segments, heads: Heads) -> Tensor:
    """Return what each query finds, (N, D)."""
    rows = _attention(of, segments, heads)
    weights = rows.weights.to(rows.value.dtype)
    found = weights @ rows.value
    query = of.query
    out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
    _unpad(found, segments.queries, out)
    return out


def backward(
    gradient: Tensor,
    of: Projected,
    to: Projected,
    segments: Segments,
    heads: Heads,
) -> None:
    """Fill `to`, which is laid out as `of` is."""
    rows = _attention(of, segments, heads)
    kind = rows.query.dtype
    to_found, _ = _pad(gradient, segments.queries, segments.longest, heads.number)
    to_weights = to_found @ rows.value.mT
    to_weights = to_weights.float()
    weighted = rows.weights * to_weights
    mean = weighted.sum(-1, keepdim=True)
    centred = to_weights - mean
    to_scores = rows.weights * centred * _scale(rows.query)
    to_scores = to_scores.to(kind)
    weights = rows.weights.to(kind)
    to_queries = to_scores @ rows.key
    to_keys = to_scores.mT @ rows.query
    to_values = weights.mT @ to_found
    to_both = torch.cat((to_keys, to_values), dim=1)
    _unpad(to_queries, segments.queries, to.query)
    _unpad(to_both, segments.keys, to.both)


class _Rows(NamedTuple):
    """Attention on padded rows."""

    weights: Tensor  # (B, H, L, L), in float32
    query: Tensor  # (B, H, L, E)
    key: Tensor
    value: Tensor


def _attention(of: Projected, segments: Segments, heads: Heads) -> _Rows:
    longest = segments.longest
    query, _ = _pad(of.query, segments.queries, longest, heads.number)
    keys_values, there = _pad(of.both, segments.keys, longest, 2 * heads.number)
    key, value = keys_values.chunk(2, dim=1)
    seen = there[:, None, None]
    if heads.causal:
        every = torch.ones(longest, longest, dtype=torch.bool, device=query.device)
        seen = seen & every.tril()
    scores = query @ key.mT
    scores = scores.float() * _scale(query)
    scores = scores.masked_fill(~seen, _HIDDEN)
    return _Rows(
        weights=scores.softmax(-1),
        query=query,
        key=key,
        value=value,
    )


def _scale(query: Tensor) -> float:
    """What a score is multiplied by."""
    size = query.size(-1)
    return float(size**-0.5)


def _pad(x: Tensor, starts: Tensor, longest: int, heads: int) -> tuple[Tensor, Tensor]:
    """Rows of sentences (B, heads, L, E), zeros behind their end, and where a token is, (B, L)."""
    every = torch.arange(longest, device=x.device)
    index = every + starts[:-1, None]
    inside = index < starts[1:, None]
    last = x.size(0) - 1
    rows = x[index.clamp(max=last)]
    rows = rows * inside[..., None]
    by_head = rows.unflatten(-1, (heads, -1))
    return by_head.transpose(1, 2), inside


def _unpad(x: Tensor, starts: Tensor, out: Tensor) -> None:
    """The way back: (B, heads, L, E) into the rows of `out`. Nothing here has to wait for a GPU to
    say how many rows there are, so that it can be captured."""
    every = torch.arange(out.size(0), device=x.device, dtype=starts.dtype)
    behind = torch.searchsorted(starts, every, right=True)
    sentence = (behind - 1).clamp(max=x.size(0) - 1)
    position = (every - starts[sentence]).clamp(max=x.size(2) - 1)
    rows = x[sentence, :, position]
    out.copy_(rows.flatten(1))
