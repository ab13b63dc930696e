"""What keeps the confidence of a model from being right on a kind of text that it was not
calibrated on: too few signs, or a level that no sign shows?

    python benchmarks/confidence_limits.py MODEL data/calibration/*.en data/calibration/*.de

Names the source and the target file of each kind, in the order of the kinds: first all sources,
then all targets. For each kind, the confidence is learnt from the others, and printed are

- the calibration error, and the bias: the mean confidence less the mean quality;
- the error once the level of the kind is known, from one half of its sentences for the other;
- the error that chance alone would give to a confidence that is right;
- Spearman's correlation with chrF, learnt from the other kinds, and from the kind itself.

All that is said three times: for the eleven signs of version 2 of calibration.json, for all signs,
and for these and further ones: how far the outputs of the beam agree and how far the best is ahead,
how rare the source's pieces are, quantiles of the probabilities, and what the alignment leaves out.

Result: docs/lab/confidence.md.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.chrf import CHRF

from dragoman.decoding.search_options import SearchOptions
from dragoman.tasks.agreement import calibration_error, correlation, ranks
from dragoman.tasks.logistic import fit_logistic
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.signs import SIGNS, Evidence, signs
from dragoman.tasks.translate import Translator
from dragoman.tasks.translation import Translation

Floats = npt.NDArray[np.float64]
_FOLDS = 5
_DRAWS = 50  # of chance
_EARLIER = 11  # signs of version 2


@dataclass(frozen=True)
class Kind:
    """Text of one kind: signs (N, F) and qualities (N,)."""

    name: str
    rows: Floats
    qualities: Floats


@dataclass(frozen=True)
class Limits:
    """What was found for a kind."""

    error: float
    bias: float
    level_known: float
    chance: float
    correlation: float
    own_correlation: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    given = parser.parse_args()
    translator = Translator.load(given.model, "cpu")
    half = len(given.files) // 2
    kinds = []
    for files in zip(given.files[:half], given.files[half:], strict=True):
        sources, references = [file.read_text(encoding="utf-8").splitlines() for file in files]
        kinds.append(judged(translator, files[0].stem, sources, references))
    for count in (_EARLIER, len(SIGNS)):
        print(f"{count} signs")
        show([replace(kind, rows=kind.rows[:, :count]) for kind in kinds])
    print("with further signs")
    show(kinds)


def show(kinds: Sequence[Kind]) -> None:
    """Print what is found for each kind, and the mean."""
    found = [limits(kinds, number) for number in range(len(kinds))]
    print(f"{'':16}{'error':>7}{'bias':>8}{'level known':>13}{'chance':>8}{'rho':>7}{'own rho':>9}")
    for kind, one in zip(kinds, found, strict=True):
        print(line(kind.name, one))
    columns = np.array([list(vars(one).values()) for one in found])
    print(line("mean", Limits(*columns.mean(0).tolist())))


def line(name: str, one: Limits) -> str:
    return (
        f"{name:16}{one.error:>7.3f}{one.bias:>+8.3f}{one.level_known:>13.3f}{one.chance:>8.3f}"
        f"{one.correlation:>7.2f}{one.own_correlation:>9.2f}"
    )


def judged(
    translator: Translator, name: str, sources: Sequence[str], references: Sequence[str]
) -> Kind:
    """Translate the text of a kind and score it."""
    request = TranslateRequest(SearchOptions(nbest=4), align=True)
    translations = translator.translate(sources, request, split=False)
    pieces = translator.tokenizer.encode(sources, "source")
    chrf = CHRF()
    rows = []
    qualities = []
    for source, one, reference, ids in zip(sources, translations, references, pieces, strict=True):
        with np.errstate(divide="ignore"):  # a probability may be 0
            log_probs = np.log(one.token_probabilities).tolist()
        row = signs(Evidence(log_probs, source, one.text, one.tokens)).tolist()
        rows.append(row + further_signs(source, one, ids))
        qualities.append(chrf.sentence_score(one.text, [reference]).score / 100)
    return Kind(name, np.array(rows), np.array(qualities))


def further_signs(source: str, one: Translation, ids: Sequence[int]) -> list[float]:
    """Return what costs more than the signs do; pieces are numbered by how frequent they
    are."""
    others = [other for other in one.alternatives if other.text != one.text]
    chrf = CHRF()
    agreement = [chrf.sentence_score(other.text, [one.text]).score / 100 for other in others]
    ahead = min((one.score - other.score for other in others), default=1.0)
    rarity = np.log(np.array(ids or [1]) + 1.0)
    probabilities = np.sort(np.array(one.token_probabilities or [0.0]))
    words = max(1, len(source.split()))
    aligned = {place for place, _ in one.alignment}
    return [
        float(np.mean(agreement)) if agreement else 1.0,
        ahead,
        float(rarity.mean()),
        float(rarity.max()),
        len(ids) / words,
        float(np.quantile(probabilities, 0.25)),
        float(probabilities[:3].mean()),
        math.log1p(len(source)),
        math.log((len(one.tokens) + 1) / (len(ids) + 1)),
        len(aligned) / words,
    ]


def limits(kinds: Sequence[Kind], number: int) -> Limits:
    """Judge one kind by the others."""
    kind = kinds[number]
    others = [one for place, one in enumerate(kinds) if place != number]
    rows = np.concatenate([one.rows for one in others])
    qualities = np.concatenate([one.qualities for one in others])
    expected = fit_logistic(rows, qualities)(kind.rows)
    own = of_itself(kind)
    levelled = with_level(expected, kind.qualities)
    return Limits(
        error=calibration_error(expected, kind.qualities),
        bias=float((expected - kind.qualities).mean()),
        level_known=calibration_error(levelled, kind.qualities),
        chance=by_chance(expected, kind.qualities - levelled),
        correlation=correlation(ranks(expected), ranks(kind.qualities)),
        own_correlation=correlation(ranks(own), ranks(kind.qualities)),
    )


def of_itself(kind: Kind) -> Floats:
    """What is expected by a regression on the rest of the same kind."""
    expected = np.empty_like(kind.qualities)
    folds = np.arange(len(expected)) % _FOLDS
    for fold in range(_FOLDS):
        held_out = folds == fold
        learnt = fit_logistic(kind.rows[~held_out], kind.qualities[~held_out])
        expected[held_out] = learnt(kind.rows[held_out])
    return expected


def with_level(expected: Floats, qualities: Floats) -> Floats:
    """Move each half by what the other half was wrong by on the average."""
    moved = np.empty_like(expected)
    halves = np.arange(len(expected)) % 2
    for half in (0, 1):
        wrong_by = (expected - qualities)[halves != half].mean()
        moved[halves == half] = expected[halves == half] - wrong_by
    return moved


def by_chance(expected: Floats, residuals: Floats) -> float:
    """The mean error where nothing but chance parts qualities from what was expected."""
    draw = np.random.default_rng(1)
    centred = residuals - residuals.mean()
    errors = []
    for _ in range(_DRAWS):
        qualities = expected + draw.permutation(centred)
        errors.append(calibration_error(expected, qualities))
    return float(np.mean(errors))


if __name__ == "__main__":
    main()
