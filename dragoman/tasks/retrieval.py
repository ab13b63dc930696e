"""How often the nearest vector of the other side belongs to the right text. Knows vectors and which
texts are the same; no model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from dragoman.errors import InputError
from dragoman.tasks.drawn_intervals import interval_of_mean

Vectors = NDArray[numpy.float32]
Flags = NDArray[numpy.bool_]
_AT_ONCE = 1024  # rows of the table of cosines


@dataclass(frozen=True)
class RetrievalScores:
    """Shares from 0 to 100, over the pairs of a set."""

    accuracy: float  # the mean of both directions
    there: float  # of the second texts, the nearest to the first of a pair is its partner
    back: float
    pairs: int
    low: float  # 95% interval of the accuracy, by resampling pairs
    high: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)

    def lines(self) -> list[str]:
        """For people to read."""
        return [
            f"retrieval {self.accuracy:.1f} (95%: {self.low:.1f} to {self.high:.1f})  "
            f"first to second text {self.there:.1f}, back {self.back:.1f}, {self.pairs:,} pairs",
            "how often the nearest of all texts of the other side is the right one",
        ]


def score_retrieval(
    sources: Vectors, targets: Vectors, pairs: Sequence[tuple[Any, Any]]
) -> RetrievalScores:
    """Return the scores of vectors of length 1, a row for either text of each pair; `pairs` are
    the texts themselves, or anything that is the same where texts are."""
    if not len(sources):
        raise InputError("there are no pairs to score; the files are empty")
    there, back = found_right(sources, targets, pairs)
    both = (there.astype(float) + back) / 2
    low, high = interval_of_mean(both)
    return RetrievalScores(
        accuracy=100.0 * float(both.mean()),
        there=100.0 * float(there.mean()),
        back=100.0 * float(back.mean()),
        pairs=len(both),
        low=100.0 * low,
        high=100.0 * high,
    )


def found_right(
    sources: Vectors, targets: Vectors, pairs: Sequence[tuple[Any, Any]]
) -> tuple[Flags, Flags]:
    """Return for each pair whether the nearest to its first text is right, and the nearest to its
    second. Any text that stands beside the same text somewhere is right."""
    known = set(pairs)
    there = _nearest(sources, targets)
    back = _nearest(targets, sources)
    of_sources = []
    of_targets = []
    for pair, nearest, nearest_back in zip(pairs, there, back, strict=True):
        source, target = pair
        of_sources.append((source, pairs[nearest][1]) in known)
        of_targets.append((pairs[nearest_back][0], target) in known)
    return numpy.array(of_sources, bool), numpy.array(of_targets, bool)


def _nearest(queries: Vectors, keys: Vectors) -> list[int]:
    """The row of the nearest key to each query."""
    rows: list[int] = []
    for first in range(0, len(queries), _AT_ONCE):
        some = queries[first : first + _AT_ONCE]
        cosines = some @ keys.T
        nearest = cosines.argmax(1)
        rows += nearest.tolist()
    return rows
