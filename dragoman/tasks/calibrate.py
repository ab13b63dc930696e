"""How far a translation can be trusted, from 0 to 1, learnt from a validation set. Knows
probabilities and text; knows no model.

A confidence of 0.62 means: sentences of the validation set of which the model was as sure scored a
chrF of 62.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dragoman.errors import InputError, ModelFolderError

Floats = npt.NDArray[np.float64]

_FEWEST = 50  # sentences
_KNOTS = 20  # that are learnt
_MOST_KNOTS = 1000  # that are read
_FEWEST_IN_A_KNOT = 20  # sentences, so that their mean is worth something
_FOLDS = 5
_BINS = 10


class Translated(Protocol):
    """What a calibration needs to know of a translation."""

    @property
    def text(self) -> str: ...
    @property
    def token_probabilities(self) -> Sequence[float]: ...


@dataclass(frozen=True)
class Calibration:
    """What certainty was worth on the validation set: a rising line through `knots` (certainty)
    and `values` (quality)."""

    knots: tuple[float, ...]
    values: tuple[float, ...]
    # Mean and standard deviation of log(target / source characters) of the references.
    ratio: tuple[float, float]
    # The expected calibration error, on sentences that the line was not learnt from.
    error: float
    # Of confidence with quality, on the same sentences.
    correlation: float
    sentences: int
    signature: str  # of chrF

    def confidence(self, log_probs: Sequence[float]) -> float:
        """The quality to expect of a translation with these token log-probabilities, the end's
        included."""
        return float(np.interp(certainty(log_probs), self.knots, self.values))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """What `as_dict` gave, perhaps by way of JSON; anything else is refused."""
        try:
            calibration = cls(
                **{name: _CONVERSIONS.get(name, _floats)(value) for name, value in values.items()}
            )
            sound = _is_sound(calibration)
        except (TypeError, ValueError, AttributeError, OverflowError):
            sound = False
        if not sound:
            raise ModelFolderError(
                "the calibration in the model folder is damaged; run `dragoman calibrate` again"
            )
        return calibration


def calibrate(
    sources: Sequence[str], translations: Sequence[Translated], references: Sequence[str]
) -> Calibration:
    """Learns from the translations of a validation set. Lines that are empty on either side are
    left out."""
    from sacrebleu.metrics.chrf import CHRF  # not needed to translate

    if not len(sources) == len(translations) == len(references):
        raise InputError(
            f"there are {len(sources):,} sources, {len(translations):,} translations and "
            f"{len(references):,} references; each line needs all three at the same place"
        )
    chrf = CHRF()
    certainties: list[float] = []
    qualities: list[float] = []
    ratios: list[float] = []
    for source, translation, reference in zip(sources, translations, references, strict=True):
        if not source.strip() or not reference.strip():
            continue
        with np.errstate(divide="ignore"):  # a probability may be 0
            certainties.append(certainty(np.log(translation.token_probabilities)))
        qualities.append(chrf.sentence_score(translation.text, [reference]).score / 100)
        ratios.append(math.log(len(reference.strip()) / len(source.strip())))
    fitted = fit(certainties, qualities)
    ratio = float(np.mean(ratios)), float(np.std(ratios))
    return dataclasses.replace(fitted, ratio=ratio, signature=chrf.get_signature().format())


def certainty(log_probs: Sequence[float] | Floats) -> float:
    """The mean probability of the tokens; 0 if there are none.

    It goes with chrF better than the mean log-probability, the lowest one or the share of tokens
    below 0.5. A token that could not be (-inf, NaN) counts as 0 instead of outweighing the others.
    """
    if not len(log_probs):
        return 0.0
    probabilities = np.exp(np.minimum(log_probs, 0.0))
    return float(np.nan_to_num(probabilities).mean())


def fit(certainties: Sequence[float], qualities: Sequence[float]) -> Calibration:
    """The rising line with its error and correlation, both cross-validated; ratio and signature
    are left empty."""
    x = np.asarray(certainties, np.float64)
    y = np.asarray(qualities, np.float64)
    if len(x) < _FEWEST:
        raise InputError(
            f"there are {len(x)} sentences to calibrate on; "
            f"a validation set of at least {_FEWEST} is needed"
        )
    unseen = np.empty_like(y)  # what a line predicts that was learnt from the other folds
    folds = np.arange(len(x)) % _FOLDS
    for fold in range(_FOLDS):
        held_out = folds == fold
        knots, values = _line(x[~held_out], y[~held_out])
        unseen[held_out] = np.interp(x[held_out], knots, values)
    in_order = np.argsort(unseen, kind="stable")
    gaps = np.array_split((unseen - y)[in_order], _BINS)
    error = sum(abs(float(gap.sum())) for gap in gaps) / len(x)
    correlation = 0.0
    if np.ptp(unseen) > 0 and np.ptp(y) > 0:
        correlation = float(np.corrcoef(unseen, y)[0, 1])
    knots, values = _line(x, y)
    return Calibration(_floats(knots), _floats(values), (0.0, 0.0), error, correlation, len(x), "")


def _line(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Isotonic regression by pooling adjacent violators, over bins of about equally many sentences;
    every bin is a knot.

    It begins at (0, 0): of text unlike the validation set a model is less sure than of anything
    there, and a level line below the lowest knot would call such output as good as the worst of
    the validation set.
    """
    order = np.argsort(x, kind="stable")
    x = np.round(x[order], 9)
    y = np.clip(y[order], 0.0, 1.0)
    bins = min(_KNOTS, len(x) // _FEWEST_IN_A_KNOT)
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


def _is_sound(calibration: Calibration) -> bool:
    # Unequal lengths are a ValueError.
    line = np.array([calibration.knots, calibration.values])
    mean, deviation = calibration.ratio
    numbers = [*line.ravel(), mean, deviation, calibration.error, calibration.correlation]
    finite = np.isfinite(numbers).all()
    rising = (np.diff(line[0]) > 0).all() and (np.diff(line[1]) >= 0).all()
    within = line.min() >= 0 and line.max() <= 1 and deviation >= 0
    return bool(finite and rising and within and 1 <= line.shape[1] <= _MOST_KNOTS)


def _floats(values: Any) -> tuple[Any, ...]:
    return tuple(map(float, values))


_CONVERSIONS: dict[str, Any] = {
    "sentences": int,
    "signature": str,
    "error": float,
    "correlation": float,
}
