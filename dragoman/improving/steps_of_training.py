"""The steps that train a first model: the measuring, the parent of both directions, and the model
of the opposite direction. Knows lessons; the trainer does the work."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from dragoman.config import merge
from dragoman.decoding.search_options import SearchOptions
from dragoman.folder import layout
from dragoman.folder.description import load_description
from dragoman.improving.averaged_weights import average
from dragoman.improving.improve_journal import Outcome
from dragoman.improving.improve_plan import MEASURE
from dragoman.improving.improve_training import TRAINED, Lesson, train
from dragoman.improving.improve_workshop import Workshop
from dragoman.improving.lesson_sizes import (
    TUNING_RATE,
    batch_tokens,
    device_kind,
    is_worth_a_trial,
    is_worth_its_width,
    knows_both,
    limit_of,
    pairs_in_all,
    shapes_by_width,
    steps_of,
    tuning_settings,
    tuning_tables,
)
from dragoman.improving.mixed_text import both_directions, own, pairs_of, related, tags, turned
from dragoman.tasks.translate import Translator
from dragoman.training.presets import automatic

PARENT_RATE = 2e-3
_MEASURED_STEPS = {"cpu": 16, "cuda": 200}
_MEASURED_LINES = {"cpu": 64, "cuda": 2_000}  # a GPU is fast with many at once
_LEAST_SECONDS = 0.05  # metrics have a tenth of a second
_UNSCORED = {"valid_sentences": 0, "select": "loss"}
# Muon needs far fewer steps than Adam where a model begins from nothing.
_FROM_NOTHING = {"optimizer": "muon"}
_MOST_EMA = 0.998  # decay of the running mean of the weights
_EMA_SPAN = 10  # over about a tenth of the steps
_OWN_SHARE = 5.0  # most times that our own text is drawn beside related text
_WIDTH = "width"  # a number of the measuring: which of the shapes was chosen


@dataclass(frozen=True)
class Measure:
    """How fast this machine trains and translates; and where a model is to begin from text, its
    shape and its vocabulary."""

    name: str
    reason: str
    minutes: float

    def settings(self, shop: Workshop) -> Mapping[str, Any]:
        """A few steps; two where nothing is to be measured."""
        fixed = shop.inputs.options.steps > 0 and shop.inputs.options.lines > 0
        steps = 2 if fixed else _MEASURED_STEPS.get(device_kind(shop), 16)
        return {"steps": steps}

    def run(self, shop: Workshop, settings: Mapping[str, Any]) -> Outcome:
        """Train a little on a balanced sample, and translate some lines."""
        start = Path(shop.inputs.start) if shop.inputs.start else None
        steps = int(settings["steps"])
        if start is None:
            return self._from_text(shop, steps)
        # There may be a model and text of one language alone.
        mixture = own(shop) or [(shop.valid_file, 1.0)]
        batch = batch_tokens(shop, pairs_in_all(shop))
        found = _measured(shop, self.name, self._lesson(shop, mixture, steps, batch, start))
        outcome = Outcome(self.name, note=_in_words(found), numbers=found)
        return _with_start(shop, start, outcome)

    def _from_text(self, shop: Workshop, steps: int) -> Outcome:
        """With the widest model that the minutes are enough for, the narrowest one first."""
        sample = related(shop, self.name, most=max(1, shop.count("pairs")))
        mixture = both_directions(shop, self.name) + sample
        batch = batch_tokens(shop, pairs_in_all(shop))
        best = Outcome(self.name)
        shapes = shapes_by_width(shop)
        for width, shape in enumerate(shapes):
            if width and not is_worth_a_trial(
                shop, best.numbers["token"], shapes[width - 1], shape
            ):
                break
            name = f"{self.name}-{width + 1}" if width else self.name
            lesson = self._lesson(shop, mixture, steps, batch, width=width)
            found = _measured(shop, name, lesson)
            if width and not is_worth_its_width(shop, found["token"]):
                break
            best = Outcome(
                self.name,
                note=f"{_layers(shop.place(name) / TRAINED)}; {_in_words(found)}",
                numbers={**found, _WIDTH: width},
                kept=False,
                model=shop.relative(shop.place(name) / TRAINED),
            )
        return best

    def _lesson(
        self,
        shop: Workshop,
        mixture: Sequence[tuple[Path, float]],
        steps: int,
        batch: int,
        start: Path | None = None,
        width: int = 0,
    ) -> Lesson:
        tables: dict[str, Any] = {"training": {"batch_tokens": batch}}
        if start is None:
            tables = merge(_shape(shop, width), {"training": _FROM_NOTHING}, tables)
        return Lesson(
            mixture,
            steps,
            start,
            tables=tables,
            forced={"training": {**_UNSCORED, "log_every": max(1, steps // 4)}},
            validations=1,
            seed=shop.inputs.seed,
        )


@dataclass(frozen=True)
class Parent:
    """The first model: of both directions, with related languages where there are such, or of ours
    alone."""

    name: str
    reason: str
    minutes: float
    both: bool

    def settings(self, shop: Workshop) -> Mapping[str, Any]:
        """How many steps fit."""
        pairs = pairs_in_all(shop) * (2 if self.both else 1)
        batch = batch_tokens(shop, pairs_in_all(shop))
        steps = steps_of(shop, self.minutes, batch, pairs, r_drop=False)
        return {"batch": batch, "steps": steps, "both": self.both}

    def run(self, shop: Workshop, settings: Mapping[str, Any]) -> Outcome:
        """Train it from nothing but the measured vocabulary, or from the model that was given."""
        mixture = both_directions(shop, self.name) if settings["both"] else own(shop)
        others = related(shop, self.name)
        if others:
            share = (shop.count("related") / max(1, shop.count("pairs"))) ** 0.5
            boost = min(_OWN_SHARE, max(1.0, share))
            mixture = [(path, boost * weight) for path, weight in mixture] + others
        steps = int(settings["steps"])
        tables: dict[str, Any] = {"training": {"batch_tokens": settings["batch"]}}
        start = shop.model()
        if not shop.inputs.start:
            measured = shop.journal.outcome(MEASURE)
            assert measured is not None
            start = shop.path(measured.model)
            shape = _shape(shop, int(measured.numbers[_WIDTH]))
            running_mean = {"ema": min(_MOST_EMA, 1 - _EMA_SPAN / steps)} if steps > 100 else {}
            tables = merge(shape, tables, {"training": {**_FROM_NOTHING, **running_mean}})
        lesson = Lesson(
            mixture,
            steps,
            start,
            learning_rate=PARENT_RATE if not shop.inputs.start else TUNING_RATE,
            tables=tables,
            seed=shop.inputs.seed,
        )
        folder = train(shop, self.name, lesson, limit_of(shop, self.minutes))
        return shop.judged(self.name, folder)


@dataclass(frozen=True)
class Reverse:
    """A model of the opposite direction."""

    name: str
    reason: str
    minutes: float

    def settings(self, shop: Workshop) -> Mapping[str, Any]:
        """How many steps fit."""
        return tuning_settings(shop, self.minutes)

    def run(self, shop: Workshop, settings: Mapping[str, Any]) -> Outcome:
        """Turn the best model round and train it on; a parent of both directions may be good
        enough as it is."""
        begin = self._begin(shop)
        lesson = Lesson(
            turned(shop, self.name),
            int(settings["steps"]),
            begin,
            turned=True,
            learning_rate=TUNING_RATE,
            tables=tuning_tables(shop, settings),
            seed=shop.inputs.seed + 1,
        )
        folder = train(shop, self.name, lesson, limit_of(shop, self.minutes))
        against = begin if knows_both(shop) else None
        trial = shop.trial(folder, turned=True, against=against)
        chosen = folder if trial.kept or begin is None else begin
        return Outcome(
            self.name,
            before=trial.before,
            after=trial.after,
            p_value=trial.p_value,
            kept=trial.kept,
            note="of the opposite direction",
            reverse=shop.relative(chosen),
        )

    def _begin(self, shop: Workshop) -> Path | None:
        """The best model so far, described as one of the opposite direction; none if source and
        target have a vocabulary each."""
        model = shop.model()
        assert model is not None
        begin = shop.place(self.name) / "turned"
        if not load_description(model)[1].joint:
            return None
        if not begin.exists():
            average(begin, [(model, 1.0)], shop.languages[::-1])
        return begin


def _shape(shop: Workshop, width: int) -> dict[str, Any]:
    """The shape of a model that begins from text: that for all the text together, so that the
    sample which is measured does not decide it."""
    tables: dict[str, Any] = {"tokenizer": {"tags": tags(shop)}}
    if str(shop.inputs.tables.get("preset", "auto")) != "auto":
        return tables
    found, _ = automatic(pairs_in_all(shop), device_kind(shop) == "cuda")
    model = shapes_by_width(shop)[width]
    return merge({"tokenizer": found["tokenizer"], "model": model}, tables)


def _measured(shop: Workshop, name: str, lesson: Lesson) -> dict[str, float]:
    """Train a little; the seconds that this machine takes for a token, a line and the rest."""
    batch = lesson.tables["training"]["batch_tokens"]
    began = time.monotonic()
    folder = train(shop, name, lesson)
    whole = time.monotonic() - began
    step, trained = _seconds_a_step(folder)
    pairs = sum(1 for _ in pairs_of(lesson.text))
    return {
        "token": step / batch,
        "line": _seconds_a_line(shop, folder),
        "start": max(0.0, trained - step * lesson.steps),
        "pair": max(0.0, whole - trained) / max(1, pairs),
    }


def _layers(folder: Path) -> str:
    shape = load_description(folder)[0].model
    return f"{shape.encoder_layers}+{shape.decoder_layers} layers of {shape.d_model}"


def _in_words(found: Mapping[str, float]) -> str:
    return f"{1 / found['line']:,.0f} lines/s, {1 / found['token']:,.0f} tokens/s"


def _with_start(shop: Workshop, start: Path, outcome: Outcome) -> Outcome:
    """With a copy of the model to be improved, and its score."""
    copy = shop.place("start") / TRAINED
    if not copy.exists():
        average(copy, [(start, 1.0)])
    trial = shop.trial(copy)
    return Outcome(
        outcome.name,
        note=outcome.note,
        numbers=outcome.numbers,
        after=trial.after,
        model=shop.relative(copy),
        reverse=_reverse_given(shop),
    )


def _reverse_given(shop: Workshop) -> str:
    """A copy of the model of the opposite direction that was given."""
    given = shop.inputs.options.reverse
    if not given:
        return ""
    copy = shop.place("start") / "turned"
    if not copy.exists():
        average(copy, [(Path(given), 1.0)])
    return shop.relative(copy)


def _seconds_a_step(folder: Path) -> tuple[float, float]:
    """By the later steps, since the first ones also compile and allocate; and the seconds of the
    whole training."""
    lines = (folder / layout.METRICS).read_text(encoding="utf-8").splitlines()
    logged = [one for one in map(json.loads, lines) if "loss" in one]
    half = logged[(len(logged) - 1) // 2]
    last = logged[-1]
    if half is last:
        return max(_LEAST_SECONDS, last["seconds"]) / last["step"], last["seconds"]
    spent = max(_LEAST_SECONDS, last["seconds"] - half["seconds"])
    return spent / (last["step"] - half["step"]), last["seconds"]


def _seconds_a_line(shop: Workshop, folder: Path) -> float:
    """Greedy translation of valid sources. A model that has learnt nothing does not end its lines;
    they are ended for it where a good translation would be."""
    translator = Translator.load(folder, shop.inputs.device)
    count = _MEASURED_LINES.get(device_kind(shop), 64)
    sources = list(islice(cycle(source for source, _ in shop.valid), count))
    options = SearchOptions(beam=1, max_extra=2)
    translator.translate(sources[:8], options, split=False)
    began = time.monotonic()
    translator.translate(sources, options, split=False)
    return (time.monotonic() - began) / len(sources)
