"""What may be learnt: poisoned corrections are refused, users bounded, and practice does not
contradict what is taught."""

from __future__ import annotations

import random

import pytest
from tiny import ENGLISH, GERMAN

from dragoman.improving.correction_checks import (
    DISTRUSTED,
    LANGUAGE,
    REPEATED,
    TOO_MANY,
    UNLIKELY,
    Checks,
    plain_reason,
    settled,
)
from dragoman.improving.learn_options import Given
from dragoman.improving.older_text import parts, words_taken_away


def rows(count: int, seed: int = 1) -> list[tuple[str, str]]:
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        digits = [draw.randrange(10) for _ in range(draw.randint(4, 9))]
        english = " ".join(ENGLISH[digit] for digit in digits)
        found.append((english, " ".join(GERMAN[digit] for digit in digits)))
    return found


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("one two three four", "eins zwei drei vier", ""),
        ("", "eins", "empty"),
        ("one", " \u200b ", "empty"),
        ("one two three four", "One two three four", "a copy of the source"),
        ("one two three four", "eins zwei drei vier " * 200, "too long"),
        ("one two three four", "eins zwei drei vier " * 20, "of an unlikely length"),
        ("drei eins zwei vier acht", "three one two four eight", LANGUAGE),
        ("three one two four eight", "two four eight three one", LANGUAGE),
        ("three one two", "три один два", "in the wrong script"),
        ("three four five", "drei vier fÃ¼nf", "garbled"),
        ("three four five", "<b>drei</b> vier <i>fünf</i>", "HTML on one side"),
    ],
)
def test_one_correction_by_itself(source: str, target: str, reason: str) -> None:
    given = Given(source, target, "address 1")
    found = plain_reason(given) or Checks(rows(300)).reason(given)
    assert found == reason


def test_a_user_who_is_mostly_wrong_is_not_heard() -> None:
    good = [Given(*pair, "key anna") for pair in rows(20, 2)]
    bad = [Given(*pair, "address 1") for pair in rows(1000, 3)]
    operator = [Given(*pair) for pair in rows(10, 4)]
    reasons = [""] * 20 + [UNLIKELY] * 450 + [""] * 550 + [UNLIKELY] * 6 + [""] * 4
    checked = settled([*good, *bad, *operator], reasons, per_user=2000, most=5000)
    assert {one.user for one in checked.usable} == {"key anna", ""}
    assert checked.refused == {UNLIKELY: 456, DISTRUSTED: 550}


def test_of_one_user_a_limited_number_counts() -> None:
    many = [Given(f"one {number}", f"eins {number}", "address 1") for number in range(1000)]
    few = [Given(f"two {number}", f"zwei {number}", "key anna") for number in range(30)]
    own = [Given(f"six {number}", f"sechs {number}") for number in range(300)]
    given = [*many, *few, *own]
    checked = settled(given, [""] * len(given), per_user=100, most=5000)
    users = [one.user for one in checked.usable]
    assert users.count("address 1") == 100
    assert users.count("key anna") == 30
    assert users.count("") == 300
    assert checked.refused == {TOO_MANY: 900}
    # The newest of them count.
    assert checked.usable[0].source == "one 900"


def test_several_corrections_of_a_sentence() -> None:
    given = [
        Given("one", "ein", "a"),
        Given("one", "eins", "b"),
        Given("one", "eins", "c"),
        Given("one", "einer", "d"),
        Given("two", "zwo", "a"),
        Given("two", "zwei", "b"),
    ]
    checked = settled(given, [""] * 6, per_user=100, most=100)
    assert [(one.source, one.target) for one in checked.usable] == [
        ("one", "eins"),
        ("two", "zwei"),
    ]
    assert checked.refused == {REPEATED: 4}


def test_words_that_corrections_take_away() -> None:
    said = ["Herr Eins kommt", "Herr Zwei geht", "Frau Drei", "Herr Vier", "Frau Fünf kommt"]
    corrected = ["Hr. Eins kommt", "Hr. Zwei geht", "Frau Drei", "Hr. Vier", "Frau Fünf bleibt"]
    assert words_taken_away(said, corrected) == {"Herr"}


def test_parts_of_sentences() -> None:
    text = "When it rains in the morning, we stay at home; you go, and nobody sees us there."
    assert parts([text, text]) == [
        "When it rains in the morning,",
        "we stay at home;",
        "and nobody sees us there.",
    ]
