"""A sentence in capitals says what it says without them, in capitals."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import SearchOptions, Translator
from dragoman.folder.shipped import shipped_model
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.segment import Segmenter
from dragoman.text.tokenizer import TokenizerOptions, learn


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load(shipped_model("en", "de"), "cpu")


def test_the_same_in_capitals(translator: Translator) -> None:
    calm = translator.translate("The house is very old.")
    loud = translator.translate("THE HOUSE IS VERY OLD.")
    assert loud.text == calm.text.upper() != calm.text
    assert loud.score == calm.score
    assert "".join(loud.tokens).replace("▁", " ").strip() == loud.text


def test_only_the_sentences_that_are_in_capitals(translator: Translator) -> None:
    both = translator.translate("THE HOUSE IS VERY OLD. The house is very old.").text
    loud = translator.translate("THE HOUSE IS VERY OLD.").text
    calm = translator.translate("The house is very old.").text
    assert both == f"{loud} {calm}"


def test_what_is_copied_keeps_its_letters(translator: Translator) -> None:
    text = translator.translate("PLEASE OPEN {file_name} AND https://example.org/a NOW.").text
    assert "{file_name}" in text
    assert "https://example.org/a" in text
    rest = text.replace("{file_name}", "").replace("https://example.org/a", "")
    assert rest == rest.upper()


def test_alternatives_are_in_capitals_too(translator: Translator) -> None:
    found = translator.translate("THE HOUSE IS VERY OLD.", SearchOptions(beam=4, nbest=3))
    assert len(found.alternatives) == 2
    assert all(one.text == one.text.upper() for one in found.alternatives)


def test_a_beginning_that_somebody_typed_is_kept(translator: Translator) -> None:
    text = translator.translate("THE HOUSE IS VERY OLD.", prefix="Dieses").text
    assert text.startswith("Dieses")


def test_a_model_that_learnt_from_capitals_reads_them(trained: Path) -> None:
    loaded = Translator.load(trained, "cpu")
    lines = ["THE HOUSE IS OLD", "A DOG IS IN THE HOUSE", "THE OLD DOG"] * 20
    tokenizer, _ = learn(TokenizerOptions(vocab_size=320), lines, lines)
    segmenter = Segmenter(tokenizer, loaded.description)
    (segment,) = segmenter.segments("THE OLD HOUSE IS HERE", TranslateRequest())
    assert not segment.capitals
    assert segment.named.text == "THE OLD HOUSE IS HERE"
