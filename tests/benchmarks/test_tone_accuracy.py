"""What benchmarks/tone_accuracy.py counts."""

from __future__ import annotations

import tone_accuracy

from dragoman.text.formality import rules_for

LINES = ["Kommst du mit?", "Haben Sie Zeit?", "Es regnet.", "Wo ist dein Hut?"]


def test_lines_are_chosen_and_counted_by_the_rule() -> None:
    rule = rules_for("de")
    assert rule is not None
    assert tone_accuracy.with_tone(LINES, rule) == [0, 1, 3]
    assert tone_accuracy.told(LINES, rule) == "1 formal, 2 informal, 1 neither"
    assert tone_accuracy.other("formal") == "informal"
