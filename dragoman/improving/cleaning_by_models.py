"""Which pairs the models of both directions find unlikely. Knows pairs and scores; no files.

The score of a pair is the dual conditional cross-entropy (Junczys-Dowmunt 2018): how unlikely each
side is to a model that reads the other, and how far the two disagree. What is far below the usual
is dropped. Of pairs with the same source, which are often one translation in several spellings or
qualities, the best is kept; and a side that is in the other side's language is none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.data.swapped import Sides
from dragoman.improving.forced_scores import ForcedScorer

Pair = tuple[str, str]
UNLIKELY = "unlikely"
LANGUAGE = "wrong language"
LENGTH = "length"
REPEATED = "a better translation of the same"

_BEYOND = 3.0  # times the usual deviation from the middle
_MOST = 0.2  # of the pairs, at most, are dropped as unlikely
_USUAL = 1.4826  # the median deviation of a normal distribution, as a standard deviation
_BLOCK = 4096  # pairs judged at once
_NOT_A_LETTER = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class Judgement:
    """What becomes of each pair: empty if it is kept, or else why it is not."""

    reasons: list[str]

    def counts(self) -> dict[str, int]:
        """How many pairs were dropped, by the reason."""
        return dict(Counter(reason for reason in self.reasons if reason))


def dual_scores(
    pairs: Sequence[Pair], forward: ForcedScorer, backward: ForcedScorer
) -> list[float]:
    """The score of each pair; 0 is the best there could be."""
    scores = []
    for first in range(0, len(pairs), _BLOCK):
        block = pairs[first : first + _BLOCK]
        there = forward.scores(block)
        back = backward.scores([(target, source) for source, target in block])
        for one, other in zip(there, back, strict=True):
            scores.append(-abs(one - other) + (one + other) / 2)
    return scores


def judge(pairs: Sequence[Pair], scores: Sequence[float]) -> Judgement:
    """What to keep of pairs that were scored."""
    reasons = [""] * len(pairs)
    sides = Sides(pairs)
    ratios = np.array([_ratio(pair) for pair in pairs])
    long = _outliers(np.abs(ratios - np.median(ratios)))
    unlikely = _outliers(-np.array(scores))
    for row, pair in enumerate(pairs):
        if sides.is_foreign(*pair):
            reasons[row] = LANGUAGE
        elif unlikely[row]:
            reasons[row] = UNLIKELY
        elif long[row]:
            reasons[row] = LENGTH
    for row in _worse_of_the_same(pairs, scores, reasons):
        reasons[row] = REPEATED
    return Judgement(reasons)


def _outliers(badness: np.ndarray) -> np.ndarray:
    """Which values are far above the usual, at most a share of all."""
    middle = float(np.median(badness))
    deviation = _USUAL * float(np.median(np.abs(badness - middle)))
    limit = max(middle + _BEYOND * deviation, float(np.quantile(badness, 1 - _MOST)))
    return badness > limit


def _ratio(pair: Pair) -> float:
    """How much longer the target is, as a logarithm."""
    source, target = pair
    return float(np.log((len(target) + 5) / (len(source) + 5)))


def _worse_of_the_same(
    pairs: Sequence[Pair], scores: Sequence[float], reasons: Sequence[str]
) -> Iterator[int]:
    """The rows whose source another row translates better."""
    best: dict[str, int] = {}
    for row, (source, _) in enumerate(pairs):
        if reasons[row]:
            continue
        plain = _NOT_A_LETTER.sub(" ", source.casefold()).strip()
        if plain not in best:
            best[plain] = row
        elif scores[row] > scores[best[plain]]:
            yield best[plain]
            best[plain] = row
        else:
            yield row
