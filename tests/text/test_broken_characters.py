"""Broken characters are seen, and unusual ones that are meant are not."""

from __future__ import annotations

import pytest
from processor_time import processor_seconds

from dragoman.text.broken_characters import is_garbled
from dragoman.text.flags import flags

SOURCE = "The girls are playing in the garden behind the house."


@pytest.mark.parametrize(
    "target",
    [
        "Die M\ufffddchen spielen im Garten.",
        "Die MÃ¤dchen spielen im Garten.",
        "Die M\x00dchen spielen im Garten.",
        "â€žDie Katze schläft nicht.â€œ",
        "Die Mäd@@ chen spielen im Gar@@ ten.",
        "▁Die▁Mädchen▁spielen▁im▁Garten.",
        "Die <unk> spielen im Garten.",
        "Die Mädchen ⁇ im Garten.",
        "Die <0xC3><0xA4> spielen.",
        "Die M ä d c h e n spielen im Garten.",
        "Die Mädсhеn sрielеn im Gаrten.",
        "D#e M{d=h~n s^i*l|n i# G%r+e& h$n=e~ d*m H^u|s.",
    ],
)
def test_broken_characters(target: str) -> None:
    assert is_garbled(SOURCE, target)
    assert "garbled" in flags(SOURCE, target)
    assert not is_garbled(target, target)  # a source that is broken itself proves nothing


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("The μm scale", "Die μm-Skala"),
        ("NÃO is Portuguese for no.", "NÃO ist Portugiesisch für nein."),
        ("He is called São João.", "Er heißt São João."),
        ("Moscow is Москва in Russian.", "Moskau heißt auf Russisch Москва."),
        ("Use a = b * c + d;", "Verwenden Sie a = b * c + d;"),
        ("I am a vegetarian.", "Je suis végétarien."),
        ("From A to B to C", "Von A nach B nach C"),
        ("I live in Tokyo.", "私は東京に住んでいます。"),
        ("Hello", "Привет"),
        ("50 % off & more!", "50 % Rabatt & mehr!"),
        ("", ""),
    ],
)
def test_unusual_characters_that_are_meant(source: str, target: str) -> None:
    assert not is_garbled(source, target)


@pytest.mark.parametrize(
    "target",
    [
        "Das Feuer lief durch den Wald durch den Wald und weiter.",
        "Sie kamen am Abend an. Sie kamen am Abend an.",
    ],
)
def test_a_phrase_said_twice_at_once(target: str) -> None:
    assert "repetition" in flags("They arrived in the evening and went on.", target)
    assert "repetition" not in flags(target, target)


def test_a_run_of_the_sources_words_is_a_copy() -> None:
    source = "Our office is closed between the years, as you know."
    assert "copied" in flags(source, "Unser Büro is closed between the years, wie Sie wissen.")
    assert "copied" not in flags('They played "Let it be".', "Sie spielten „Let it be“.")
    assert "copied" not in flags("See New York and Los Angeles.", "New York und Los Angeles sehen.")


def test_a_lost_clause() -> None:
    source = "He wanted to leave, but the door was locked, and nobody heard him."
    assert "omission" in flags(source, "Er wollte gehen, aber.")


def test_time_grows_with_the_size() -> None:
    for text in ("Ã¤ " * 30_000, "a " * 50_000, "ab cd ef " * 20_000, "#" * 100_000):
        assert processor_seconds(lambda text=text: flags("short", text)) < 5  # type: ignore[misc]
