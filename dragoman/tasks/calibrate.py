"""How far a translation can be trusted, from 0 to 1, learnt from validation text of one or more
kinds. Knows probabilities and text; knows no model.

A confidence of 0.62 means: translations that showed the same signs scored a chrF of 62 on the
validation text. The signs (tasks/signs.py) are weighed by a logistic regression, whose weights can
be read in calibration.json.
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
from dragoman.tasks.logistic import Logistic, fit_logistic
from dragoman.tasks.rising_line import FEWEST_IN_A_KNOT, rising_line
from dragoman.tasks.signs import SIGNS, Evidence, certainty, signs
from dragoman.text.flags import SERIOUS, flags

Floats = npt.NDArray[np.float64]

_FEWEST = 50  # sentences
_MOST_KNOTS = 1000  # that are read
_FOLDS = 5
_BINS = 10
_FLAT = 1e-12  # a deviation below which values are all the same
_WORST = 0.05  # share of the sentences that show what a flagged one is worth, if too few have flags
_MOST_TEXTS = 1000  # kinds that are read


class Translated(Protocol):
    """What a calibration needs to know of a translation."""

    @property
    def text(self) -> str: ...
    @property
    def token_probabilities(self) -> Sequence[float]: ...


@dataclass(frozen=True)
class Calibration:
    """What the signs of quality were worth on the validation text.

    Version 1 knew certainty alone: a rising line through `knots` (certainty) and `values`
    (quality). Version 2 weighs all signs, and keeps the line for reading.
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
            return float(np.interp(certainty(evidence.log_probs), self.knots, self.values))
        expected = float(self._regression()(signs(evidence)))
        return min(expected, self.flagged) if has_serious_flag else expected

    def _regression(self) -> Logistic:
        *weights, bias = self.weights
        return Logistic(self.means, self.scales, tuple(weights), bias)

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
    sources: Sequence[str],
    translations: Sequence[Translated],
    references: Sequence[str],
    texts: Sequence[str] = (),
) -> Calibration:
    """Learns from the translations of validation text. Lines that are empty on either side are
    left out.

    `texts` names the kind of text that each line is of; where there are several kinds, errors and
    correlations are those of each kind with a calibration on the others.
    """
    from sacrebleu.metrics.chrf import CHRF  # not needed to translate

    if not len(sources) == len(translations) == len(references):
        raise InputError(
            f"there are {len(sources):,} sources, {len(translations):,} translations and "
            f"{len(references):,} references; each line needs all three at the same place"
        )
    chrf = CHRF()
    evidence: list[Evidence] = []
    qualities: list[float] = []
    ratios: list[float] = []
    kinds: list[str] = []
    lines = zip(sources, translations, references, strict=True)
    for number, (source, translation, reference) in enumerate(lines):
        if not source.strip() or not reference.strip():
            continue
        with np.errstate(divide="ignore"):  # a probability may be 0
            log_probs = np.log(translation.token_probabilities).tolist()
        evidence.append(Evidence(log_probs, source, translation.text))
        qualities.append(chrf.sentence_score(translation.text, [reference]).score / 100)
        ratios.append(math.log(len(reference.strip()) / len(source.strip())))
        kinds.append(texts[number] if texts else "")
    line = fit([certainty(one.log_probs) for one in evidence], qualities)
    ratio = float(np.mean(ratios)), float(np.std(ratios))
    line = dataclasses.replace(line, ratio=ratio, signature=chrf.get_signature().format())
    return _weighed(line, evidence, np.array(qualities), kinds)


def _weighed(
    line: Calibration, evidence: Sequence[Evidence], qualities: Floats, kinds: Sequence[str]
) -> Calibration:
    """Version 2: a regression on all signs, beside the line."""
    rows = np.array([signs(one) for one in evidence])
    kind = np.array([name.replace("\n", " ") for name in kinds])
    names = list(dict.fromkeys(kind.tolist()))
    several = len(names) > 1
    folds = kind if several else np.arange(len(kind)) % _FOLDS
    unseen = np.empty_like(qualities)  # what is expected by a regression on the other folds
    for fold in np.unique(folds):
        held_out = folds == fold
        unseen[held_out] = fit_logistic(rows[~held_out], qualities[~held_out])(rows[held_out])
    parts = [kind == name for name in names]
    regression = fit_logistic(rows, qualities)
    serious = [bool(SERIOUS & set(flags(one.source, one.target, line.ratio))) for one in evidence]
    return dataclasses.replace(
        line,
        version=2,
        error=_error(unseen, qualities),
        correlation=_correlation(unseen, qualities),
        rank_correlation=_correlation(_ranks(unseen), _ranks(qualities)),
        means=regression.means,
        scales=regression.scales,
        weights=(*regression.weights, regression.bias),
        flagged=_worth_of_flagged(qualities, np.array(serious)),
        texts="\n".join(names),
        text_sentences=tuple(float(part.sum()) for part in parts),
        text_errors=tuple(_error(unseen[part], qualities[part]) for part in parts),
        text_correlations=tuple(
            _correlation(_ranks(unseen[part]), _ranks(qualities[part])) for part in parts
        ),
    )


def _worth_of_flagged(qualities: Floats, serious: npt.NDArray[np.bool_]) -> float:
    """The mean quality of the sentences with a serious flag; of the worst ones if too few have
    any."""
    if serious.sum() >= FEWEST_IN_A_KNOT:
        return float(qualities[serious].mean())
    return float(np.quantile(qualities, _WORST))


def _error(expected: Floats, qualities: Floats) -> float:
    """The expected calibration error, over bins of equally many sentences."""
    in_order = np.argsort(expected, kind="stable")
    gaps = np.array_split((expected - qualities)[in_order], _BINS)
    return sum(abs(float(gap.sum())) for gap in gaps) / len(qualities)


def _correlation(one: Floats, other: Floats) -> float:
    if min(one.std(), other.std()) < _FLAT:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _ranks(values: Floats) -> Floats:
    """The rank of each value; equal ones share their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts - 1) / 2.0)[place]
    return ranks


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
        knots, values = rising_line(x[~held_out], y[~held_out])
        unseen[held_out] = np.interp(x[held_out], knots, values)
    error = _error(unseen, y)
    correlation = _correlation(unseen, y)
    knots, values = rising_line(x, y)
    return Calibration(_floats(knots), _floats(values), (0.0, 0.0), error, correlation, len(x), "")


def _is_sound(calibration: Calibration) -> bool:
    # Unequal lengths are a ValueError.
    line = np.array([calibration.knots, calibration.values])
    mean, deviation = calibration.ratio
    numbers = [*line.ravel(), mean, deviation, calibration.error, calibration.correlation]
    finite = np.isfinite(numbers).all()
    rising = (np.diff(line[0]) > 0).all() and (np.diff(line[1]) >= 0).all()
    within = line.min() >= 0 and line.max() <= 1 and deviation >= 0
    few = 1 <= line.shape[1] <= _MOST_KNOTS
    return bool(finite and rising and within and few) and _is_weighed(calibration)


def _is_weighed(calibration: Calibration) -> bool:
    """Whether what version 2 adds is sound; version 1 has nothing of it."""
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
        *[number for numbers in of_texts for number in numbers],
        calibration.flagged,
        calibration.rank_correlation,
    ]
    return bool(
        calibration.version == 2
        and lengths == [len(SIGNS)] * 3
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
