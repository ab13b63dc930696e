"""Text in capitals: when it is such, and the way there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.capitals import in_capitals, is_in_capitals, without_capitals


@pytest.mark.parametrize(
    "text",
    [
        "THE HOUSE IS OLD.",
        "SAVE FILE",
        "DIE STRAßE IST GESPERRT",
        "WAIT FOR <x1>, THEN PRESS OK!",
        "2 MEN, 3 DOGS AND 1 CAT",
    ],
)
def test_text_in_capitals(text: str) -> None:
    assert is_in_capitals(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "123 456",
        "NATO",
        "US NAVY",
        "IBM PC",
        "THE HOUSE is OLD",
        "The House Is Old",
        "<x1> <x2> OK",
        "一 二 三",
        "iPHONE AND IPAD AND MAC",
    ],
)
def test_names_and_other_text(text: str) -> None:
    assert not is_in_capitals(text)


def test_a_sentence_without_capitals() -> None:
    assert without_capitals("MAY I SEE <x1>, I.E. THE PLAN?", "en") == (
        "May I see <x1>, i.e. the plan?"
    )
    assert without_capitals("„DAS BIN ICH“, SAGT SIE.", "de") == "„Das bin ich“, sagt sie."
    assert without_capitals("<x1> IST DA", "de") == "<x1> Ist da"
    assert without_capitals("I AM HERE", "de") == "I am here"


def test_capitals_again() -> None:
    assert in_capitals("Die Straße <x2> führt nach <x1>.") == "DIE STRASSE <x2> FÜHRT NACH <x1>."


@given(st.text(max_size=60))
def test_there_and_back_says_the_same(text: str) -> None:
    """What is in capitals comes back as it was, but for letters that have no way back."""
    loud = in_capitals(text)
    if is_in_capitals(loud) and loud.lower().upper() == loud:
        assert in_capitals(without_capitals(loud, "de")) == loud
