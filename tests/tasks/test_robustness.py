"""What capitals, typos and the rest cost, with translators whose weaknesses are known."""

from __future__ import annotations

import pytest

from dragoman.tasks.evaluate import Scoring
from dragoman.tasks.robustness import SPANS, Robustness, robustness, with_span

SOURCES = [
    f"The quiet house number {n} stands beside another small garden wall." for n in range(20)
]
REFERENCES = [
    f"Das ruhige Haus Nummer {n} steht neben einer anderen kleinen Mauer." for n in range(20)
]
KNOWN = dict(zip(SOURCES, REFERENCES, strict=True))
FAST = Scoring(bootstrap=0)


def by_heart(lines: list[str]) -> list[str]:
    """Translates only what it knows to the letter."""
    return [KNOWN.get(line, "nichts") for line in lines]


def without_case(lines: list[str]) -> list[str]:
    """Knows the lines in any case, without a stop too, and copies what it does not know."""
    known = {source.lower().rstrip("."): target for source, target in KNOWN.items()}
    found = []
    for line in lines:
        target = known.get(line.lower().rstrip("."), line)
        found.append(target if line.endswith(".") else target.removesuffix("."))
    return found


def measured(translate: object) -> Robustness:
    return robustness(translate, SOURCES, REFERENCES, FAST)  # type: ignore[arg-type]


def test_a_translator_that_knows_by_heart_loses_everything() -> None:
    found = measured(by_heart)
    assert [one.kind for one in found.costs] == [
        "upper",
        "title",
        "lower",
        "typos",
        "stop",
        "noisy",
    ]
    assert all(one.plain == pytest.approx(100) for one in found.costs)
    assert all(one.cost > 90 for one in found.costs)
    assert (found.kept, found.spans) == (0, 20)


def test_case_costs_nothing_where_case_does_not_matter() -> None:
    costs = {one.kind: one.cost for one in measured(without_case).costs}
    for kind in ("upper", "title", "lower", "stop"):
        assert costs[kind] == pytest.approx(0)
    assert costs["typos"] > 50
    assert costs["noisy"] > 50


def test_what_is_copied_is_kept() -> None:
    assert measured(without_case).kept == 20
    for number, source in enumerate(SOURCES):
        line, span = with_span(source, number)
        assert span == SPANS[number % len(SPANS)]
        assert line.replace(f" {span}", "", 1) == source


def test_the_versions_are_always_the_same() -> None:
    seen: list[list[str]] = []

    def remember(lines: list[str]) -> list[str]:
        seen.append(lines)
        return lines

    measured(remember)
    first = seen[:]
    seen.clear()
    measured(remember)
    assert seen == first
    assert len(first) == 8
    assert first[1][0] == SOURCES[0].upper()
    assert first[4][0] != SOURCES[0]
    assert first[5][0] == SOURCES[0][:-1]


def test_what_it_says() -> None:
    found = measured(by_heart)
    values = found.as_dict()
    assert set(values["upper"]) == {"plain", "bleu", "cost"}
    assert values["protected"] == {"kept": 0, "of": 20}
    assert found.lines()[-1] == "protected: 0 of 20 kept"
    assert found.lines()[0].startswith(" upper: BLEU ")
