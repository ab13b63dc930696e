"""Sentences: nothing is ever lost, lines are cut where a reader would cut them, and quickly."""

from __future__ import annotations

import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import MissingDependencyError
from dragoman.text.sentences import split

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
    long = "word " * 2000 + "end."
    assert [
        sentence for sentence, _ in split(f"Short one. {long} Another. {long} Last.", "en")
    ] == [
        "Short one.",
        long,
        "Another.",
        long,
        "Last.",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "Hello, my friend",
        "Hello there!",
        "„Gut.“",
        "यह घर है।",
        "No 1, no 2 & no 3 (all)...",
        "你好，朋友。",
        " \t",
        "😀",
    ],
)
def test_one_sentence_does_not_load_the_library(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencex", None)
    assert "".join(sentence + white for sentence, white in split(line, "en")) == line


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencex", None)
    with pytest.raises(MissingDependencyError, match=r"pip install sentencex.*--whole-lines"):
        split("One is here. Two is there.", "en")


def test_a_library_that_loses_text_or_breaks_costs_the_cut_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class PanicException(BaseException):
        pass

    def panics(language: str, text: str) -> list[str]:
        raise PanicException

    for broken in (lambda language, text: ["One"], panics):
        monkeypatch.setitem(sys.modules, "sentencex", SimpleNamespace(segment=broken))
        assert split("One is here. Two is there.", "en") == [("One is here. Two is there.", "")]


def test_importing_it_does_not_load_the_library() -> None:
    program = """
import sys, dragoman.text.sentences
sys.exit('sentencex' in sys.modules or 'torch' in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
