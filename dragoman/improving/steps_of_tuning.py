"""The steps that go on from a model: cleaned text, rounds of back-translation, the nearest text.
Each makes a model of its own, which is kept if a paired test says that it is better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.errors import InputError
from dragoman.folder.files import aside
from dragoman.improving.cleaning_by_models import dual_scores, judge
from dragoman.improving.forced_scores import ForcedScorer
from dragoman.improving.gather_text import write_pairs
from dragoman.improving.improve_budget import TOKENS_A_PAIR, lines_within
from dragoman.improving.improve_journal import Outcome
from dragoman.improving.improve_training import Lesson, train
from dragoman.improving.improve_workshop import Pair, Workshop, read_tsv
from dragoman.improving.lesson_sizes import (
    TUNING_RATE,
    knows_both,
    limit_of,
    tuning_settings,
    tuning_tables,
)
from dragoman.improving.mixed_text import both_directions, own, pairs_of, related
from dragoman.improving.nearest_text import nearest
from dragoman.improving.round_text import (
    back_translated,
    forward_translated,
    lines_there_are,
    renamed,
)

_TRANSLATING = 0.35  # of a round's minutes
_SCORING = 0.4  # of the minutes of cleaning
_OF_A_STEP = 0.7  # what judging a token by both models takes, as a share of training on it
_NEAREST = 10  # one of so many pairs
_FEWEST_NEAREST = 500
_MOST_NEAREST = 20_000
_NEAREST_RATE = 1e-4
_RELATED_SAMPLE = 2  # pairs of related languages for each of our own


@dataclass(frozen=True)
class Clean:
    """What the models find unlikely is dropped, and the rest trained on."""

    name: str
    reason: str
    minutes: float

    def settings(self, shop: Workshop) -> Mapping[str, Any]:
        """How many pairs can be judged, and how many steps fit."""
        pairs = shop.count("pairs")
        if not shop.inputs.options.steps:
            of_one = max(1e-9, TOKENS_A_PAIR * shop.pace.token * _OF_A_STEP)
            pairs = min(pairs, int(60 * self.minutes * _SCORING / of_one))
        return {"pairs": pairs, **tuning_settings(shop, self.minutes * (1 - _SCORING))}

    def run(self, shop: Workshop, settings: Mapping[str, Any]) -> Outcome:
        """Judge, write what is kept, train, try."""
        text, note = self._cleaned(shop, int(settings["pairs"]))
        lesson = _lesson(shop, text, settings, 2)
        folder = train(shop, self.name, lesson, limit_of(shop, self.minutes))
        outcome = shop.judged(self.name, folder)
        kept = tuple((shop.relative(path), weight) for path, weight in text)
        return replace(outcome, note=note, text=kept)

    def _cleaned(self, shop: Workshop, most: int) -> tuple[list[tuple[Path, float]], str]:
        """The files of pairs without what was dropped, and how much that was."""
        place = shop.place(self.name)
        ready = place / "dropped.tsv"
        names = [place / f"clean-{number}.tsv" for number in range(len(own(shop)))]
        if not ready.exists():
            pairs = [pair for pair, _ in zip(pairs_of(own(shop)), range(most), strict=False)]
            reasons = self._reasons(shop, pairs)
            remaining = iter(reasons)
            for path, (old, _) in zip(names, own(shop), strict=True):
                write_pairs(path, [pair for pair in read_tsv(old) if not next(remaining, "")])
            _write_dropped(ready, pairs, reasons)
        with open(ready, encoding="utf-8") as lines:
            dropped = sum(1 for _ in lines)
        note = f"{dropped:,} of {min(most, shop.count('pairs')):,} pairs dropped"
        weights = [weight for _, weight in own(shop)]
        return list(zip(names, weights, strict=True)), note

    def _reasons(self, shop: Workshop, pairs: list[Pair]) -> list[str]:
        model = shop.model()
        assert model is not None
        forward = ForcedScorer(model, shop.inputs.device)
        backward = ForcedScorer(shop.path(shop.journal.reverse()), shop.inputs.device)
        return judge(pairs, dual_scores(pairs, forward, backward)).reasons


@dataclass(frozen=True)
class Round:
    """Target text is translated back, marked, and trained on together with everything else."""

    name: str
    reason: str
    minutes: float
    number: int

    def settings(self, shop: Workshop) -> Mapping[str, Any]:
        """How many lines can be translated, and how many steps fit."""
        lines = shop.inputs.options.lines
        if not lines:
            lines = lines_within(self.minutes * _TRANSLATING, shop.pace)
        lines = min(lines, lines_there_are(shop))
        training = tuning_settings(
            shop, self.minutes * (1 - _TRANSLATING), shop.count("pairs") + lines
        )
        return {"lines": lines, **training}

    def run(self, shop: Workshop, settings: Mapping[str, Any]) -> Outcome:
        """Translate, train, try. The first round goes on with both directions and related
        languages, the second with ours alone."""
        lines = int(settings["lines"])
        try:
            made = back_translated(shop, self.name, lines, sampled=self.number > 1)
        except InputError as error:  # a reverse model that has learnt too little, or other text
            return Outcome(self.name, kept=False, note=str(error))
        more = [(made, 1.0), (renamed(shop, self.name), 1.0)]
        forward = forward_translated(shop, self.name, lines)
        if forward is not None:
            more.append((forward, 1.0))
        text = own(shop)
        if self.number == 1 and knows_both(shop):
            text = both_directions(shop, self.name)
            more += related(shop, self.name, most=_RELATED_SAMPLE * shop.count("pairs"))
        more = [(path, weight) for path, weight in more if path.stat().st_size]
        lesson = _lesson(shop, text + more, settings, 2 + self.number)
        folder = train(shop, self.name, lesson, limit_of(shop, self.minutes))
        note = f"{sum(1 for _ in read_tsv(made)):,} pairs made of {lines:,} lines"
        return replace(shop.judged(self.name, folder), note=note)


@dataclass(frozen=True)
class Nearest:
    """A short training on the pairs that are most like the valid set's sources."""

    name: str
    reason: str
    minutes: float

    def settings(self, shop: Workshop) -> Mapping[str, Any]:
        """How many pairs are chosen, and how many steps fit."""
        pairs = shop.count("pairs")
        chosen = max(_FEWEST_NEAREST, min(_MOST_NEAREST, pairs // _NEAREST))
        return {"pairs": chosen, **tuning_settings(shop, self.minutes, chosen)}

    def run(self, shop: Workshop, settings: Mapping[str, Any]) -> Outcome:
        """Choose, train, try."""
        path = shop.place(self.name) / "nearest.tsv"
        if not path.exists():
            sources = [source for source, _ in shop.valid]
            places = set(
                nearest(
                    lambda: (source for source, _ in pairs_of(own(shop))),
                    sources,
                    int(settings["pairs"]),
                )
            )
            chosen = (pair for at, pair in enumerate(pairs_of(own(shop))) if at in places)
            write_pairs(path, chosen)
        lesson = replace(_lesson(shop, [(path, 1.0)], settings, 9), learning_rate=_NEAREST_RATE)
        folder = train(shop, self.name, lesson, limit_of(shop, self.minutes))
        note = f"{sum(1 for _ in read_tsv(path)):,} pairs"
        return replace(shop.judged(self.name, folder), note=note)


def _lesson(
    shop: Workshop, text: list[tuple[Path, float]], settings: Mapping[str, Any], number: int
) -> Lesson:
    """A training that goes on from the best model so far."""
    return Lesson(
        text,
        int(settings["steps"]),
        shop.model(),
        learning_rate=TUNING_RATE,
        tables=tuning_tables(shop, settings),
        seed=shop.inputs.seed + number,
    )


def _write_dropped(path: Path, pairs: list[Pair], reasons: list[str]) -> None:
    with aside(path) as new, open(new, "w", encoding="utf-8", newline="\n") as file:
        for (source, target), reason in zip(pairs, reasons, strict=True):
            if reason:
                file.write(f"{reason}\t{source}\t{target}\n")
