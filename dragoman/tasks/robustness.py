"""What a translator makes of a test set as people really write it: in capitals, in a hurry, with
things in it that must stay. Knows text and scores; a translator is a function here.

Every version of the set follows from its lines alone, so that two systems, or two days, are
compared on the same text.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dragoman.data.augment import capitalised, with_typos, without_stop
from dragoman.tasks.evaluate import DEFAULT, Scoring, score

Translate = Callable[[list[str]], list[str]]
TYPOS = 4  # of a line
# One of each kind that a translation must carry over.
SPANS = (
    "{name}",
    "{{user.first_name}}",
    "%s",
    "%1$s",
    "${total}",
    "&nbsp;",
    "https://www.example.org/docs/index.html?id=7",
    "info@example.org",
    "report_2024.pdf",
    "#summer",
    "`git commit -m now`",
    "😀",
    "👍🏽",
    "/usr/local/bin",
    "<br/>",
)
_SIGNS = ("😀", "❤️", "👍", "😂")


@dataclass(frozen=True)
class Cost:
    """What one way of writing costs: BLEU of the plain set, and of the set written so.

    Where only the case of letters differs, both are counted without case: whether capitals should
    stay capitals is a matter of taste, whether words are translated is not.
    """

    kind: str
    plain: float
    changed: float

    @property
    def cost(self) -> float:
        """The BLEU points that are lost."""
        return self.plain - self.changed


@dataclass(frozen=True)
class Robustness:
    """What each way of writing costs, and how much of what must stay has stayed."""

    costs: tuple[Cost, ...]
    kept: int
    spans: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        values: dict[str, Any] = {}
        for one in self.costs:
            values[one.kind] = {
                "plain": one.plain,
                "bleu": one.changed,
                "cost": one.cost,
            }
        values["protected"] = {"kept": self.kept, "of": self.spans}
        return values

    def lines(self) -> list[str]:
        """For people to read."""
        rows = [
            f"{one.kind:>6}: BLEU {one.changed:.1f}, {one.cost:.1f} less than {one.plain:.1f}"
            for one in self.costs
        ]
        return [*rows, f"protected: {self.kept:,} of {self.spans:,} kept"]


def robustness(
    translate: Translate,
    sources: Sequence[str],
    references: Sequence[str],
    scoring: Scoring = DEFAULT,
) -> Robustness:
    """Translate the set as it is and in every other way, and say what each costs."""
    exact = replace(scoring, bootstrap=0)
    without_case = replace(exact, lowercase=True)
    outputs = translate(list(sources))
    costs = []
    for kind, change in _VERSIONS.items():
        new_sources = []
        new_references = []
        lines = zip(sources, references, strict=True)
        for number, (source, reference) in enumerate(lines):
            draw = random.Random(f"{kind} {number}")
            new_source, new_reference = change(source, reference, draw)
            new_sources.append(new_source)
            new_references.append(new_reference)
        changed = translate(new_sources)
        how = without_case if kind in _OF_CASE else exact
        plain_score = score(outputs, references, how)
        changed_score = score(changed, new_references, how)
        costs.append(Cost(kind, plain_score.bleu.value, changed_score.bleu.value))
    kept = _spans_kept(translate, sources)
    return Robustness(tuple(costs), kept, len(sources))


def with_span(source: str, number: int) -> tuple[str, str]:
    """Return a line with something between two of its words that must stay, and what it is."""
    draw = random.Random(f"span {number}")
    span = SPANS[number % len(SPANS)]
    words = source.split(" ")
    place = draw.randint(1, len(words))
    line = " ".join([*words[:place], span, *words[place:]])
    return line, span


def _spans_kept(translate: Translate, sources: Sequence[str]) -> int:
    """In how many lines, each with something more in it, that came through once and unchanged."""
    lines = [with_span(source, number) for number, source in enumerate(sources)]
    outputs = translate([line for line, _ in lines])
    kept = 0
    for (line, span), output in zip(lines, outputs, strict=True):
        kept += output.count(span) == line.count(span)
    return kept


def _upper(source: str, reference: str, draw: random.Random) -> tuple[str, str]:
    return source.upper(), reference


def _title(source: str, reference: str, draw: random.Random) -> tuple[str, str]:
    return " ".join(capitalised(word) for word in source.split(" ")), reference


def _lower(source: str, reference: str, draw: random.Random) -> tuple[str, str]:
    return source.lower(), reference


def _typos(source: str, reference: str, draw: random.Random) -> tuple[str, str]:
    return with_typos(source, draw, TYPOS), reference


def _unstopped(source: str, reference: str, draw: random.Random) -> tuple[str, str]:
    return without_stop(source, reference)


def _noisy(source: str, reference: str, draw: random.Random) -> tuple[str, str]:
    """As in a hurry on a telephone: a slip or two, doubled spaces, no stop, a sign at the end."""
    source, reference = without_stop(source, reference)
    source = with_typos(source, draw, draw.randint(1, 2))
    words = source.split(" ")
    place = draw.randrange(len(words))
    sign = draw.choice(_SIGNS)
    source = " ".join([*words[:place], "", *words[place:]])
    return f"{source} {sign}", f"{reference} {sign}"


_OF_CASE = ("upper", "title", "lower")
_VERSIONS: dict[str, Callable[[str, str, random.Random], tuple[str, str]]] = {
    "upper": _upper,
    "title": _title,
    "lower": _lower,
    "typos": _typos,
    "stop": _unstopped,
    "noisy": _noisy,
}
