"""Normalisation: what it documents, and that doing it twice is doing it once."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.normalise import normalise

ANY_TEXT = st.text(
    st.characters(min_codepoint=0, max_codepoint=0x10FFFF, categories=None), max_size=40
)
TROUBLE = st.text(
    st.sampled_from(
        "a \t\n\r\x0b\x0c\x1c\x85\xa0\xad\u0301\u200b\u200d\u2028\u2060\u2581\u3000\ufeff\ud800가"
    ),
    max_size=12,
)


@given(ANY_TEXT | TROUBLE)
def test_twice_is_once(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(ANY_TEXT | TROUBLE)
def test_result_has_single_spaces_only_and_is_nfc(text: str) -> None:
    result = normalise(text)
    assert result.split() == [word for word in result.split(" ") if word]
    assert result == result.strip()
    assert "  " not in result
    assert "\u2581" not in result
    assert unicodedata.is_normalized("NFC", result)
    result.encode("utf-8")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  a \t b\r\n", "a b"),
        ("a\u2028b\x0cc\x85d\x1ce", "a b c d e"),
        ("e\u0301", "\u00e9"),
        ("e\u200b\u0301", "\u00e9"),
        ("soft\u00adhyphen\x00\ufeff", "softhyphen"),
        ("a\u2581b", "a_b"),
        ("\ud800", "\ufffd"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("½ “Straße” ﬁ A", "½ “Straße” ﬁ A"),
    ],
)
def test_what_is_documented(text: str, expected: str) -> None:
    assert normalise(text) == expected
