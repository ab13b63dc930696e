"""A rising line through points: isotonic regression by pooling adjacent violators. Knows numbers
only."""

from __future__ import annotations

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
    order = np.argsort(x, kind="stable")
    x = np.round(x[order], 9)
    y = np.clip(y[order], 0.0, 1.0)
    bins = min(_KNOTS, len(x) // FEWEST_IN_A_KNOT)
    evenly = x[np.arange(bins) * len(x) // bins]
    firsts = np.unique(np.searchsorted(x, evenly))  # equal certainties stay in one bin
    sizes = np.diff(firsts, append=len(x))
    values = _pooled(np.add.reduceat(y, firsts), sizes)
    knots = np.add.reduceat(x, firsts) / sizes
    start = [0.0] if knots[0] > 0 else []
    return np.append(start, knots), np.append(start, values)


def _pooled(totals: Floats, sizes: npt.NDArray[np.int64]) -> Floats:
    """The quality of each bin, made to rise: bins whose means fall are pooled."""
    pools: list[Floats] = []  # sum of the qualities, number of sentences, number of bins
    for total, size in zip(totals, sizes, strict=True):
        pool = np.array([total, size, 1.0])
        while pools and pools[-1][0] / pools[-1][1] > pool[0] / pool[1]:
            pool += pools.pop()
        pools.append(pool)
    qualities, sentences, widths = np.stack(pools, axis=1)
    return np.repeat(qualities / sentences, widths.astype(int))
