"""Sentences that lie end to end: where they begin and end, and what attention over them is computed
from. Knows tensors only.

B sentences, N queries and M keys of all of them, H heads, E width of a head, D = H * E.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Segments(NamedTuple):
    """Which keys a query may see: those of its own sentence.

    Sentence i of B has the queries from queries[i] up to queries[i + 1], and the keys likewise.
    """

    queries: Tensor  # (B + 1), int32
    keys: Tensor  # (B + 1), int32
    longest: int  # at least the tokens of any sentence on either side

    @property
    def n_sentences(self) -> int:
        """The number of sentences."""
        return len(self.queries) - 1

    def positions(self, count: int) -> Tensor:
        """The position in its sentence of each of `count` queries."""
        every = torch.arange(count, device=self.queries.device, dtype=torch.int32)
        behind = torch.searchsorted(self.queries, every, right=True)
        first = self.queries[behind - 1]
        return every - first


class Projected(NamedTuple):
    """What attention is computed from, or the gradients to that."""

    query: Tensor  # (N, D)
    both: Tensor  # (M, 2 * D), keys and values side by side


class Heads(NamedTuple):
    """How attention is computed."""

    number: int
    causal: bool

    def size(self, query: Tensor) -> int:
        """The width of a head."""
        return query.size(1) // self.number
