"""The coverage penalty of Wu et al. (2016): an output pays for source tokens that it never looked
at. Knows numbers only."""

from __future__ import annotations

import numpy

_LEAST = 1e-6


def coverage_penalty(attention: numpy.ndarray) -> float:
    """Return the sum over the source of log(min(attention received, 1)), which is at most 0.

    attention is (target, source).
    """
    received = numpy.clip(attention.sum(0), _LEAST, 1.0)
    return float(numpy.log(received).sum())
