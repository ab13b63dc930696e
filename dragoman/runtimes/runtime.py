"""What a runtime is asked and what it answers. Knows tokens; no text and no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search_options import SearchOptions


@dataclass(frozen=True)
class Request:
    """One sentence to translate, in tokens."""

    tokens: Sequence[int]  # of the source, without the end
    prefix: Sequence[int] = ()  # target tokens that the output begins with
    terms: Sequence[
        Sequence[Sequence[int]]
    ] = ()  # of each term one of its forms must occur, a form being target tokens
    places: Sequence[Sequence[int]] = ()  # of each term, the source tokens that it translates


class Runtime(Protocol):
    """A model that is loaded and ready."""

    name: str

    def batch_rows(self, width: int, beam: int) -> int:
        """Sentences of up to `width` source tokens that one batch should hold, at least 1."""

    def search(self, batch: Sequence[Request], options: SearchOptions) -> list[list[Hypothesis]]:
        """The n best of each request, best first, and always at least one."""

    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[numpy.ndarray]:
        """For each pair (target + 1, source + 1): where each target token and the end looked in
        the source; rows sum to 1."""
