"""Error rates worked out by hand, and edits beside the table of distances that everybody knows."""

from __future__ import annotations

import random

import pytest

from dragoman.errors import InputError
from dragoman.tasks.speech_scores import edits, plain, score_speech


def table_of_distances(output: str, reference: str) -> int:
    """Wagner and Fischer 1974, cell by cell."""
    above = list(range(len(output) + 1))
    for number, wanted in enumerate(reference, 1):
        row = [number]
        for place, found in enumerate(output, 1):
            changed = above[place - 1] + (found != wanted)
            row.append(min(changed, above[place] + 1, row[-1] + 1))
        above = row
    return above[-1]


@pytest.mark.parametrize(
    ("output", "reference", "count"),
    [
        ("kitten", "sitting", 3),
        ("sitting", "kitten", 3),
        ("", "abc", 3),
        ("abc", "", 3),
        ("", "", 0),
        ("same", "same", 0),
        ("flaw", "lawn", 2),
        ("b", "abab", 3),
    ],
)
def test_edits_of_known_pairs(output: str, reference: str, count: int) -> None:
    assert edits(output, reference) == count


def test_edits_are_those_of_the_table() -> None:
    draw = random.Random(3)
    for _ in range(400):
        output = "".join(draw.choices("abc", k=draw.randrange(90)))
        reference = "".join(draw.choices("abc", k=draw.randrange(90)))
        assert edits(output, reference) == table_of_distances(output, reference)


def test_rates_are_of_the_whole_set() -> None:
    """Four words with an error and one without: 2 of 5 words, not the mean of two rates.

    Characters: "send 40 boxes" to "Send 42 boxes now" are S, 2 and four more; "two" is right.
    """
    outputs = ["send 40 boxes", "two"]
    references = ["Send 42 boxes now", "two"]
    scores = score_speech(outputs, references, intervals=False)
    assert scores.wer.value == pytest.approx(100 * 3 / 5)
    assert scores.cer.value == pytest.approx(100 * 6 / 20)
    assert scores.plain_wer.value == pytest.approx(100 * 2 / 5)
    assert scores.plain_cer.value == pytest.approx(100 * 5 / 20)
    assert (scores.recordings, scores.words) == (2, 5)
    assert scores.wer.low is None


def test_more_words_than_were_said_are_more_than_everything() -> None:
    assert score_speech(["a b c d"], ["x"], intervals=False).wer.value == 400.0


def test_an_interval_holds_the_rate_and_is_the_same_each_time() -> None:
    references = ["one two three four"] * 50
    outputs = ["one two three four"] * 40 + ["one two three five"] * 10
    scores = score_speech(outputs, references)
    assert scores.wer.value == pytest.approx(5.0)
    assert scores.wer.low is not None
    assert scores.wer.high is not None
    # Errors of 50 draws have a mean of 10 and a deviation of sqrt(50 x 0.2 x 0.8), 2.8.
    assert 1.8 <= scores.wer.low <= 2.8
    assert 7.2 <= scores.wer.high <= 8.8
    assert scores == score_speech(outputs, references)
    assert "WER 5.0 (95%: " in scores.in_lines()[0]


def test_without_capitals_and_punctuation() -> None:
    text = "Hello, World! It's  “fine” – isn't it? ½ km"
    assert plain(text) == "hello world it's fine isn't it 1 2 km"
    assert plain("'tis the dogs' ÉTÉ") == "tis the dogs été"


def test_sets_that_do_not_match_are_refused() -> None:
    with pytest.raises(InputError, match="1 transcripts to score but 2 references"):
        score_speech(["a"], ["a", "b"])
    with pytest.raises(InputError, match="each needs one"):
        score_speech([], [])
