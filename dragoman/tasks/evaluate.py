"""BLEU and chrF by sacreBLEU, with signature, interval and paired test. Knows text and how a
test set is read; no model."""

from __future__ import annotations

import bisect
import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest, Result

from dragoman.data.check_report import Report
from dragoman.data.corpus import corpora, read_pairs
from dragoman.errors import InputError, MissingDependencyError, OptionError
from dragoman.text.glossary import Glossary, accuracy
from dragoman.text.scripts import CHINESE, UNSPACED_LANGUAGES

_SIGNIFICANT = 0.05
# Rules of thumb of the field, for text of one kind and one reference.
_BLEUS = (1, 10, 20, 30, 40, 50)
_MEANINGS = (
    "nothing can be used",
    "now and then a word is right; not usable",
    "hard to get the gist",
    "the gist is clear, with many errors",
    "understandable, with errors",
    "good",
    "very good, close to the references",
)
_MOST_DRAWN = 10_000_000  # lines in all resamplings together; sacreBLEU holds 72 bytes for each


@dataclass(frozen=True)
class Scoring:
    """How to score. `tokenize` is the name of one of sacreBLEU's tokenisers.

    `bootstrap` is the number of resamplings behind an interval: the mean of the resamplings and
    half the width of their middle 95%, as sacreBLEU has it. With 0 there is no interval, which is
    quick. For more than 10,000 lines fewer are drawn, to bound the memory; the signature has their
    number.
    """

    tokenize: str = "13a"
    lowercase: bool = False
    bootstrap: int = 1000

    def __post_init__(self) -> None:
        if self.tokenize not in BLEU.TOKENIZERS:
            known = ", ".join(BLEU.TOKENIZERS)
            raise OptionError(f"tokenize is '{self.tokenize}'; sacreBLEU has {known}")


DEFAULT = Scoring()


@dataclass(frozen=True)
class Metric:
    """A corpus score from 0 to 100; the 95% interval is None without a bootstrap."""

    value: float
    low: float | None
    high: float | None
    signature: str


@dataclass(frozen=True)
class Scores:
    """How near the hypotheses come to the references."""

    bleu: Metric
    chrf: Metric

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)

    def lines(self) -> list[str]:
        """For people to read."""
        return [_show("BLEU", self.bleu), _show("chrF", self.chrf)]

    def in_words(self) -> str:
        """What such a BLEU usually means."""
        meaning = _MEANINGS[bisect.bisect(_BLEUS, self.bleu.value)]
        return f"As a rule, a BLEU of {self.bleu.value:.1f} means: {meaning}."


@dataclass(frozen=True)
class Difference:
    """Two systems under one metric; the p-value says how likely chance alone parts them as far."""

    value: float
    other: float
    p_value: float
    verdict: str
    signature: str


@dataclass(frozen=True)
class Comparison:
    """The paired test of two systems on the same lines."""

    bleu: Difference
    chrf: Difference

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)

    def lines(self) -> list[str]:
        """For people to read."""
        return [f"{found.verdict}  {found.signature}" for found in (self.bleu, self.chrf)]


@dataclass(frozen=True)
class TermAccuracy:
    """How many of the glossary's terms in the sources came out right."""

    present: int
    found: int

    @property
    def share(self) -> float | None:
        """From 0 to 1; None if the sources have no term."""
        return self.present / self.found if self.found else None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"accuracy": self.share, "present": self.present, "found": self.found}

    def line(self) -> str:
        """For people to read."""
        if self.share is None:
            return "terms: the sources have none of the glossary's"
        return f"terms {self.share:.1%} ({self.present} of {self.found})"


def score(
    hypotheses: Sequence[str], references: Sequence[str], scoring: Scoring = DEFAULT
) -> Scores:
    """BLEU and chrF of a system."""
    _check(hypotheses, references)
    bleu, chrf = _metrics(scoring)
    if scoring.bootstrap > 0:
        results = _resample([hypotheses], references, scoring)
        return Scores(
            bleu=_interval(*results["BLEU"]),
            chrf=_interval(*results["chrF"]),
        )
    return Scores(
        bleu=_plain(bleu, hypotheses, references),
        chrf=_plain(chrf, hypotheses, references),
    )


def compare(
    hypotheses: Sequence[str],
    others: Sequence[str],
    references: Sequence[str],
    scoring: Scoring = DEFAULT,
    names: tuple[str, str] = ("this system", "the other"),
) -> Comparison:
    """Whether one system is better than another, by sacreBLEU's paired bootstrap test on the
    same references."""
    _check(hypotheses, references)
    _check(others, references)
    results = _resample([others, hypotheses], references, scoring)
    bleu = _judge("BLEU", *results["BLEU"], names)
    chrf = _judge("chrF", *results["chrF"], names)
    return Comparison(bleu, chrf)


