"""Runs an improvement: the plan, then its steps one after the other, each begun where a kill left
it; the best model so far is always the result. Joins the parts; what a step does is its own
business."""

from __future__ import annotations

import gc
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch

from dragoman.data.corpus import corpora
from dragoman.data.text_lines import read_chunks
from dragoman.errors import FullDiskError, InputError, OptionError, TrainingError
from dragoman.folder import files, layout
from dragoman.folder.description import load_description
from dragoman.improving.final_score import TEST, score_test
from dragoman.improving.gather_text import check_valid, read_set
from dragoman.improving.improve_journal import Journal, Outcome, is_begun
from dragoman.improving.improve_options import Inputs
from dragoman.improving.improve_plan import (
    AVERAGE,
    CLEAN,
    GATHER,
    MEASURE,
    MEASURED,
    NEAREST,
    PARENT,
    REVERSE,
    ROUND,
    STUDENT,
    Facts,
    PlannedStep,
    make_plan,
)
from dragoman.improving.improve_report import write_improvement
from dragoman.improving.improve_training import TRAINED
from dragoman.improving.improve_workshop import Workshop
from dragoman.improving.lesson_sizes import passes_of
from dragoman.improving.steps_of_models import Average, Student
from dragoman.improving.steps_of_text import Gather
from dragoman.improving.steps_of_training import Measure, Parent, Reverse
from dragoman.improving.steps_of_tuning import Clean, Nearest, Round
from dragoman.training.claim import locked

_KINDS: dict[str, Any] = {
    GATHER: Gather,
    MEASURE: Measure,
    REVERSE: Reverse,
    CLEAN: Clean,
    NEAREST: Nearest,
    AVERAGE: Average,
    STUDENT: Student,
}
_SPENT = "spent"  # seconds before a step was stopped; those before a kill are not known
_LEAST_LEFT = 0.5  # of a step's minutes, below which it is not begun
# What belongs to a run, and not to the model that it made.
_OF_THE_RUN = (layout.STATE, layout.METRICS, layout.REPORT, layout.CURVE, layout.TENSORBOARD)


class Step(Protocol):
    """One step of a plan."""

    @property
    def name(self) -> str:
        """By which the journal knows it."""

    @property
    def reason(self) -> str:
        """Why it is taken."""

    @property
    def minutes(self) -> float:
        """Its share of the budget."""

    def settings(self, shop: Workshop) -> Mapping[str, Any]:
        """What is decided before the step begins, from what the journal has."""

    def run(self, shop: Workshop, settings: Mapping[str, Any]) -> Outcome:
        """Do it, or go on doing it after a kill."""


@dataclass(frozen=True)
class Listener:
    """Who is told what happens."""

    say: Callable[[str], None]  # sentences of the trainer and of ours
    planned: Callable[[Sequence[PlannedStep]], None]  # the plan, once the machine was measured
    begun: Callable[[PlannedStep, float], None]  # a step, and the minutes left
    done: Callable[[Outcome], None]


def plan_of(inputs: Inputs) -> list[PlannedStep]:
    """The plan for what is given; whatever cannot be done is an error in one sentence."""
    if inputs.valid:
        check_valid(read_set(inputs.valid, inputs.languages), inputs.valid[0])
    return make_plan(_facts(inputs), inputs.options)


def improve(inputs: Inputs, listener: Listener) -> list[Outcome]:
    """Take every step of the plan that is not done yet; returns what each gave."""
    facts = _facts(inputs)
    work = inputs.work
    existed = work.exists()
    _refuse_used(inputs)
    with locked(work):
        _remove_leftovers(work)
        journal = Journal(work, inputs.as_dict())
        shop = Workshop(inputs, journal, listener.say)
        planned = make_plan(facts, inputs.options)
        try:
            for step in planned[:MEASURED]:
                _take(shop, step, listener)
        except (InputError, OptionError):
            if not (existed or journal.done):  # so that the corrected command can be given
                files.remove_folder(work)
            raise
        planned = make_plan(_measured(facts, shop), inputs.options)
        listener.planned(planned)
        for step in planned[MEASURED:]:
            _take(shop, step, listener)
            write_improvement(shop, planned)
        _score_test(shop)
        write_improvement(shop, planned)
    return journal.done


def _measured(facts: Facts, shop: Workshop) -> Facts:
    """What is known once the machine was measured; the same after every kill."""
    if shop.inputs.options.steps:
        return facts
    first = [shop.journal.outcome(name) for name in (GATHER, MEASURE)]
    spent = sum(one.seconds for one in first if one is not None) / 60
    return replace(facts, passes=passes_of(shop), spent=spent)


def _refuse_used(inputs: Inputs) -> None:
    """Refuse folders that hold anything but an improvement."""
    work = inputs.work
    if is_begun(work):
        return
    files.check_place(work)
    for folder in (Path(inputs.out), work):
        if folder.exists():
            raise OptionError(f"{folder} exists already; name another --out")


def _remove_leftovers(work: Path) -> None:
    """Remove the unfinished writes of a process that was killed. The caller holds the lock of the
    folder, and nobody else writes there."""
    for path in sorted(work.rglob(".*.partial")):
        if files.partial_of(path):
            shutil.rmtree(path, ignore_errors=True)


def _facts(inputs: Inputs) -> Facts:
    _check(inputs)
    options = inputs.options
    return Facts(
        from_text=not inputs.start,
        pairs=_pairs(inputs.train),
        related=_pairs(options.related),
        target_lines=_lines(options.target_text),
        source_lines=_lines(options.source_text),
        has_reverse=bool(options.reverse),
    )


