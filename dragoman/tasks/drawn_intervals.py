"""How far a figure may be chance: the middle 95% of what it is for sets that are drawn, with
replacement, from the one that was scored. Knows numbers; nothing of what they count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
from numpy.typing import NDArray

_DRAWS = 1000
_SEED = 12345


def interval_of_mean(values: NDArray[Any]) -> tuple[float, float]:
    """Return the interval of the mean of these values."""
    means = [values[rows].mean() for rows in _drawn(len(values))]
    return _middle(means)


def interval_of_share(table: NDArray[numpy.int64]) -> tuple[float, float]:
    """Return the interval of a share in percent, given part and whole of each item: (items, 2)."""
    shares = []
    for rows in _drawn(len(table)):
        part, whole = table[rows].sum(0).tolist()
        share = 100.0 * part / whole if whole else 0.0
        shares.append(share)
    return _middle(shares)


def _drawn(count: int) -> Iterator[NDArray[numpy.int64]]:
    """The items of each set, the same ones each time."""
    generator = numpy.random.default_rng(_SEED)
    for _ in range(_DRAWS):
        yield generator.integers(count, size=count)


def _middle(figures: list[float]) -> tuple[float, float]:
    low, high = numpy.percentile(figures, [2.5, 97.5])
    return float(low), float(high)
