"""The coverage penalty of Wu et al. (2016): an output pays for source tokens that it never looked
at. Knows numbers only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search_options import SearchOptions

_LEAST = 1e-6


def ranked_by_coverage(
    found: Sequence[Sequence[Hypothesis]],
    attention: Sequence[numpy.ndarray],
    options: SearchOptions,
) -> list[list[Hypothesis]]:
    """Return the n best hypotheses of each sentence, each paying for what it left unread.

    attention has a table (target, source) for every hypothesis of every sentence, in order.
    """
    tables = iter(attention)
    ranked = []
    for row in found:
        paid = []
        for one in row:
            penalty = coverage_penalty(next(tables))
            score = one.score + options.coverage * penalty
            paid.append(replace(one, score=score))
        paid.sort(key=lambda one: (one.finished, one.score), reverse=True)
        ranked.append(paid[: options.nbest])
    return ranked


def coverage_penalty(attention: numpy.ndarray) -> float:
    """Return the sum over the source of log(min(attention received, 1)), which is at most 0.

    attention is (target, source).
    """
    received = numpy.clip(attention.sum(0), _LEAST, 1.0)
    return float(numpy.log(received).sum())
