"""Where sentences that lie end to end begin and end. Knows two tensors."""

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

    def positions(self, count: int) -> Tensor:
        """The position in its sentence of each of `count` queries."""
        every = torch.arange(count, device=self.queries.device, dtype=torch.int32)
        sentences = torch.searchsorted(self.queries, every, right=True) - 1
        return every - self.queries[sentences]