def tokenize_for(language: str) -> str:
    """sacreBLEU's tokeniser for a target language, such as `de`, `zh-Hans` or `jpn_Jpan`: 13a,
    zh or char."""
    # Without spaces, words cannot be counted without a word list; characters are counted instead,
    # which needs no further package (as tokenize="ja-mecab" would).
    language, *_ = re.split("[-_]", language.lower())
    if language in CHINESE:
        return "zh"
    return "char" if language in UNSPACED_LANGUAGES else "13a"


def read_test_set(
    files: Sequence[str], source_language: str, target_language: str
) -> tuple[list[str], list[str]]:
    """Sources and references of a test set, as they stand in the files; anything wrong with them
    is an error."""
    sources = []
    references = []
    for corpus in corpora(files):
        pairs = read_pairs(corpus, source_language, target_language, Report().add)
        for source, reference in pairs:
            sources.append(source or "")
            references.append(reference or "")
    return sources, references


def term_accuracy(
    glossary: Glossary,
    sources: Sequence[str],
    hypotheses: Sequence[str],
    languages: tuple[str, str] = ("", ""),
) -> TermAccuracy:
    """How many occurrences of the glossary's terms in the sources came out right; `languages` are
    those of the sources and the hypotheses."""
    _check_lists(sources, hypotheses)
    present, found = accuracy(glossary, sources, hypotheses, languages)
    return TermAccuracy(present, found)


def _check(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    _check_lists(hypotheses, references)
    if len(hypotheses) != len(references):
        counts = f"{len(hypotheses):,} lines to score but {len(references):,} references"
        raise InputError(f"there are {counts}; each line needs its reference at the same place")
    if not references:
        raise InputError("there are no lines to score; the files are empty")


def _check_lists(*sides: Sequence[str]) -> None:
    for lines in sides:
        if isinstance(lines, str):
            raise InputError(
                f"{lines[:40]!r} is one string, and a score needs lists of lines; put it in a list"
            )


def _metrics(scoring: Scoring) -> tuple[BLEU, CHRF]:
    try:
        # Forced, it keeps quiet about lines that end in a detached full stop.
        bleu = BLEU(tokenize=scoring.tokenize, lowercase=scoring.lowercase, force=True)
    except (RuntimeError, ImportError, OSError) as error:
        # A package is missing or, for the SentencePiece tokenisers, a download fails.
        reason = " ".join(str(error).split())
        raise MissingDependencyError(
            f"the tokeniser '{scoring.tokenize}' cannot be used, use 'char' instead: {reason}"
        ) from None
    return bleu, CHRF(lowercase=scoring.lowercase)


def _plain(metric: BLEU | CHRF, hypotheses: Sequence[str], references: Sequence[str]) -> Metric:
    found = metric.corpus_score(hypotheses, [references])
    signature = metric.get_signature()
    return Metric(
        value=float(found.score),
        low=None,
        high=None,
        signature=signature.format(),
    )


def _resample(
    systems: Sequence[Sequence[str]], references: Sequence[str], scoring: Scoring
) -> dict[str, tuple[list[Result], str]]:
    """For BLEU and chrF: the result of each system, the first being the one compared with, and
    the signature."""
    bleu, chrf = _metrics(scoring)
    most = max(1, _MOST_DRAWN // len(references))
    samples = min(scoring.bootstrap, most)
    named = [(str(number), system) for number, system in enumerate(systems)]
    metrics = {"BLEU": bleu, "chrF2": chrf}
    test = PairedTest(named, metrics, [references], test_type="bs", n_samples=samples)
    signatures, results = test()
    found = {}
    for name, signature in signatures.items():
        found[name.rstrip("2")] = (results[name], signature.format())
    return found  # type: ignore[return-value]


def _interval(found: list[Result], signature: str) -> Metric:
    (result,) = found
    mean = float(result.mean or 0.0)
    half = float(result.ci or 0.0)
    return Metric(
        value=float(result.score),
        low=max(0.0, mean - half),
        high=min(100.0, mean + half),
        signature=signature,
    )


def _show(name: str, metric: Metric) -> str:
    interval = ""
    if metric.low is not None:
        interval = f" (95%: {metric.low:.1f} to {metric.high:.1f})"
    return f"{name} {metric.value:.1f}{interval}  {metric.signature}"


def _judge(metric: str, found: list[Result], signature: str, names: tuple[str, str]) -> Difference:
    of_other, of_this = found
    other = float(of_other.score)
    value = float(of_this.score)
    this_name, other_name = names
    # sacreBLEU calls equal scores significantly different: chance never parts them further.
    p_value = 1.0 if value == other else float(of_this.p_value or 0.0)
    outcome = f"cannot tell {this_name} from {other_name}"
    if p_value < _SIGNIFICANT:
        better = "better" if value > other else "worse"
        outcome = f"finds {this_name} {better} than {other_name}"
    return Difference(
        value=value,
        other=other,
        p_value=p_value,
        verdict=f"{metric} {outcome}: {value:.1f} against {other:.1f} (p = {p_value:.3f}).",
        signature=signature,
    )
