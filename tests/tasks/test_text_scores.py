"""ROUGE beside the package rouge-score, and SQuAD's scores beside values worked out by hand."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from dragoman.errors import InputError
from dragoman.tasks.text_scores import (
    compare_texts,
    exact_match,
    rouge_l,
    rouge_n,
    score_texts,
    token_f1,
)

THEIRS = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False)
TEXTS = st.lists(
    st.sampled_from(["the", "The", "cat", "sat.", "on-top", "a", "mat,", "3.5", "Größe", "dog"]),
    max_size=12,
).map(" ".join)


@given(TEXTS, TEXTS)
def test_rouge_is_that_of_rouge_score(output: str, reference: str) -> None:
    theirs = THEIRS.score(reference, output)
    assert rouge_n(output, reference, 1) == pytest.approx(theirs["rouge1"].fmeasure)
    assert rouge_n(output, reference, 2) == pytest.approx(theirs["rouge2"].fmeasure)
    assert rouge_l(output, reference) == pytest.approx(theirs["rougeL"].fmeasure)


def test_a_long_text_has_the_rouge_of_rouge_score() -> None:
    draw = random.Random(3)
    words = [f"w{number}" for number in range(40)]
    output = " ".join(draw.choice(words) for _ in range(300))
    reference = " ".join(draw.choice(words) for _ in range(250))
    theirs = THEIRS.score(reference, output)["rougeL"].fmeasure
    assert rouge_l(output, reference) == pytest.approx(theirs)


@pytest.mark.parametrize(
    ("output", "reference", "exact", "f1"),
    [
        ("The Eiffel Tower!", "eiffel  tower", 1.0, 1.0),
        ("in Paris, France", "Paris", 0.0, 2 * (1 / 3) * 1 / (1 / 3 + 1)),
        ("Rome", "Paris", 0.0, 0.0),
        ("the", "a", 1.0, 1.0),  # nothing is left of either
        ("the", "Paris", 0.0, 0.0),
        ("two two three", "two three three", 0.0, 2 / 3),
        ("1,423", "1423", 1.0, 1.0),
    ],
)
def test_squad(output: str, reference: str, exact: float, f1: float) -> None:
    assert exact_match(output, reference) == exact
    assert token_f1(output, reference) == pytest.approx(f1)


def test_means_and_intervals() -> None:
    outputs = ["one two", "three", "four"] * 40
    references = ["one two", "three", "five"] * 40
    scores = score_texts(outputs, references)
    assert scores.exact.value == pytest.approx(200 / 3)
    assert scores.rouge2.value == pytest.approx(100 / 3)  # one word has no sequence of two
    low, high = scores.exact.low, scores.exact.high
    assert low is not None
    assert high is not None
    # Two standard errors of a share of 2/3 in 120 lines are 8.6.
    assert low == pytest.approx(200 / 3 - 8.4, abs=1.5)
    assert high == pytest.approx(200 / 3 + 8.4, abs=1.5)
    plain = score_texts(outputs, references, intervals=False)
    assert plain.exact.low is None
    assert plain.exact.value == scores.exact.value
    assert "exact match 66.7 (95%: " in "\n".join(scores.in_lines())


def test_two_systems() -> None:
    references = [f"town {number} lies here" for number in range(60)]
    worse = [text if number % 3 else "nothing" for number, text in enumerate(references)]
    better, same = compare_texts(references, worse, references)
    assert better.verdict.startswith(
        "ROUGE-L finds this model better than the other: 100.0 against"
    )
    assert better.p_value < 0.01
    assert same.score == "token F1"
    assert [one.p_value for one in compare_texts(worse, worse, references)] == [1.0, 1.0]
    assert "cannot tell" in compare_texts(worse, worse, references)[0].verdict


def test_lists_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="1 lines to score but 2 references"):
        score_texts(["a"], ["a", "b"])
    with pytest.raises(InputError, match="no lines to score"):
        score_texts([], [])
