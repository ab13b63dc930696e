"""What is known of how far a model's translations can be trusted, and the confidence that follows
from it. Knows numbers; how they are learnt is known to calibrate.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from dragoman.errors import ModelFolderError
from dragoman.tasks.logistic import Logistic
from dragoman.tasks.signs import SIGNS, Evidence, certainty, signs

_MOST_KNOTS = 1000  # that are read
_MOST_TEXTS = 1000  # kinds that are read
_SIGNS_OF = {2: 11, 3: len(SIGNS)}  # how many of the signs a version weighs


@dataclass(frozen=True)
class Calibration:
    """What the signs of quality were worth on the validation text.

    Version 1 knew certainty alone: a rising line through `knots` (certainty) and `values`
    (quality). Version 2 weighs the first eleven signs, version 3 all of them; both keep the line
    for reading.
    """

    knots: tuple[float, ...]
    values: tuple[float, ...]
    # Mean and standard deviation of log(target / source characters) of the references.
    ratio: tuple[float, float]
    # The expected calibration error, on sentences that nothing was learnt from: where there are
    # several kinds of text, on each kind in turn.
    error: float
    # Of confidence with quality, on the same sentences; Pearson's and Spearman's.
    correlation: float
    sentences: int
    signature: str  # of chrF
    rank_correlation: float = 0.0
    version: int = 1
    # Of the logistic regression, a number for each sign; the weights end with the bias.
    means: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    # The most that is expected of a translation with a serious flag.
    flagged: float = 1.0
    # The kinds of text it was learnt from, a name on each line, and what is known of each.
    texts: str = ""
    text_sentences: tuple[float, ...] = ()
    text_errors: tuple[float, ...] = ()  # learnt from the other kinds
    text_correlations: tuple[float, ...] = ()  # Spearman's, learnt from the other kinds

    def confidence(self, evidence: Evidence, has_serious_flag: bool = False) -> float:
        """The quality to expect of a translation."""
        if self.version == 1:
            certain = certainty(evidence.log_probs)
            return float(np.interp(certain, self.knots, self.values))
        regression = self._regression()
        known = signs(evidence)[: len(self.means)]
        expected = float(regression(known))
        return min(expected, self.flagged) if has_serious_flag else expected

    def _regression(self) -> Logistic:
        *weights, bias = self.weights
        return Logistic(
            means=self.means,
            scales=self.scales,
            weights=tuple(weights),
            bias=bias,
        )

    def lines(self) -> list[str]:
        """What was found, for people to read."""
        found = [
            f"expected calibration error {self.error:.3f}, "
            f"correlation {self.correlation:.2f} on {self.sentences:,} sentences"
        ]
        if len(self.text_sentences) > 1:
            found.append("each kind of text, calibrated on the others:")
            rows = zip(
                self.texts.split("\n"),
                self.text_sentences,
                self.text_errors,
                self.text_correlations,
                strict=True,
            )
            for name, count, error, correlation in rows:
                found.append(
                    f"  {name}: {count:,.0f} sentences, calibration error {error:.3f}, "
                    f"rank correlation {correlation:.2f}"
                )
        found.append("a confidence of 0.6 means: translations with the same signs had a chrF of 60")
        return found

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """What `as_dict` gave, perhaps by way of JSON; anything else is refused."""
        try:
            arguments = {}
            for name, value in values.items():
                convert = _CONVERSIONS.get(name, _floats)
                arguments[name] = convert(value)
            calibration = cls(**arguments)
            sound = _is_sound(calibration)
        except (TypeError, ValueError, AttributeError, OverflowError):
            sound = False
        if not sound:
            raise ModelFolderError(
                "the calibration in the model folder is damaged; run `dragoman calibrate` again"
            )
        return calibration


def _is_sound(calibration: Calibration) -> bool:
    # Unequal lengths are a ValueError.
    line = np.array([calibration.knots, calibration.values])
    knots, values = line
    mean, deviation = calibration.ratio
    numbers = [*knots, *values, mean, deviation, calibration.error, calibration.correlation]
    finite = np.isfinite(numbers).all()
    knots_rise = (np.diff(knots) > 0).all()
    values_rise = (np.diff(values) >= 0).all()
    within = line.min() >= 0 and line.max() <= 1 and deviation >= 0
    few = 1 <= len(knots) <= _MOST_KNOTS
    is_line = finite and knots_rise and values_rise and within and few
    return bool(is_line) and _is_weighed(calibration)


def _is_weighed(calibration: Calibration) -> bool:
    """Whether what versions 2 and 3 add is sound; version 1 has nothing of it."""
    if calibration.version == 1:
        return not calibration.weights
    texts = calibration.texts.split("\n")
    of_texts = [
        calibration.text_sentences,
        calibration.text_errors,
        calibration.text_correlations,
    ]
    lengths = [len(calibration.means), len(calibration.scales), len(calibration.weights) - 1]
    numbers = [
        *calibration.means,
        *calibration.scales,
        *calibration.weights,
        *chain.from_iterable(of_texts),
        calibration.flagged,
        calibration.rank_correlation,
    ]
    n_signs = _SIGNS_OF.get(calibration.version)
    return bool(
        n_signs is not None
        and lengths == [n_signs, n_signs, n_signs]
        and min(calibration.scales) > 0
        and np.isfinite(numbers).all()
        and 0 <= calibration.flagged <= 1
        and len(texts) <= _MOST_TEXTS
        and all(len(values) == len(texts) for values in of_texts)
    )


def _floats(values: Any) -> tuple[Any, ...]:
    return tuple(map(float, values))


_CONVERSIONS: dict[str, Any] = {
    "sentences": int,
    "signature": str,
    "error": float,
    "correlation": float,
    "rank_correlation": float,
    "version": int,
    "flagged": float,
    "texts": str,
}
