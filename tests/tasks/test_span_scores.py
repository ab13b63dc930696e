"""Labels of words against those of a test set: spans, precision, recall and F1, all worked out by
hand."""

from __future__ import annotations

import pytest

from dragoman.errors import InputError
from dragoman.tasks.span_scores import has_spans, score_labels, spans


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("B-PER I-PER O B-LOC", [("PER", 0, 2), ("LOC", 3, 4)]),
        ("B-PER B-PER I-PER", [("PER", 0, 1), ("PER", 1, 3)]),
        ("I-PER I-PER O I-PER", [("PER", 0, 2), ("PER", 3, 4)]),  # the first scheme of CoNLL
        ("I-PER I-LOC", [("PER", 0, 1), ("LOC", 1, 2)]),
        ("B-PER I-LOC I-LOC", [("PER", 0, 1), ("LOC", 1, 3)]),
        ("O I-LOC B-LOC", [("LOC", 1, 2), ("LOC", 2, 3)]),
        ("B-X I-X E-X S-X E-X", [("X", 0, 3), ("X", 3, 4), ("X", 4, 5)]),  # BIOES
        ("B-X E-X I-X", [("X", 0, 2), ("X", 2, 3)]),  # an end is an end
        ("S-X I-X", [("X", 0, 1), ("X", 1, 2)]),
        ("B-A-B I-A-B", [("A-B", 0, 2)]),
        ("O O", []),
    ],
)
def test_spans(labels: str, expected: list[tuple[str, int, int]]) -> None:
    assert [tuple(span) for span in spans(labels.split())] == expected


def test_labels_that_form_spans() -> None:
    assert has_spans(["B-PER", "I-PER", "O"])
    assert not has_spans(["NN", "VBZ", "O"])
    assert not has_spans(["B-PER", "NN"])
    assert not has_spans(["O"])


def test_precision_recall_and_f1() -> None:
    """Expected: PER 0-2, LOC 3-4, PER 0-1 of the second sentence, LOC 1-3. Found: PER 0-2 (right),
    ORG 3-4 (another kind), PER 0-1 (right), LOC 1-2 (too short). 2 right of 4 found and 4
    expected: each 50. Words: 7 of 9."""
    gold = [["B-PER", "I-PER", "O", "B-LOC", "O"], ["B-PER", "B-LOC", "I-LOC", "O"]]
    found = [["B-PER", "I-PER", "O", "B-ORG", "O"], ["B-PER", "B-LOC", "O", "O"]]
    scores = score_labels(found, gold)
    assert (scores.precision, scores.recall, scores.f1) == (50.0, 50.0, 50.0)
    assert scores.accuracy == pytest.approx(100 * 7 / 9)
    assert (scores.sentences, scores.words) == (2, 9)
    kinds = {kind: (one.precision, one.recall, one.count) for kind, one in scores.kinds.items()}
    assert kinds == {"LOC": (0.0, 0.0, 2), "ORG": (0.0, 0.0, 0), "PER": (100.0, 100.0, 2)}
    assert scores.lines()[0].startswith("F1 50.00 (95%: ")
    assert scores.low <= 50.0 <= scores.high


def test_unequal_numbers_of_spans() -> None:
    """3 found and 2 expected, 1 of them right: 33.3, 50, and F1 2 / 5."""
    scores = score_labels([["B-X", "B-X", "B-X", "O"]], [["B-X", "I-X", "B-X", "O"]])
    assert scores.precision == pytest.approx(100 / 3)
    assert scores.recall == 50.0
    assert scores.f1 == pytest.approx(40.0)
    assert (scores.low, scores.high) == (scores.f1, scores.f1)  # of one sentence


def test_other_labels_have_an_accuracy() -> None:
    scores = score_labels([["NN", "VB"], ["DT"]], [["NN", "NN"], ["DT"]])
    assert scores.accuracy == pytest.approx(200 / 3)
    assert scores.f1 is None
    assert scores.lines() == [
        f"accuracy 66.67 (95%: {scores.low:.2f} to {scores.high:.2f})  2 sentences, 3 words"
    ]
    assert (scores.low, scores.high) == (50.0, 100.0)


def test_nothing_to_score() -> None:
    with pytest.raises(InputError, match="no words to score"):
        score_labels([], [])
