"""Sentences cut into what one search is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.segment import MAX_TERMS, Segmenter
from dragoman.tasks.translate import Translator
from dragoman.text.glossary import Glossary, Term


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    """One that takes sentences of any length whole."""
    made = Translator.load(trained, "cpu", "torch")
    description = replace(made.description, longest=made.description.model.max_length)
    return Translator(made.runtime, made.tokenizer, description)


def names(count: int) -> list[str]:
    """Distinct words of letters, such as "ab" or "cj"."""
    letters = "abcdefghij"
    return [letters[number // 10] + letters[number % 10] for number in range(count)]


def test_no_search_is_held_to_more_than_a_few_terms(translator: Translator) -> None:
    """The beam is as wide as a search has terms: 130 in one sentence took minutes."""
    words = names(50)
    glossary = Glossary([Term(word, (word.upper(),)) for word in words])
    asked = TranslateRequest(glossary=glossary, prefix="eins", split=False)
    segments = translator.segmenter.segments(" ".join(words), asked)
    counts = [len(segment.request.terms) for segment in segments]
    assert max(counts) <= MAX_TERMS < 4 * min(counts)
    assert sum(counts) == 50  # none is lost
    assert " ".join(segment.text for segment in segments) == " ".join(words)
    assert [bool(segment.request.prefix) for segment in segments][:2] == [True, False]
    whole = translator.segmenter.segments(" ".join(words[:MAX_TERMS]), asked)
    assert len(whole) == 1


def test_a_sentence_of_many_terms_says_them_all(translator: Translator) -> None:
    words = names(20)
    glossary = Glossary([Term(word, (f"{word}{word}",)) for word in words])
    (found,) = translator.translate([" ".join(words)], glossary=glossary, split=False)
    assert set(found.text.split()) >= {f"{word}{word}" for word in words}


def test_words_without_spaces_are_cut_too(translator: Translator) -> None:
    signs = [chr(0x4E00 + number) for number in range(40)]
    glossary = Glossary([Term(sign, ("neun",)) for sign in signs])
    asked = TranslateRequest(glossary=glossary, split=False)
    segments = translator.segmenter.segments("".join(signs), asked)
    assert max(len(segment.request.terms) for segment in segments) <= MAX_TERMS


def test_what_must_stay_is_bounded_too(translator: Translator) -> None:
    """A careful search has everything that must be carried over as terms."""
    text = " ".join(f"{{{name}}}" for name in names(40))
    (segment,) = translator.segmenter.segments(text, TranslateRequest(split=False, protect=False))
    assert len(translator.segmenter.with_copies(segment).request.terms) == MAX_TERMS


def test_what_surely_fits_is_not_cut_into_tokens_to_see_it(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token has a byte of the text at least; what has fewer bytes than the model takes tokens is
    one part, and anything longer is counted."""
    description = replace(translator.description, longest=24)  # 23 tokens and the end
    segmenter = Segmenter(translator.tokenizer, description)
    counted: list[str] = []
    encode = translator.tokenizer.encode

    def noted(lines: Sequence[str], side: Any) -> list[list[int]]:
        counted.extend(lines)
        return encode(lines, side)

    monkeypatch.setattr(translator.tokenizer, "encode", noted)
    texts = ["x" * 22, "x" * 23, "\U0001f600" * 5, "\U0001f600" * 6]  # of 22, 23, 20, 24 bytes
    parts = [segmenter.parts(text) for text in texts]
    assert counted == [texts[1], texts[3]]
    assert parts[0] == [texts[0]]
    assert parts[2] == [texts[2]]
    for text in texts:
        (tokens,) = encode([text], "source")
        assert len(tokens) <= len(text.encode()) + 1
