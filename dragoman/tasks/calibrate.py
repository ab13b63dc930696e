"""How far a translation can be trusted, from 0 to 1, learnt on a valid set. Knows probabilities and
text; knows no model.

A confidence of 0.62 means that sentences which the model was as sure of scored a chrF of 62 on the
valid set.
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
_KNOTS, _MOST_KNOTS = 20, 1000  # that are learnt; that are read
_IN_A_KNOT = 20  # sentences at least, so that their mean is worth something
_FOLDS, _BINS = 5, 10


class Translated(Protocol):
    """What is asked of a translation."""

    @property
    def text(self) -> str: ...
    @property
    def token_probabilities(self) -> Sequence[float]: ...


@dataclass(frozen=True)
class Calibration:
    """What certainty was worth on the valid set: a rising line through `knots` (certainty) and
    `values` (quality)."""

    knots: tuple[float, ...]
    values: tuple[float, ...]
    ratio: tuple[
        float, float
    ]  # mean and standard deviation of log(target / source characters) of the references
    error: float  # expected calibration error, on sentences that the line was not learnt from
    correlation: float  # of confidence with quality, on the same
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
        kinds: dict[str, Any] = {
            "sentences": int,
            "signature": str,
            "error": float,
            "correlation": float,
        }
        try:
            found = cls(**{name: kinds.get(name, _floats)(value) for name, value in values.items()})
            sound = _is_sound(found)
        except (TypeError, ValueError, AttributeError, OverflowError):
            sound = False
        if not sound:
            raise ModelFolderError(
                "the calibration in the model folder is damaged; make it again with `dragoman calibrate`"
            )
        return found


def calibrate(
    sources: Sequence[str], translations: Sequence[Translated], references: Sequence[str]
) -> Calibration:
    """Learns from translations of a valid set. Lines that are empty on either side say nothing
    and are left out."""
    from sacrebleu.metrics.chrf import CHRF  # not needed to translate

    if not len(sources) == len(translations) == len(references):
        counts = f"{len(sources):,} sources, {len(translations):,} translations and {len(references):,} references"
        raise InputError(f"there are {counts}; each line needs all three at the same place")
    rows = [
        row
        for row in zip(sources, translations, references, strict=True)
        if row[0].strip() and row[2].strip()
    ]
    chrf = CHRF()
    qualities = [
        chrf.sentence_score(translation.text, [reference]).score / 100
        for _, translation, reference in rows
    ]
    with np.errstate(divide="ignore"):  # a probability may be 0
        found = fit(
            [certainty(np.log(translation.token_probabilities)) for _, translation, _ in rows],
            qualities,
        )
    ratios = [
        math.log(len(reference.strip()) / len(source.strip())) for source, _, reference in rows
    ]
    ratio = float(np.mean(ratios)), float(np.std(ratios))
    return dataclasses.replace(found, ratio=ratio, signature=chrf.get_signature().format())


def certainty(log_probs: Sequence[float] | Floats) -> float:
    """The mean probability of the tokens; 0 where there are none.

    It goes with chrF better than the mean log-probability, the lowest one or the share of tokens
    below 0.5 do, and a token that could not be (-inf, NaN) counts as 0 instead of drowning the
    others.
    """
    return (
        float(np.nan_to_num(np.exp(np.minimum(log_probs, 0.0))).mean()) if len(log_probs) else 0.0
    )


def fit(certainties: Sequence[float], qualities: Sequence[float]) -> Calibration:
    """The rising line with its error and correlation, both cross-validated; ratio and signature
    are left empty."""
    x, y = np.asarray(certainties, np.float64), np.asarray(qualities, np.float64)
    if len(x) < _FEWEST:
        raise InputError(
            f"there are {len(x)} sentences to calibrate on; give a valid set of at least {_FEWEST}"
        )
    unseen, folds = np.empty_like(y), np.arange(len(x)) % _FOLDS
    for fold in range(_FOLDS):
        unseen[folds == fold] = np.interp(
            x[folds == fold], *_line(x[folds != fold], y[folds != fold])
        )
    gaps = np.array_split((unseen - y)[np.argsort(unseen, kind="stable")], _BINS)
    error = sum(abs(float(gap.sum())) for gap in gaps) / len(x)
    varied = np.ptp(unseen) > 0 and np.ptp(y) > 0
    correlation = float(np.corrcoef(unseen, y)[0, 1]) if varied else 0.0
    knots, values = _line(x, y)
    return Calibration(_floats(knots), _floats(values), (0.0, 0.0), error, correlation, len(x), "")


def _line(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Isotonic regression by pooling adjacent violators, over bins of about equally many sentences;
    every bin is a knot.

    It begins at (0, 0): of text unlike the valid set a model is less sure than of anything there,
    and a level line below the lowest knot would call such output as good as the worst of the valid
    set.
    """
    order = np.argsort(x, kind="stable")
    x, y = np.round(x[order], 9), np.clip(y[order], 0.0, 1.0)
    bins = min(_KNOTS, len(x) // _IN_A_KNOT)
    firsts = np.unique(
        np.searchsorted(x, x[np.arange(bins) * len(x) // bins])
    )  # what is alike stays in one bin
    sizes = np.diff(firsts, append=len(x))
    pools: list[Floats] = []  # sum of the qualities, number of sentences, number of bins
    for total, size in zip(np.add.reduceat(y, firsts), sizes, strict=True):
        pool = np.array([total, size, 1.0])
        while pools and pools[-1][0] / pools[-1][1] > pool[0] / pool[1]:
            pool += pools.pop()
        pools.append(pool)
    totals, sentences, widths = np.stack(pools, axis=1)
    knots, values = (
        np.add.reduceat(x, firsts) / sizes,
        np.repeat(totals / sentences, widths.astype(int)),
    )
    start = [0.0] if knots[0] > 0 else []
    return np.append(start, knots), np.append(start, values)


def _is_sound(found: Calibration) -> bool:
    line = np.array([found.knots, found.values])  # unequal lengths are a ValueError
    mean, deviation = found.ratio
    finite = np.isfinite([*line.ravel(), mean, deviation, found.error, found.correlation]).all()
    rising = (np.diff(line[0]) > 0).all() and (np.diff(line[1]) >= 0).all()
    within = (
        1 <= line.shape[1] <= _MOST_KNOTS and line.min() >= 0 and line.max() <= 1 and deviation >= 0
    )
    return bool(finite and rising and within)


def _floats(values: Any) -> tuple[Any, ...]:
    return tuple(map(float, values))
