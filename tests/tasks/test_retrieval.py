"""How often the nearest vector is the right one, on vectors whose neighbours are plain to see."""

from __future__ import annotations

import numpy
import pytest

from dragoman.errors import InputError
from dragoman.tasks import retrieval
from dragoman.tasks.retrieval import found_right, score_retrieval


def at(*degrees: float) -> retrieval.Vectors:
    """Vectors of length 1 in a plane."""
    angles = numpy.radians(degrees)
    return numpy.stack([numpy.cos(angles), numpy.sin(angles)], axis=1).astype(numpy.float32)


PAIRS = [("one", "eins"), ("two", "zwei"), ("three", "drei")]


@pytest.mark.parametrize("at_once", [1, 2, 1024])
def test_both_directions(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From one at 0 the nearest is eins at 10, from two at 90 it is drei at 80, and from three at
    130 drei as well; from eins it is one, from zwei at 200 and from drei three and two."""
    monkeypatch.setattr(retrieval, "_AT_ONCE", at_once)
    there, back = found_right(at(0, 90, 130), at(10, 200, 80), PAIRS)
    assert there.tolist() == [True, False, True]
    assert back.tolist() == [True, False, False]


def test_scores() -> None:
    scores = score_retrieval(at(0, 90, 130), at(10, 200, 80), PAIRS)
    assert scores.there == pytest.approx(200 / 3)
    assert scores.back == pytest.approx(100 / 3)
    assert scores.accuracy == pytest.approx(50.0)
    assert scores.pairs == 3
    assert scores.low <= 50.0 <= scores.high
    assert scores.lines()[0].startswith("retrieval 50.0 (95%: ")


def test_a_text_that_stands_beside_two_others() -> None:
    """Either is right: servus is at 2 and 3, hi at 0, and bye at 90 finds hallo at 5."""
    pairs = [("hi", "hallo"), ("hi", "servus"), ("bye", "servus")]
    there, back = found_right(at(0, 0, 90), at(5, 2, 3), pairs)
    assert there.tolist() == [True, True, False]
    assert back.tolist() == [True, True, True]


def test_nothing_to_score() -> None:
    with pytest.raises(InputError, match="no pairs to score"):
        score_retrieval(at(), at(), [])
