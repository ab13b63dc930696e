"""How well the labels of texts or images match those of a test set. Knows labels; no model."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from dragoman.errors import InputError
from dragoman.tasks.drawn_intervals import interval_of_mean
from dragoman.tasks.span_scores import KindCounts, KindScores


@dataclass(frozen=True)
class ClassScores:
    """Shares from 0 to 100."""

    accuracy: float
    low: float  # 95% interval of the accuracy, by resampling examples
    high: float
    macro_f1: float  # the mean over the labels, those that were found or expected
    examples: int
    labels: dict[str, KindScores]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)

    def lines(self) -> list[str]:
        """For people to read."""
        found = [
            f"accuracy {self.accuracy:.2f} (95%: {self.low:.2f} to {self.high:.2f})  "
            f"macro F1 {self.macro_f1:.2f}, {self.examples:,} examples of {len(self.labels)} labels"
        ]
        width = max(map(len, self.labels))
        for label, one in self.labels.items():
            found.append(
                f"  {label:<{width}}  F1 {one.f1:6.2f}  precision {one.precision:6.2f}  "
                f"recall {one.recall:6.2f}  {one.count:,} examples"
            )
        return found


def score_classes(found: Sequence[str], gold: Sequence[str]) -> ClassScores:
    """Return the scores of labels, each beside its own of the test set."""
    if not gold:
        raise InputError("there are no examples to score; the files are empty")
    pairs = list(zip(found, gold, strict=True))
    right = Counter(label for label, expected in pairs if label == expected)
    ours = Counter(found)
    theirs = Counter(gold)
    labels = {}
    for label in sorted({*ours, *theirs}):
        counts = KindCounts(right[label], ours[label], theirs[label])
        labels[label] = counts.scores()
    hits = numpy.array([label == expected for label, expected in pairs], float)
    low, high = interval_of_mean(hits)
    f1_of_labels = [one.f1 for one in labels.values()]
    return ClassScores(
        accuracy=100.0 * float(hits.mean()),
        low=100.0 * low,
        high=100.0 * high,
        macro_f1=float(numpy.mean(f1_of_labels)),
        examples=len(pairs),
        labels=labels,
    )
