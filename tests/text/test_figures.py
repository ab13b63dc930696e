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
        ("at 5:30 pm", "um 17:30 Uhr"),
        ("at 12:15 a.m. today", "um 0:15 Uhr today"),
        ("at 12:15 pm", "um 12:15 Uhr"),
        ("at 17:30", "um 17:30 Uhr"),
        ("at 5:30 p.m.", "um 17:30 Uhr."),
        ("at 5:30 p.m. today", "um 17:30 Uhr today"),
        ("from 9 am to 6 pm", "from 9 Uhr to 18 Uhr"),
        ("10am–8pm", "10 Uhr–20 Uhr"),
        ("7 a.m.", "7 Uhr"),
        ("Open at 7 a.m.", "Open um 7 Uhr."),
        ("12 am and 12 p.m. are", "0 Uhr and 12 Uhr are"),
        ("At 9 am, at 9 or that 9 am", "Um 9 Uhr, at 9 or that 9 Uhr"),
        ("US$ 100 and US$1.50", "100 US$ and 1,50 US$"),
        ("$2.5 billion, £1 million", "2,5 Milliarden Dollar, 1 Million Pfund"),
        ("$5m and US$700-billion", "5 Millionen Dollar and 700 Milliarden US-Dollar"),
        ("₹5 million, $5 men, $3 b2", "5 Millionen ₹, 5 $ men, 3 $ b2"),
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
        ("5 to 6 pm, 5-6 pm, 9–11 am, 1 and 2 am", "5 to 6 pm, 5-6 pm, 9–11 am, 1 and 2 am"),
        ("13 am, 0 pm, 3 amps, 4 PMs", "13 am, 0 pm, 3 amps, 4 PMs"),
    ],
)
def test_english_to_german(english: str, german: str) -> None:
    assert rewritten(english, "en", "de") == german


@pytest.mark.parametrize(
    ("source", "target", "text", "wanted"),
    [
        ("de", "en", "1.234,56 € und 3,5 %", "€1,234.56 und 3.5 %"),
        ("de", "en", "1.234 und 1,234", "1,234 und 1,234"),
        ("de", "en", "17:30 Uhr am 03.04.2024", "17:30 am 03.04.2024"),
        ("de", "en", "Um 17:30 Uhr, darum 8:15", "Um 17:30, darum 8:15"),
        ("de", "fr", "um 5:30 am Montag, 3 am Tag", "um 5:30 am Montag, 3 am Tag"),
        ("en", "fr", "at 9 am", "at 9:00"),
        ("en", "tw", "at 9 a.m., at 5:30 p.m.", "at 9 a.m., at 5:30 p.m."),
        ("en", "fr", "$1,234.56 at 5:30 pm", "1\u202f234,56 $ at 17:30"),
        ("fr", "de", "1\u202f234,56", "1.234,56"),
        ("en", "tw", "1,234.56 at 5:30 pm", "1,234.56 at 5:30 pm"),
        ("en", "xx", "1,234.56", "1,234.56"),
        (
            "de",
            "en",
            "3,2 Mio. €, 1 Milliarde €, 2 Bio. $",
            "€3.2 million, €1 billion, $2 trillion",
        ),
        ("de", "en", "2,5 billion €, 3 € Millionen", "€2.5 trillion, €3 Millionen"),
        ("fr", "de", "2,5 millions €", "2,5 millions €"),
        # Where the words of one of the languages are not known, the number alone is a figure.
        ("en", "fr", "$2.5 billion", "$2,5 billion"),
        ("en", "xx", "$2.5 billion", "$2.5 billion"),
        ("en_GB", "de-AT", "1,234.56", "1.234,56"),
    ],
)
def test_other_languages(source: str, target: str, text: str, wanted: str) -> None:
    assert rewritten(text, source, target) == wanted


def test_a_sum_in_words_that_are_not_known_is_left_to_the_model() -> None:
    for target in ("fr", "xx"):
        (figure,) = figures("It lost $2.5 billion.", style_of("en"), style_of(target))
        assert figure[:2] == (9, 12)


def test_figures_are_found_whole() -> None:
    text = "It costs $1,234.56 (5:30 pm), 2024-03-05, +49 30 1234567."
    found = [text[one.start : one.end] for one in figures(text, None, None)]
    assert found == ["$1,234.56", "5:30 pm", "2024-03-05", "+49 30 1234567"]


@pytest.mark.parametrize(
    "number",
    [
        "0800 123 4567",
        "030 123456-78",
        "(0761) 20 34",
        "GB82 WEST 1234 5698 7654 32",
        "DE89 3704 0044 0532 0130 00",
        "DE89370400440532013000",
        "4111 1111 1111 1111",
    ],
)
def test_numbers_of_telephones_and_accounts_are_one_figure(number: str) -> None:
    text = f"Number: {number}."
    found = [text[one.start : one.end] for one in figures(text, None, None)]
    assert found == [number]


def test_a_german_am_after_a_time_belongs_to_the_sentence() -> None:
    text = "um 5:30 am Montag, um 17:30 Uhr am Dienstag"
    found = [text[one.start : one.end] for one in figures(text, style_of("de"), style_of("en"))]
    assert found == ["5:30", "17:30 Uhr"]


@pytest.mark.parametrize(
    "part",
    [
        *("1,", "1.111", "1:11", "+1", "$1", "1-", "1", "1/1/", ":11", "1 "),
        *("0 ", "00 ", "1111 ", "AA11 ", "1 am ", "1-1 pm", "1:11 p.m.", "US$"),
    ],
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


def test_the_sign_of_a_placeholder_is_no_currency() -> None:
    english = style_of("en")
    german = style_of("de")
    found = list(figures("In all 964,988.25 ${total} and 12 ${x}", english, german))
    assert [one.written for one in found] == ["964.988,25"]
    (price,) = figures("It was 12.50 $ {name}", english, german)
    assert price.written == "12,50 $"
