"""Amounts, dates and times as the target language writes them; what is unclear stays."""

from __future__ import annotations

import pytest
from processor_time import processor_seconds

from dragoman.text.figures import figures, style_of


def rewritten(text: str, source: str, target: str) -> str:
    """The text with every figure as the target language writes it."""
    for figure in reversed(list(figures(text, style_of(source), style_of(target)))):
        text = text[: figure.start] + figure.written + text[figure.end :]
    return text


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("1,234.56", "1.234,56"),
        ("1,000,000", "1.000.000"),
        ("3.5%", "3,5%"),
        ("0.125", "0,125"),
        ("12345.67", "12345,67"),
        ("$1,234.56", "1.234,56 $"),
        ("€5", "5 €"),
        ("£20.50", "20,50 £"),
        ("at 5:30 pm", "at 17:30 Uhr"),
        ("at 12:15 a.m.", "at 0:15 Uhr"),
        ("at 12:15 pm", "at 12:15 Uhr"),
        ("at 17:30", "at 17:30"),
        # Not clear, or the same everywhere.
        ("1.234", "1.234"),
        ("1,5", "1,5"),
        ("1,23,456", "1,23,456"),
        ("2024-03-05", "2024-03-05"),
        ("03/04/2024", "03/04/2024"),
        ("version 2.13.0", "version 2.13.0"),
        ("+49 30 1234567", "+49 30 1234567"),
        ("1990s, 100th, 50-100, 2024", "1990s, 100th, 50-100, 2024"),
        ("B1.5x and 7.a", "B1.5x and 7.a"),
    ],
)
def test_english_to_german(english: str, german: str) -> None:
    assert rewritten(english, "en", "de") == german


@pytest.mark.parametrize(
    ("source", "target", "text", "wanted"),
    [
        ("de", "en", "1.234,56 € und 3,5 %", "€1,234.56 und 3.5 %"),
        ("de", "en", "1.234 und 1,234", "1,234 und 1,234"),
        ("de", "en", "17:30 Uhr am 03.04.2024", "17:30 Uhr am 03.04.2024"),
        ("en", "fr", "$1,234.56 at 5:30 pm", "1\u202f234,56 $ at 17:30"),
        ("fr", "de", "1\u202f234,56", "1.234,56"),
        ("en", "tw", "1,234.56 at 5:30 pm", "1,234.56 at 5:30 pm"),
        ("en", "xx", "1,234.56", "1,234.56"),
        ("en_GB", "de-AT", "1,234.56", "1.234,56"),
    ],
)
def test_other_languages(source: str, target: str, text: str, wanted: str) -> None:
    assert rewritten(text, source, target) == wanted


def test_figures_are_found_whole() -> None:
    text = "It costs $1,234.56 (5:30 pm), 2024-03-05, +49 30 1234567."
    found = [text[one.start : one.end] for one in figures(text, None, None)]
    assert found == ["$1,234.56", "5:30 pm", "2024-03-05", "+49 30 1234567"]


@pytest.mark.parametrize(
    "part", ["1,", "1.111", "1:11", "+1", "$1", "1-", "1", "1/1/", ":11", "1 "]
)
def test_time_is_linear(part: str) -> None:
    english = style_of("en")

    def seconds(size: int) -> float:
        text = part * (size // len(part))
        return processor_seconds(lambda: list(figures(text, english, english)))

    seconds(1000)
    small = seconds(20_000)
    large = seconds(160_000)
    assert large < 30 * small + 0.05
