"""How well labels of words match those of a test set, counted as conlleval and seqeval count. Knows
labels; no model.

A label such as B-PER or I-PER says that a word begins a span of the kind PER or stands within it;
E- and S- end one and are one by themselves, and O stands outside. A span begins at B- and S-, and
at any other word of a kind that does not go on with the span before it; so labels that follow no
strict scheme count too. A found span is right if its kind and all of its words are. Labels of
another form, such as parts of speech, have an accuracy alone.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy

from dragoman.errors import InputError
from dragoman.tasks.drawn_intervals import interval_of_share

OUTSIDE = "O"
_SPAN_LABEL = re.compile(r"([BIES])-(.+)")
_GOES_ON = "IE"  # with the span before it
_LEAVES_OPEN = "BI"
Labels = Sequence[str]  # of one sentence


class Span(NamedTuple):
    """A kind over the words from `start` up to but not including `end`."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True)
class KindScores:
    """The spans of one kind, or the examples of one label; shares from 0 to 100."""

    precision: float
    recall: float
    f1: float
    count: int  # in the test set


@dataclass(frozen=True)
class LabelScores:
    """Shares from 0 to 100, over all sentences together."""

    accuracy: float  # of words
    low: float  # 95% interval, by resampling sentences: of F1, or of accuracy without spans
    high: float
    sentences: int
    words: int
    precision: float | None = None  # of spans; None where labels form none
    recall: float | None = None
    f1: float | None = None
    kinds: dict[str, KindScores] = dataclasses.field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)

    def lines(self) -> list[str]:
        """For people to read."""
        interval = f"(95%: {self.low:.2f} to {self.high:.2f})"
        size = f"{self.sentences:,} sentences, {self.words:,} words"
        if self.f1 is None:
            return [f"accuracy {self.accuracy:.2f} {interval}  {size}"]
        found = [
            f"F1 {self.f1:.2f} {interval}  precision {self.precision:.2f}, "
            f"recall {self.recall:.2f}",
            f"accuracy {self.accuracy:.2f}, {size}; spans counted as conlleval does",
        ]
        width = max(map(len, self.kinds), default=0)
        for kind, one in self.kinds.items():
            found.append(
                f"  {kind:<{width}}  F1 {one.f1:6.2f}  precision {one.precision:6.2f}  "
                f"recall {one.recall:6.2f}  {one.count:,} spans"
            )
        return found


def has_spans(labels: Iterable[str]) -> bool:
    """Return whether labels are of the form B-PER, I-PER, O."""
    names = set(labels) - {OUTSIDE}
    return bool(names) and all(_SPAN_LABEL.fullmatch(name) for name in names)


def spans(labels: Labels) -> list[Span]:
    """Return the spans of a sentence."""
    found: list[Span] = []
    before = ("", "")
    for number, label in enumerate(labels):
        match = _SPAN_LABEL.fullmatch(label)
        if match is None:
            before = ("", "")
            continue
        place, kind = match.groups()
        is_open = before[0] in tuple(_LEAVES_OPEN) and before[1] == kind
        if place in _GOES_ON and is_open:
            found[-1] = found[-1]._replace(end=number + 1)
        else:
            found.append(Span(kind, number, number + 1))
        before = (place, kind)
    return found


def score_labels(found: Sequence[Labels], gold: Sequence[Labels]) -> LabelScores:
    """Return the scores of the labels of sentences, each beside its own of the test set."""
    if not any(gold):
        raise InputError("there are no words to score; the files are empty")
    for labels, expected in zip(found, gold, strict=True):
        assert len(labels) == len(expected)
    names = {label for labels in (*found, *gold) for label in labels}
    words = sum(map(len, gold))
    pairs = list(zip(found, gold, strict=True))
    right = [(_right(*pair), len(pair[1])) for pair in pairs]
    accuracy = _percent(sum(count for count, _ in right), words)
    if not has_spans(names):
        low, high = interval_of_share(numpy.array(right))
        return LabelScores(accuracy, low, high, len(gold), words)
    counts = [_counts(*pair) for pair in pairs]
    low, high = interval_of_share(numpy.array(counts))
    of_kinds = _of_kinds(found, gold)
    scores = _total(of_kinds.values()).scores()
    return LabelScores(
        accuracy=accuracy,
        low=low,
        high=high,
        sentences=len(gold),
        words=words,
        precision=scores.precision,
        recall=scores.recall,
        f1=scores.f1,
        kinds={kind: counts.scores() for kind, counts in of_kinds.items()},
    )


class KindCounts(NamedTuple):
    """How many spans of a kind there are, or examples of a label."""

    right: int
    found: int
    expected: int

    def scores(self) -> KindScores:
        """As shares."""
        return KindScores(
            precision=_percent(self.right, self.found),
            recall=_percent(self.right, self.expected),
            f1=_percent(2 * self.right, self.found + self.expected),
            count=self.expected,
        )


def _right(labels: Labels, expected: Labels) -> int:
    """How many labels of a sentence are right."""
    return sum(map(str.__eq__, labels, expected))


def _total(counts: Iterable[KindCounts]) -> KindCounts:
    right = 0
    found = 0
    expected = 0
    for one in counts:
        right += one.right
        found += one.found
        expected += one.expected
    return KindCounts(right, found, expected)


def _of_kinds(found: Sequence[Labels], gold: Sequence[Labels]) -> dict[str, KindCounts]:
    """The counts of each kind, by its name."""
    right: Counter[str] = Counter()
    ours: Counter[str] = Counter()
    theirs: Counter[str] = Counter()
    for labels, expected in zip(found, gold, strict=True):
        own = set(spans(labels))
        wanted = set(spans(expected))
        right.update(span.kind for span in own & wanted)
        ours.update(span.kind for span in own)
        theirs.update(span.kind for span in wanted)
    kinds = sorted({*ours, *theirs})
    return {kind: KindCounts(right[kind], ours[kind], theirs[kind]) for kind in kinds}


def _counts(labels: Labels, expected: Labels) -> tuple[int, int]:
    """What F1 is computed from, of one sentence: twice the right spans, and all spans of both."""
    own = set(spans(labels))
    wanted = set(spans(expected))
    return 2 * len(own & wanted), len(own) + len(wanted)


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0
