"""How near outputs come to references: ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004), and exact match and
token F1 as SQuAD counts them (Rajpurkar et al. 2016). Knows strings; no model.

ROUGE is the F-measure over lower-case words of a-z and 0-9, as the package rouge-score has it
without a stemmer. SQuAD's words are those between spaces, in lower case, without punctuation and
articles. Each score is the mean over the lines; its interval is that of means of lines drawn again
and again.
"""

from __future__ import annotations

import dataclasses
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from dragoman.errors import InputError

_DRAWS = 1000
_SEED = 12345
_SIGNIFICANT = 0.05
_BYTES_AT_ONCE = 2**24
_NOT_A_WORD = re.compile(r"[^a-z0-9]+")
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
Numbers = NDArray[numpy.float64]


@dataclass(frozen=True)
class Share:
    """A score from 0 to 100 and its 95% interval, which is None where none was asked for."""

    value: float
    low: float | None = None
    high: float | None = None

    def shown(self) -> str:
        """For people to read."""
        if self.low is None:
            return f"{self.value:.1f}"
        return f"{self.value:.1f} (95%: {self.low:.1f} to {self.high:.1f})"


@dataclass(frozen=True)
class TextScores:
    """The scores of a system."""

    rouge1: Share
    rouge2: Share
    rouge_l: Share
    exact: Share
    f1: Share
    lines: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)

    def in_lines(self) -> list[str]:
        """For people to read."""
        return [
            f"ROUGE-1 {self.rouge1.shown()}",
            f"ROUGE-2 {self.rouge2.shown()}",
            f"ROUGE-L {self.rouge_l.shown()}",
            f"exact match {self.exact.shown()}",
            f"token F1 {self.f1.shown()}  {self.lines:,} lines; counted as rouge-score (without a "
            "stemmer) and SQuAD do",
        ]


@dataclass(frozen=True)
class TextComparison:
    """One score of two systems on the same lines, and whether chance could make the difference."""

    score: str
    value: float
    other: float
    p_value: float
    verdict: str

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)


def score_texts(
    outputs: Sequence[str], references: Sequence[str], intervals: bool = True
) -> TextScores:
    """Return the scores of outputs, each beside its reference."""
    _check(outputs, references)
    shares = {}
    for name, measure in _MEASURES.items():
        values = _of_lines(measure, outputs, references)
        shares[name] = _share(values, intervals)
    return TextScores(**shares, lines=len(outputs))


def compare_texts(
    outputs: Sequence[str], others: Sequence[str], references: Sequence[str]
) -> list[TextComparison]:
    """Return the comparison of two systems under ROUGE-L and token F1, by a paired bootstrap test
    over lines."""
    _check(outputs, references)
    _check(others, references)
    comparisons = []
    for title, name in (("ROUGE-L", "rouge_l"), ("token F1", "f1")):
        measure = _MEASURES[name]
        own = _of_lines(measure, outputs, references)
        other = _of_lines(measure, others, references)
        comparisons.append(_compared(title, own, other))
    return comparisons


def rouge_n(output: str, reference: str, size: int) -> float:
    """Return the F-measure of the sequences of `size` words, from 0 to 1."""
    found = _sequences(_words(output), size)
    expected = _sequences(_words(reference), size)
    common = (found & expected).total()
    return _f_measure(common, found.total(), expected.total())


def rouge_l(output: str, reference: str) -> float:
    """Return the F-measure of the longest common subsequence of words, from 0 to 1."""
    found = _words(output)
    expected = _words(reference)
    return _f_measure(_longest_common(found, expected), len(found), len(expected))


def exact_match(output: str, reference: str) -> float:
    """Return 1 if both are the same to SQuAD, else 0."""
    return float(_plain(output) == _plain(reference))


def token_f1(output: str, reference: str) -> float:
    """Return the F-measure of the words that both have, from 0 to 1."""
    found = Counter(_plain(output).split())
    expected = Counter(_plain(reference).split())
    if not found or not expected:
        return float(found == expected)
    common = (found & expected).total()
    return _f_measure(common, found.total(), expected.total())


_MEASURES: dict[str, Callable[[str, str], float]] = {
    "rouge1": lambda output, reference: rouge_n(output, reference, 1),
    "rouge2": lambda output, reference: rouge_n(output, reference, 2),
    "rouge_l": rouge_l,
    "exact": exact_match,
    "f1": token_f1,
}


def _words(text: str) -> list[str]:
    return _NOT_A_WORD.sub(" ", text.lower()).split()


def _plain(text: str) -> str:
    """As SQuAD compares answers."""
    bare = text.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", bare).split())


def _sequences(words: Sequence[str], size: int) -> Counter[tuple[str, ...]]:
    count = len(words) - size + 1
    return Counter(tuple(words[start : start + size]) for start in range(count))


def _longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """How many words the longest common subsequence has. Each bit of a number is one place of
    `first`, so that a word of `second` costs a few operations on whole numbers (Hyyrö 2004)."""
    places: dict[str, int] = {}
    for place, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << place
    every = (1 << len(first)) - 1
    row = every
    for word in second:
        matches = row & places.get(word, 0)
        row = ((row + matches) | (row - matches)) & every
    return len(first) - row.bit_count()


def _f_measure(common: int, found: int, expected: int) -> float:
    return 2 * common / (found + expected) if common else 0.0


def _of_lines(
    measure: Callable[[str, str], float], outputs: Sequence[str], references: Sequence[str]
) -> Numbers:
    values = [measure(one, other) for one, other in zip(outputs, references, strict=True)]
    return 100.0 * numpy.array(values)


def _share(values: Numbers, with_interval: bool) -> Share:
    value = float(values.mean())
    if not with_interval:
        return Share(value)
    low, high = numpy.percentile(_drawn_means(values), [2.5, 97.5])
    return Share(value, float(low), float(high))


def _compared(title: str, own: Numbers, other: Numbers) -> TextComparison:
    differences = _drawn_means(own - other)
    value = float(own.mean())
    of_other = float(other.mean())
    distance = abs(value - of_other)
    centred = numpy.abs(differences - differences.mean())
    # Nothing is drawn less often than once: the lines as they are count as a draw.
    as_far = 1 + int((centred >= distance).sum())
    p_value = as_far / (1 + _DRAWS) if distance else 1.0
    outcome = "cannot tell this model from the other"
    if p_value < _SIGNIFICANT:
        outcome = f"finds this model {'better' if value > of_other else 'worse'} than the other"
    verdict = f"{title} {outcome}: {value:.1f} against {of_other:.1f} (p = {p_value:.3f})."
    return TextComparison(title, value, of_other, p_value, verdict)


def _drawn_means(values: Numbers) -> Numbers:
    """The means of lines drawn with replacement, the same lines each time."""
    generator = numpy.random.default_rng(_SEED)
    at_once = max(1, _BYTES_AT_ONCE // (8 * len(values)))
    means: list[Numbers] = []
    for first in range(0, _DRAWS, at_once):
        count = min(at_once, _DRAWS - first)
        rows = generator.integers(len(values), size=(count, len(values)))
        means.append(values[rows].mean(1))
    return numpy.concatenate(means)


def _check(outputs: Sequence[str], references: Sequence[str]) -> None:
    if len(outputs) != len(references):
        raise InputError(
            f"there are {len(outputs):,} lines to score but {len(references):,} references; "
            "each line needs its reference at the same place"
        )
    if not references:
        raise InputError("there are no lines to score; the files are empty")
