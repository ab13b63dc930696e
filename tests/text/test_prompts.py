"""How questions and texts are put to a model."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.errors import OptionError
from dragoman.text.prompts import Prompts, filled, prompts_of


def test_places_are_filled_once_and_braces_are_text() -> None:
    template = "question: {question} context: {context}"
    text = filled(template, question="What is {context}?", context="{question}")
    assert text == "question: What is {context}? context: {question}"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ask": "question: {question}"}, "{question} and {context}"),
        ({"ask": "{question} {context} {context}"}, "each once"),
        ({"summarise": "summarise:"}, "{text}"),
        ({"summarise": "{text}" + "x" * 3000}, "3,006 characters"),
    ],
)
def test_a_template_that_lacks_a_place(fields: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError) as raised:
        Prompts(**fields)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "theirs", "expected"),
    [
        ("t5", {}, "summarize: {text}"),
        ("t5", {"task_specific_params": {"summarization": {"prefix": "tl;dr: "}}}, "tl;dr: {text}"),
        ("t5", {"task_specific_params": {"summarization": {"prefix": 7}}}, "summarize: {text}"),
        ("t5", {"task_specific_params": {"summarization": {"prefix": "{"}}}, "summarize: {text}"),
        ("t5", {"task_specific_params": [1]}, "summarize: {text}"),
        ("bart", {"task_specific_params": {"summarization": {}}}, "{text}"),
        ("marian", {}, ""),
    ],
)
def test_what_a_folder_says(kind: str, theirs: dict[str, Any], expected: str) -> None:
    assert prompts_of(kind, theirs).summarise == expected
