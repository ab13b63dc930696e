"""Formal and informal address: the rule against sentences that were labelled by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.text.formality import rules, rules_for

LABELLED = Path(__file__).with_name("tone_de.tsv")


def test_german_sentences_that_were_labelled_by_hand() -> None:
    german = rules_for("de")
    assert german is not None
    rows = [line.split("\t") for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    assert len(rows) >= 100
    found = [german.tone_of(text) or "none" for _, text in rows]
    tagged = [(label, tone) for (label, _), tone in zip(rows, found, strict=True) if tone != "none"]
    wrong = [pair for pair in tagged if pair[0] != pair[1]]
    assert not wrong, "a wrong tag is worse than none"
    clear = sum(label != "none" for label, _ in rows)
    assert len(tagged) / clear >= 0.95


@pytest.mark.parametrize(
    ("language", "text", "tone"),
    [
        ("de", "Sie kommt. Kommen Sie auch?", "formal"),
        ("de", "Er sagte: „Sie ist da.“", ""),
        ("de", "DU UND ICH", "informal"),
        ("de", "Können Sie das, und kannst du es?", ""),  # both
        ("de-AT", "Haben Sie Zeit?", "formal"),
        ("fr", "Vous avez raison.", "formal"),
        ("fr", "As-tu faim ?", "informal"),
        ("fr", "Je t'aime.", "informal"),
        ("fr", "Le chat dort.", ""),
        ("es", "¿Cómo está usted?", "formal"),
        ("es", "¿Tienes hambre?", "informal"),
        ("es", "Ustedes no saben nada.", ""),
        ("es", "El gato duerme.", ""),
        ("de", "", ""),
    ],
)
def test_a_text_is_formal_informal_or_neither(language: str, text: str, tone: str) -> None:
    own = rules_for(language)
    assert own is not None
    assert own.tone_of(text) == tone


def test_languages_with_rules() -> None:
    assert set(rules()) == {"de", "es", "fr"}
    assert rules_for("en") is None
    assert rules_for("") is None


def test_a_long_text_takes_time_in_proportion() -> None:
    german = rules_for("de")
    assert german is not None
    assert german.tone_of("Haus " * 100_000 + "bei Ihnen") == "formal"