def _take(shop: Workshop, planned: PlannedStep, listener: Listener) -> None:
    """Take one step, unless it is done; then publish what is best."""
    journal = shop.journal
    if journal.outcome(planned.name) is None:
        left = 60 * shop.inputs.options.minutes - journal.seconds
        listener.begun(planned, left / 60)
        outcome = _outcome(shop, planned, left)
        _publish(shop, outcome)
        journal.finish(outcome)
        listener.done(outcome)
        gc.collect()
        if torch.cuda.is_available():
            # Every training compiles its own layers, of which torch keeps a few only.
            torch.compiler.reset()
            torch.cuda.empty_cache()
    # A finished run needs no state; its text and its model stay.
    files.remove_folder(shop.place(planned.name) / TRAINED / layout.STATE)


def _outcome(shop: Workshop, planned: PlannedStep, left: float) -> Outcome:
    fixed = shop.inputs.options.steps > 0
    begun = shop.place(planned.name).exists()
    if not fixed and not begun and left < 60 * planned.minutes * _LEAST_LEFT:
        return Outcome(planned.name, kept=False, note="not begun: the minutes are used up")
    step = _step(planned)
    began = time.monotonic()
    shop.place(planned.name).mkdir(parents=True, exist_ok=True)
    settings = shop.journal.settings(planned.name, step.settings(shop))
    before = float(settings.get(_SPENT, 0.0))
    try:
        with _one_sentence(planned.name):
            outcome = step.run(shop, settings)
    except BaseException:
        settings = shop.journal.settings(planned.name, {})
        spent = before + time.monotonic() - began
        shop.journal.change(planned.name, {**settings, _SPENT: spent})
        raise
    if shop.journal.settings(planned.name, {}).get("cut"):
        outcome = replace(outcome, note=f"{outcome.note}; ended early: slower than measured")
    return replace(outcome, seconds=before + time.monotonic() - began)


def _step(planned: PlannedStep) -> Step:
    name, _, number = planned.name.rpartition("-")
    if name == ROUND:
        return Round(planned.name, planned.reason, planned.minutes, int(number))
    if planned.name == PARENT:
        return Parent(planned.name, planned.reason, planned.minutes, planned.both)
    kind: Callable[[str, str, float], Step] = _KINDS[planned.name]
    return kind(planned.name, planned.reason, planned.minutes)


def _publish(shop: Workshop, outcome: Outcome) -> None:
    """Make a model that was kept the result, by one rename."""
    if outcome.name == STUDENT:
        student = shop.place(STUDENT) / TRAINED
        if student.exists():
            out = Path(shop.inputs.out)
            _copy(student, out.with_name(f"{out.name}-student"))
    elif outcome.kept and outcome.model:
        _copy(shop.path(outcome.model), Path(shop.inputs.out))


def _copy(model: Path, out: Path) -> None:
    with files.aside(out) as new:
        files.copy_folder(model, new, _OF_THE_RUN)


def _score_test(shop: Workshop) -> None:
    """Score the test set once, when everything is settled, with the first and the last model."""
    if shop.journal.outcome(TEST) is None:
        outcome = score_test(shop)
        if outcome is not None:
            shop.journal.finish(outcome)


def _check(inputs: Inputs) -> None:
    """Refuse what cannot work, before any text is read."""
    options = inputs.options
    if inputs.start:
        description, _ = load_description(Path(inputs.start))
        if description.task != "translate":
            raise OptionError(
                f"{inputs.start} holds a model for the task {description.task}; "
                "name one that translates"
            )
    elif not inputs.train:
        raise InputError("no text was named; give --from-text with a source and a target file")
    given = (inputs.train, options.target_text, options.source_text, options.related)
    if not any(given):
        raise InputError(
            f"no text was named, and what {inputs.start} was trained on is not where it was; name "
            "parallel text with --text"
        )
    if not inputs.valid and not inputs.train:
        raise InputError("there is no valid set; name one with --valid")
    if options.target_text and not inputs.train and not options.reverse:
        raise OptionError(
            "text cannot be translated back without a model of the opposite direction; "
            "name one with --reverse, or parallel text from which it can be learnt"
        )
    if not all(inputs.languages):
        raise OptionError(
            "the files do not say which languages they are in; add --from and --to, "
            "such as --from en --to tw"
        )


def _pairs(names: Sequence[str]) -> int:
    """The pairs of some files, as many as the first side of each corpus has lines."""
    return _lines([corpus.files[0] for corpus in corpora(names)])


def _lines(names: Sequence[str]) -> int:
    """The lines of some files together."""
    total = 0
    for name in names:
        if not Path(name).is_file():
            raise InputError(f"{name} does not exist or is not a file; name a text file")
        total += sum(chunk.count(b"\n") for chunk in read_chunks(name, _ignored))
    return total


def _ignored(kind: str, place: str, text: str) -> None:
    """What is wrong with a file is found when it is gathered."""


@contextmanager
def _one_sentence(name: str) -> Iterator[None]:
    """A full disk, or a GPU without memory left, as a sentence with what to do."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise TrainingError(
            f"the GPU has no memory left in the step {name}; close other programs or set a smaller "
            "training.batch_tokens, then run the same command again to continue"
        ) from None
    except (FullDiskError, TrainingError) as error:
        what, _, _ = str(error).partition(";")
        if not what.startswith("no space is left"):
            raise
        raise FullDiskError(f"{what}; free some space, then run the command again") from None
