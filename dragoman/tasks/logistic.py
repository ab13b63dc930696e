"""Logistic regression of a share on a few numbers, by Newton's method: small, exact and open to
view. Knows numbers only.

N examples, F features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_SHRINKAGE = 0.01  # pulls every weight towards 0, so that few examples cannot mislead
_STEPS = 50
_LARGEST = 30.0  # of the sum, beyond which nothing changes


@dataclass(frozen=True)
class Logistic:
    """1 / (1 + exp(-(bias + weights · (x - means) / scales)))."""

    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float

    def __call__(self, rows: Floats) -> Floats:
        """Return the share to expect of each row: (N, F) -> (N,), or (F,) -> a single one."""
        means = np.array(self.means)
        scales = np.array(self.scales)
        weights = np.array(self.weights)
        standard = (rows - means) / scales
        return _sigmoid(standard @ weights + self.bias)


def fit_logistic(rows: Floats, shares: Floats) -> Logistic:
    """Learn from rows (N, F) and shares (N,) between 0 and 1."""
    means = rows.mean(0)
    spread = rows.std(0)
    scales = np.where(spread > 1e-9, spread, 1.0)
    standard = (rows - means) / scales
    ones = np.ones((len(rows), 1))
    weights = _weights(np.concatenate([standard, ones], axis=1), shares)
    *slopes, bias = weights.tolist()
    return Logistic(
        means=tuple(means.tolist()),
        scales=tuple(scales.tolist()),
        weights=tuple(slopes),
        bias=bias,
    )


def _weights(rows: Floats, shares: Floats) -> Floats:
    """The weights (F + 1,) of rows (N, F + 1) whose last column is 1, that of the bias."""
    n_rows, n_columns = rows.shape
    shrinkage = np.full(n_columns, _SHRINKAGE)
    shrinkage[-1] = 0.0  # the bias is free
    weights = np.zeros(n_columns)
    for _ in range(_STEPS):
        expected = _sigmoid(rows @ weights)
        error = expected - shares
        gradient = rows.T @ error / n_rows + shrinkage * weights
        uncertain = expected * (1.0 - expected)
        weighted = rows.T * np.maximum(uncertain, 1e-6)
        curvature = weighted @ rows / n_rows + np.diag(shrinkage + 1e-9)
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < 1e-10:
            break
    return weights


def _sigmoid(values: Floats) -> Floats:
    bounded = np.clip(values, -_LARGEST, _LARGEST)
    shares: Floats = 1.0 / (1.0 + np.exp(-bounded))
    return shares
