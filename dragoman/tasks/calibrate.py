"""How far a translation can be trusted, from 0 to 1, learnt from validation text of one or more
kinds. Knows probabilities and text; knows no model.

A confidence of 0.62 means: translations that showed the same signs scored a chrF of 62 on the
validation text. The signs (tasks/signs.py) are weighed by a logistic regression, whose weights can
be read in calibration.json.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dragoman.errors import InputError
from dragoman.tasks.agreement import calibration_error, correlation, ranks
from dragoman.tasks.calibration import Calibration
from dragoman.tasks.logistic import fit_logistic
from dragoman.tasks.rising_line import FEWEST_IN_A_KNOT, rising_line
from dragoman.tasks.signs import Evidence, certainty, signs
from dragoman.text.flags import SERIOUS, flags

Floats = npt.NDArray[np.float64]

_FEWEST = 50  # sentences
_FOLDS = 5
_WORST = 0.05  # share of the sentences that show what a flagged one is worth, if too few have flags


class Translated(Protocol):
    """What a calibration needs to know of a translation."""

    @property
    def text(self) -> str: ...
    @property
    def tokens(self) -> Sequence[str]: ...
    @property
    def token_probabilities(self) -> Sequence[float]: ...


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
        source_length = len(source.strip())
        reference_length = len(reference.strip())
        if not source_length or not reference_length:
            continue
        with np.errstate(divide="ignore"):  # a probability may be 0
            log_probs = np.log(translation.token_probabilities).tolist()
        evidence.append(Evidence(log_probs, source, translation.text, translation.tokens))
        scored = chrf.sentence_score(translation.text, [reference])
        qualities.append(scored.score / 100)
        ratios.append(math.log(reference_length / source_length))
        kinds.append(texts[number] if texts else "")
    certainties = [certainty(one.log_probs) for one in evidence]
    line = dataclasses.replace(
        fit(certainties, qualities),
        ratio=(float(np.mean(ratios)), float(np.std(ratios))),
        signature=chrf.get_signature().format(),
    )
    return _weighed(line, evidence, np.array(qualities), kinds)


def _weighed(
    line: Calibration, evidence: Sequence[Evidence], qualities: Floats, kinds: Sequence[str]
) -> Calibration:
    """Version 3: a regression on all signs, beside the line."""
    rows = np.array([signs(one) for one in evidence])
    kind = np.array([name.replace("\n", " ") for name in kinds])
    names = list(dict.fromkeys(kind.tolist()))
    several = len(names) > 1
    folds = kind if several else np.arange(len(kind)) % _FOLDS
    unseen = np.empty_like(qualities)  # what is expected by a regression on the other folds
    for fold in np.unique(folds):
        held_out = folds == fold
        of_others = fit_logistic(rows[~held_out], qualities[~held_out])
        unseen[held_out] = of_others(rows[held_out])
    regression = fit_logistic(rows, qualities)
    serious = [_is_serious(one, line.ratio) for one in evidence]
    counts = []
    errors = []
    correlations = []
    for name in names:
        part = kind == name
        expected = unseen[part]
        came = qualities[part]
        counts.append(float(part.sum()))
        errors.append(calibration_error(expected, came))
        correlations.append(correlation(ranks(expected), ranks(came)))
    return dataclasses.replace(
        line,
        version=3,
        error=calibration_error(unseen, qualities),
        correlation=correlation(unseen, qualities),
        rank_correlation=correlation(ranks(unseen), ranks(qualities)),
        means=regression.means,
        scales=regression.scales,
        weights=(*regression.weights, regression.bias),
        flagged=_worth_of_flagged(qualities, np.array(serious)),
        texts="\n".join(names),
        text_sentences=tuple(counts),
        text_errors=tuple(errors),
        text_correlations=tuple(correlations),
    )


def _is_serious(evidence: Evidence, ratio: tuple[float, float]) -> bool:
    """Whether a translation has a flag that says that it is useless as a whole."""
    found = flags(evidence.source, evidence.target, ratio)
    return not SERIOUS.isdisjoint(found)


def _worth_of_flagged(qualities: Floats, serious: npt.NDArray[np.bool_]) -> float:
    """The mean quality of the sentences with a serious flag; of the worst ones if too few have
    any."""
    if serious.sum() >= FEWEST_IN_A_KNOT:
        return float(qualities[serious].mean())
    return float(np.quantile(qualities, _WORST))


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
    knots, values = rising_line(x, y)
    return Calibration(
        knots=tuple(knots.tolist()),
        values=tuple(values.tolist()),
        ratio=(0.0, 0.0),
        error=calibration_error(unseen, y),
        correlation=correlation(unseen, y),
        sentences=len(x),
        signature="",
    )
