"""How well what was expected agrees with what came: calibration error, correlation, ranks. Knows
numbers only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_BINS = 10
_FLAT = 1e-12  # a deviation below which values are all the same


def calibration_error(expected: Floats, qualities: Floats) -> float:
    """Return the expected calibration error, over bins of equally many sentences."""
    order = np.argsort(expected, kind="stable")
    gaps = expected - qualities
    bins = np.array_split(gaps[order], _BINS)
    return sum(abs(float(of_bin.sum())) for of_bin in bins) / len(qualities)


def correlation(one: Floats, other: Floats) -> float:
    """Return Pearson's correlation; 0 where one side is all the same."""
    if min(one.std(), other.std()) < _FLAT:
        return 0.0
    matrix = np.corrcoef(one, other)
    return float(matrix[0, 1])


def ranks(values: Floats) -> Floats:
    """Return the rank of each value; equal ones share their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: Floats = last - (counts - 1) / 2.0
    return means[place]
