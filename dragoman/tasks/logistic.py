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
        standard = (rows - np.array(self.means)) / np.array(self.scales)
        return _sigmoid(standard @ np.array(self.weights) + self.bias)


def fit_logistic(rows: Floats, shares: Floats) -> Logistic:
    """Learn from rows (N, F) and shares (N,) between 0 and 1."""
    means = rows.mean(0)
    spread = rows.std(0)
    scales = np.where(spread > 1e-9, spread, 1.0)
    ones = np.ones((len(rows), 1))
    standard = np.concatenate([(rows - means) / scales, ones], axis=1)
    shrinkage = np.full(standard.shape[1], _SHRINKAGE)
    shrinkage[-1] = 0.0  # the bias is free
    weights = np.zeros(standard.shape[1])
    for _ in range(_STEPS):
        expected = _sigmoid(standard @ weights)
        gradient = standard.T @ (expected - shares) / len(rows) + shrinkage * weights
        certain = np.maximum(expected * (1.0 - expected), 1e-6)
        curvature = (standard.T * certain) @ standard / len(rows) + np.diag(shrinkage + 1e-9)
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < 1e-10:
            break
    *slopes, bias = weights.tolist()
    return Logistic(tuple(means.tolist()), tuple(scales.tolist()), tuple(slopes), bias)


def _sigmoid(values: Floats) -> Floats:
    bounded = np.clip(values, -_LARGEST, _LARGEST)
    shares: Floats = 1.0 / (1.0 + np.exp(-bounded))
    return shares
