"""Accuracy and macro F1, worked out by hand."""

from __future__ import annotations

import pytest

from dragoman.errors import InputError
from dragoman.tasks.class_scores import score_classes


def test_accuracy_and_macro_f1() -> None:
    """a: 2 right of 3 found and 2 expected, F1 4 / 5; b: 1 of 2 and 3, F1 2 / 5; c: expected once
    and never found, F1 0; d: found once and never expected, F1 0."""
    found = ["a", "a", "a", "b", "b", "d"]
    gold = ["a", "a", "b", "b", "c", "b"]
    scores = score_classes(found, gold)
    assert scores.accuracy == 50.0
    assert [one.f1 for one in scores.labels.values()] == pytest.approx([80.0, 40.0, 0.0, 0.0])
    assert scores.macro_f1 == pytest.approx(30.0)
    assert list(scores.labels) == ["a", "b", "c", "d"]
    assert scores.labels["a"].precision == pytest.approx(200 / 3)
    assert scores.labels["b"].recall == pytest.approx(100 / 3)
    assert scores.low < 50.0 < scores.high
    assert scores.lines()[0].startswith("accuracy 50.00 (95%: ")
    assert "macro F1 30.00, 6 examples of 4 labels" in scores.lines()[0]


def test_nothing_to_score() -> None:
    with pytest.raises(InputError, match="no examples to score"):
        score_classes([], [])
