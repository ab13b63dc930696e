"""A rising line through points: isotonic regression by pooling adjacent violators. Knows numbers
only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_KNOTS = 20
FEWEST_IN_A_KNOT = 20  # points, so that their mean is worth something


def rising_line(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the knots and values of a line over bins of about equally many sentences; every bin is
    a knot.

    It begins at (0, 0): of text unlike the validation set a model is less sure than of anything
    there, and a level line below the lowest knot would call such output as good as the worst of
    the validation set.
    """
    n_points = len(x)
    order = np.argsort(x, kind="stable")
    x = np.round(x[order], 9)
    y = np.clip(y[order], 0.0, 1.0)
    bins = min(_KNOTS, n_points // FEWEST_IN_A_KNOT)
    evenly = np.arange(bins) * n_points // bins
    firsts = np.searchsorted(x, x[evenly])
    firsts = np.unique(firsts)  # equal certainties stay in one bin
    sizes = np.diff(firsts, append=n_points)
    knots = np.add.reduceat(x, firsts) / sizes
    totals = np.add.reduceat(y, firsts)
    values = _pooled(totals, sizes)
    start = [0.0] if knots[0] > 0 else []
    return np.append(start, knots), np.append(start, values)


def _pooled(totals: Floats, sizes: npt.NDArray[np.int64]) -> Floats:
    """The quality of each bin, made to rise: bins whose means fall are pooled."""
    pools: list[_Pool] = []
    for total, size in zip(totals, sizes, strict=True):
        pool = _Pool(total, size, 1)
        while pools and pools[-1].mean > pool.mean:
            before = pools.pop()
            pool = _Pool(
                total=before.total + pool.total,
                sentences=before.sentences + pool.sentences,
                bins=before.bins + pool.bins,
            )
        pools.append(pool)
    means = [pool.mean for pool in pools]
    widths = [pool.bins for pool in pools]
    return np.repeat(means, widths)


class _Pool(NamedTuple):
    """Bins next to each other that count as one."""

    total: float  # the sum of the qualities
    sentences: int
    bins: int

    @property
    def mean(self) -> float:
        return self.total / self.sentences
