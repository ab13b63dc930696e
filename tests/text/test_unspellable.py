"""What a vocabulary cannot spell is found whole, and what it can spell is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processor_time import processor_seconds

from dragoman.text.copying import Concealer
from dragoman.text.unspellable import Unspellable

LATIN = [*"abcdefghijklmnopqrstuvwxyzäöüßи.-", "▁the", "▁word", "▁Haus", "ing", "tion"]
HAN = [*"的是不我一有大在人了中到資要", "▁the", "word", "中国人", "我有人", "一大人", "不要的"]


def found(text: str, pieces: list[str]) -> list[str]:
    return [text[start:end] for start, end in Unspellable(pieces).spans(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("He was born in Москва, Россия.", ["Москва", "Россия"]),
        ("the Привет мир the", ["Привет мир"]),
        ("of мир", ["мир"]),  # "и" has a piece, but its script has no words
        ("Łukasz Żółć or José", ["Łukasz Żółć"]),
        ("H₂O and x ≈ 3", ["H₂O", "≈"]),
        ("The word 日本 means Japan", ["日本"]),
        ("α-helix, שלום!", ["α", "שלום"]),
        ("मैं and १०", ["मैं", "१०"]),
        ("“Hello” – she said… naïve café, Über, ½ x²", []),
        ("plain text & <b> ~", []),
        ("zero\u200bwidth \ufeff\u00a0\u202f \ufffd \ud800", []),
        ("", []),
    ],
)
def test_what_latin_pieces_cannot_spell(text: str, words: list[str]) -> None:
    assert found(text, LATIN) == words


def test_a_vocabulary_of_ideographs_lacks_those_that_it_has_no_piece_for() -> None:
    assert found("我有龘。the word", HAN) == ["龘"]
    assert found("我有人。Łódź", HAN) == ["Łódź"]


@given(st.text())
def test_spans_are_in_order_and_disjoint(text: str) -> None:
    end = 0
    for start, stop in Unspellable(LATIN).spans(text):
        assert end <= start < stop <= len(text)
        end = stop


def test_such_words_are_concealed_beside_what_is_protected() -> None:
    concealer = Concealer("en", "de", Unspellable(LATIN))
    concealed = concealer.conceal("Dear {имя}, see москва.example.org at 5:30 pm in Łódź ✓.")
    copied = [copy.source for copy in concealed.copies]
    assert copied == ["{имя}", "москва", "at 5:30 pm", "Łódź", "✓"]
    assert concealed.reveal(concealed.text) == (
        "Dear {имя}, see москва.example.org at 5:30 pm in Łódź ✓."
    )
    assert "Łódź" not in [copy.source for copy in Concealer("en", "de").conceal("Łódź").copies]


@pytest.mark.parametrize("part", ["Ż", "aŻ ", "Ż a", "日", "a", "≈", "α-"])
def test_time_is_linear(part: str) -> None:
    unspellable = Unspellable(LATIN)

    def seconds(size: int) -> float:
        text = "Ż" + part * (size // len(part))
        return processor_seconds(lambda: list(unspellable.spans(text)))

    seconds(1000)
    small = seconds(20_000)
    large = seconds(160_000)
    assert large < 30 * small + 0.05
