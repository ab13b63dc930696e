"""Sentences: nothing is ever lost, lines are cut where a reader would cut them, and quickly."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processor_time import processor_seconds

from dragoman.text.sentences import split

HARD = Path(__file__).with_name("hard_sentences.txt")
ANY_TEXT = st.text(
    st.characters(min_codepoint=0, max_codepoint=0x10FFFF, categories=None), max_size=60
)
TROUBLE = st.text(
    st.sampled_from("aA1 .!?。؟।…\t\n\r\x0b\x1c\x85\xa0\u2028\u3000\ud800\u0301\"'()«»你😀"),
    max_size=40,
)
LANGUAGES = st.sampled_from(
    ["en", "de", "zh", "ar", "am", "hy", "el", "twi", "xx", "", "en-GB", "\ud800"]
)


@given(ANY_TEXT | TROUBLE, LANGUAGES)
def test_joining_restores_the_text(text: str, language: str) -> None:
    found = split(text, language)
    assert "".join(sentence + white for sentence, white in found) == text
    for place, (sentence, white) in enumerate(found):
        assert sentence == sentence.strip()
        assert sentence or place == 0
        assert not white.strip()


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["Mr. Smith paid $3.50 for it.", "Was it worth it?", "Yes!"]),
        ("de", ["Am 3. Mai kam Dr. Meier z.B. nach Bonn.", "Er blieb.", "Warum?"]),
        ("DE-at", ["Am 3. Mai kam Dr. Meier.", "Er blieb."]),
        ("twi", ["Me din de Kofi.", "Wo ho te sɛn?", "Ɛyɛ."]),
        ("xx", ["One is here.", "Two is there."]),
        ("", ["One is here.", "Two is there."]),
        ("ar", ["مرحبا بك.", "كيف حالك؟", "أنا بخير."]),
        ("hi", ["यह घर है।", "वह कहाँ है?"]),
        ("am", ["ሰላም ነው።", "ደህና ነኝ።"]),
        ("en", ["all in small letters.", "does it matter?", "no!"]),
        ("el", ["Πού είσαι;", "Εδώ είμαι."]),
        ("en", ["I laughed 😀.", "Then we left 🚗!", "End"]),
    ],
)
def test_sentences(language: str, sentences: list[str]) -> None:
    expected = [(sentence, " ") for sentence in sentences[:-1]] + [(sentences[-1], "")]
    assert split(" ".join(sentences), language) == expected


def test_a_script_without_spaces() -> None:
    assert split("你好。我们走吧！好吗？", "zh") == [
        ("你好。", ""),
        ("我们走吧！", ""),
        ("好吗？", ""),
    ]


def test_white_space_stays() -> None:
    assert split("\t One.  Two.\u3000\nThree\n\nFour ", "en") == [
        ("", "\t "),
        ("One.", "  "),
        ("Two.", "\u3000\n"),
        ("Three", "\n\n"),
        ("Four", " "),
    ]
    assert split("", "en") == []
    assert split(" \t", "en") == [("", " \t")]


@pytest.mark.parametrize(
    "unit", ["你好。", "Hello there. ", "no end ", "A\xa0. ", "\n", "( a. ", "。", "\ud800. "]
)
def test_a_long_line_is_quick(unit: str) -> None:
    text = (unit * 100_000)[:100_000]
    start = time.process_time()
    found = split(text, "zh")
    assert time.process_time() - start < 2
    assert "".join(sentence + white for sentence, white in found) == text
    if unit == "你好。":
        assert len(found) == 33_334


def test_a_sentence_longer_than_the_window_stays_whole() -> None:
    long = "Word " + "word " * 2000 + "end."
    assert [
        sentence for sentence, _ in split(f"Short one. {long} Another. {long} Last.", "en")
    ] == [
        "Short one.",
        long,
        "Another.",
        long,
        "Last.",
    ]


def hard_cases() -> list[tuple[str, list[str], str]]:
    """Language, sentences and what stands between them, of each case in the file."""
    cases = []
    for line in HARD.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            language, marked = line.split("\t")
            mark, space = ("|", "") if language == "ja" else (" | ", " ")
            cases.append((language, marked.split(mark), space))
    return cases


def test_hard_cases() -> None:
    """At least 99% are right, and hardly one is split where it should stay whole."""
    cases = hard_cases()
    assert len(cases) >= 250
    assert len({language for language, _, _ in cases}) == 10
    wrong = []
    too_many = 0
    for language, sentences, space in cases:
        found = [sentence for sentence, _ in split(space.join(sentences), language)]
        if found != sentences:
            wrong.append(found)
            too_many += len(found) > len(sentences)
    assert len(wrong) <= 0.01 * len(cases), wrong
    assert too_many <= 1, wrong


def test_an_ordinal_number_does_not_end_a_german_sentence() -> None:
    line = "Im 19. Jahrhundert war das anders."
    assert split(line, "de") == [(line, "")]
    assert split(line, "de-AT") == [(line, "")]


@pytest.mark.parametrize(
    "line",
    [
        "I went to the Xzt. Abteilung there",  # unknown, and without a vowel
        "Siehe Nr. 5 und Nr. 6",
        "a sentence (it has brackets. And two parts.) goes on",
        "wait... then",
        "J. K. Rowling",
        "1. Introduction",
        "What is the A.B.C. Company",
    ],
)
def test_where_it_is_not_certain_a_line_stays_whole(line: str) -> None:
    assert split(line, "en") == [(line, "")]


@pytest.mark.parametrize(
    "unit", [".", "...!", '."', "a.b", ". »", "(a. B", "「。", "A. ", "1. ", "x" * 50 + ". X"]
)
def test_time_is_linear_in_the_length(unit: str) -> None:
    """Four times the text takes four times as long, not sixteen."""

    def seconds(length: int) -> float:
        text = (unit * length)[:length]
        return min(processor_seconds(lambda: split(text, "de")) for _ in range(3))

    assert seconds(80_000) < 9 * seconds(20_000) + 0.05


def test_importing_it_loads_nothing_heavy() -> None:
    program = """
import sys, dragoman.text.sentences
sys.exit('torch' in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
