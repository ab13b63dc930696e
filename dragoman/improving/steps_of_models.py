"""The steps that make a model out of models: the average, and the student. Knows model folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.errors import InputError
from dragoman.folder.description import load_description
from dragoman.improving.averaged_weights import Part, average, can_average
from dragoman.improving.improve_budget import lines_within
from dragoman.improving.improve_journal import Outcome
from dragoman.improving.improve_training import Lesson, train
from dragoman.improving.improve_workshop import Workshop
from dragoman.improving.lesson_sizes import batch_tokens, limit_of, steps_of
from dragoman.improving.round_text import taught
from dragoman.improving.steps_of_text import SOURCE_TEXT
from dragoman.improving.steps_of_training import PARENT_RATE
from dragoman.model.model_config import ModelConfig
from dragoman.runtimes.load import load
from dragoman.tasks.learn_shortlist import learn_shortlist
from dragoman.training.start_from import inheritance

_MOST_AVERAGED = 4  # models
_PARENT_SHARE = 0.2
_TEACHING = 0.4  # of the student's minutes
_BEAM = 4  # times as long as greedy search
_STUDENT_WIDTH = 384


@dataclass(frozen=True)
class Average:
    """The mean of the weights of models that began as one."""

    name: str
    reason: str
    minutes: float

    def settings(self, shop: Workshop) -> Mapping[str, Any]:
        """Nothing needs to be decided."""
        return {}

    def run(self, shop: Workshop, settings: Mapping[str, Any]) -> Outcome:
        """Make some averages and try the one that is best on the valid set."""
        made: dict[str, Path] = {}
        for name, parts in _mixtures(_pool(shop)).items():
            folder = shop.place(self.name) / name
            if not folder.exists():
                average(folder, parts)
            made[name] = folder
        if not made:
            return Outcome(self.name, kept=False, note="there is only one model to average")
        scores = {name: shop.trial(folder).after for name, folder in made.items()}
        best = max(made, key=lambda name: (scores[name], name))
        return replace(shop.judged(self.name, made[best]), note=best.replace("-", " "))


@dataclass(frozen=True)
class Student:
    """A small model that learns the translations of the best one, with a shortlist and int8."""

    name: str
    reason: str
    minutes: float

    def settings(self, shop: Workshop) -> Mapping[str, Any]:
        """How many lines the teacher translates, and how many steps fit."""
        there_are = shop.count("pairs") + shop.count(SOURCE_TEXT)
        lines = shop.inputs.options.lines
        if not lines:
            lines = lines_within(self.minutes * _TEACHING / _BEAM, shop.pace)
        lines = min(lines, there_are)
        batch = batch_tokens(shop, lines)
        steps = steps_of(shop, self.minutes * (1 - _TEACHING), batch, lines, r_drop=False)
        return {"lines": lines, "batch": batch, "steps": steps}

    def run(self, shop: Workshop, settings: Mapping[str, Any]) -> Outcome:
        """Translate, train, learn the shortlist. It is a second result beside the best model, so
        its scores are only told."""
        try:
            text = taught(shop, self.name, int(settings["lines"]))
        except InputError as error:  # a teacher that has learnt too little
            return Outcome(self.name, kept=False, note=str(error))
        folder = train(
            shop, self.name, _student_lesson(shop, text, settings), limit_of(shop, self.minutes)
        )
        trial = shop.trial(folder)
        covered = learn_shortlist(folder, [str(text)])
        load(folder, "cpu", "int8")  # which writes the int8 weights
        note = f"beside the best model; shortlist of {len(covered.shortlist.frequent):,} tokens"
        return Outcome(
            self.name,
            before=trial.before,
            after=trial.after,
            p_value=trial.p_value,
            kept=False,
            note=note,
            numbers={"lines": float(settings["lines"])},
        )


def _pool(shop: Workshop) -> list[Path]:
    """The models that go with the best one, it first, then the latest ones."""
    best = shop.model()
    if best is None:
        return []
    made = [shop.path(one.model) for one in shop.journal.done if one.model]
    others = [folder for folder in made if folder != best and can_average(best, folder)]
    return [best, *others[::-1]][:_MOST_AVERAGED]


def _mixtures(pool: list[Path]) -> dict[str, list[Part]]:
    """Which averages are tried, by a name that says what they are."""
    if len(pool) < 2:
        return {}
    best = pool[0]
    mixtures: dict[str, list[Part]] = {}
    for other in pool[1:]:
        mixtures[f"half-of-{other.parent.name}"] = [(best, 0.5), (other, 0.5)]
    first = pool[-1]
    share = _PARENT_SHARE
    mixtures[f"a-fifth-of-{first.parent.name}"] = [(best, 1 - share), (first, share)]
    if len(pool) > 2:
        mixtures[f"all-{len(pool)}"] = [(folder, 1 / len(pool)) for folder in pool]
    return mixtures


def _student_lesson(shop: Workshop, text: Path, settings: Mapping[str, Any]) -> Lesson:
    """The student's training, which starts from the teacher where the shapes fit."""
    teacher = shop.model()
    assert teacher is not None
    config = load_description(teacher)[0].model
    shape = _shape(config)
    fits = "d_model" not in shape
    if fits:
        begins = inheritance(config, replace(config, **shape)).sentence
    else:
        begins = f"starts from random weights, since the teacher is {config.d_model} wide"
    shop.say(f"The student {begins}.")
    return Lesson(
        [(text, 1.0)],
        int(settings["steps"]),
        start=teacher if fits else None,
        learning_rate=PARENT_RATE,
        tables={"training": {"batch_tokens": settings["batch"], "optimizer": "muon"}},
        forced={"model": shape},
        seed=shop.inputs.seed,
    )


def _shape(teacher: ModelConfig) -> dict[str, Any]:
    """A deep encoder, a decoder of one layer, and no more width than the teacher has. Of the same
    width, the student is the teacher with fewer layers, and can start from it."""
    width = min(teacher.d_model, _STUDENT_WIDTH)
    shape = {
        "encoder_layers": teacher.encoder_layers,
        "decoder_layers": 1,
        "dropout": min(0.1, teacher.dropout),
    }
    if width == teacher.d_model:
        return shape
    return {
        **shape,
        "d_model": width,
        "d_ff": 4 * width,
        "n_heads": max(1, width // 64),
        "norm_first": True,
    }
