"""Sequence-level distillation (Kim and Rush 2016): a small model learns what a large one says.

The teacher translates text, what it says is filtered, and a student is trained on it in the folder
that it will have; all that is made on the way lies in state/ of that folder. Every step is done
once: called again after a kill at any moment, `distil` continues where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from dragoman.config import build, load_toml, merge
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import InputError, ModelFolderError, OptionError
from dragoman.folder import files, layout
from dragoman.folder.description import Description, load_description, save_description
from dragoman.improving.best_pairs import Judge, keep_best
from dragoman.improving.machine_pairs import PairsJob, check_language, check_model, make_pairs
from dragoman.improving.passage_journal import Counts
from dragoman.improving.source_texts import survey
from dragoman.improving.teacher_text import write_sources
from dragoman.improving.text_through_model import (
    Course,
    Machines,
    Passage,
    kind_of,
    put_through,
)
from dragoman.training import run
from dragoman.training.continued import keep_start
from dragoman.training.presets import resolve
from dragoman.training.start_from import inheritance
from dragoman.training.training_options import Options

PRESET = "student"
# Shares of the time: in recipes/student.toml the text took 3 minutes and the student 7.
_TRANSLATING = 0.3
_SCORING = 0.1
_STOPPED = ("SIGHUP", "SIGINT", "SIGTERM")

Say = Callable[[str], None]


@dataclass(frozen=True)
class Distillation:
    """What the teacher translates, what of it is kept, and what the student is."""

    # Text in the teacher's source language; none for that which its folder still holds.
    texts: tuple[Path, ...] = ()
    # The student's options, as a recipe has them. Unless they name a vocabulary size, the student
    # has the teacher's vocabulary.
    student: Mapping[str, Any] = field(default_factory=dict)
    reverse: Path | None = None  # a model of the other direction, which judges the pairs
    keep: float = 0.8  # the share of pairs that it keeps
    search: SearchOptions = field(default_factory=lambda: SearchOptions(beam=1, max_extra=20))
    machines: Machines = field(default_factory=Machines)

    def __post_init__(self) -> None:
        if not 0 < self.keep <= 1:
            raise OptionError(f"keep is {self.keep}; it must be above 0 and at most 1")


@dataclass(frozen=True)
class Distilled:
    """What became of it."""

    counts: Counts  # of the text that the teacher translated
    pairs: int  # that the student was trained on, before the checks of training
    reason: str  # why training ended: steps, minutes, patience, or the name of a signal

    @property
    def stopped(self) -> bool:
        """Whether a signal ended the training, which `distil` called again continues."""
        return self.reason in _STOPPED


def distil(
    teacher: Path,
    student: Path,
    options: Distillation | None = None,
    course: Course | None = None,
    say: Say = print,
) -> Distilled:
    """Make a student of a teacher, in the model folder `student`.

    Of the seconds of `course` the teacher has at most 30%, and the training all that is left. What
    the teacher says is filtered as in back-translation and, with a reverse model, by how likely
    that finds the source. In the end the folder has int8 weights and a shortlist as well.
    """
    options = options or Distillation()
    course = course or Course()
    _check(teacher, student, options)
    counts = _translate(teacher, student, options, course)
    out = student / layout.DISTILLED_PAIRS
    pairs = counts.pairs
    if options.reverse is not None:
        share = replace(course, seconds=_SCORING * course.seconds)
        best = student / layout.DISTILLED_BEST
        judge = Judge(options.reverse, options.keep, options.machines)
        pairs = keep_best(out, best, judge, share)
        out = best
    if not (student / layout.GIVEN).exists():
        sentence = _begin(teacher, student, options, out, course.seconds - counts.seconds)
        say(f"The student {sentence}.")
    reason = run.resume(student, {}, say)
    distilled = Distilled(counts, pairs, reason)
    if not distilled.stopped:
        _finish(student, say)
    return distilled


def _check(teacher: Path, student: Path, options: Distillation) -> None:
    """Refuse what cannot work before anything is made."""
    check_model(teacher)
    files.check_place(student)
    resolve(_recipe(options), pairs=1, on_gpu=False)  # a mistake shows before text is translated
    if options.reverse is not None:
        _check_reverse(teacher, options.reverse)
    is_begun = (student / layout.DISTILLED).is_dir()
    if not is_begun and student.exists() and (not student.is_dir() or any(student.iterdir())):
        raise ModelFolderError(f"{student} exists and is not empty; name another --out")
    if (student / layout.GIVEN).exists():
        given = files.read_json(student / layout.GIVEN)
        for name, value in json.loads(json.dumps(_recipe(options))).items():
            if merge(given, {name: value}) != given:
                raise OptionError(
                    f"{student} was begun with another '{name}'; omit it, or name another --out"
                )


def _check_reverse(teacher: Path, reverse: Path) -> None:
    check_model(reverse)
    ours = load_description(teacher)[0]
    theirs = load_description(reverse)[0]
    expected = (ours.target_language, ours.source_language)
    found = (theirs.source_language, theirs.target_language)
    if all(expected) and all(found) and expected != found:
        raise OptionError(
            f"--reverse {reverse} translates {found[0]} to {found[1]}; name a model that "
            f"translates {expected[0]} to {expected[1]}"
        )


def _recipe(options: Distillation) -> dict[str, Any]:
    return merge({"preset": PRESET}, options.student)


def _translate(teacher: Path, student: Path, options: Distillation, course: Course) -> Counts:
    """The teacher's translations of the text."""
    texts = options.texts or (_own_sources(teacher, student),)
    surveyed = survey(texts)
    check_language(teacher, surveyed)
    out = student / layout.DISTILLED_PAIRS
    job = PairsJob(teacher, options.search, options.machines.runtime, kind_of(out))
    work = partial(make_pairs, job)
    passage = Passage(teacher, surveyed, out, work, job.facts(), options.machines)
    try:
        return put_through(passage, replace(course, seconds=_TRANSLATING * course.seconds))
    except InputError:
        _leave_nothing(student)
        raise


def _own_sources(teacher: Path, student: Path) -> Path:
    """The sources that the teacher's folder holds, as a file in that of the student."""
    sources = student / layout.DISTILLED_SOURCES
    if not sources.exists():
        write_sources(teacher, sources)
    return sources


def _leave_nothing(student: Path) -> None:
    """Remove the folders in which nothing was written, so that the corrected command can be
    given."""
    for folder in (student / layout.DISTILLED, student / layout.STATE, student):
        with suppress(OSError):  # which has something in it
            folder.rmdir()


def _begin(teacher: Path, student: Path, options: Distillation, pairs: Path, seconds: float) -> str:
    """Write what makes the student's folder one whose run can be resumed; its options last. Return
    in words what it starts from."""
    description, tokenizer = load_description(teacher)
    given = merge({"data": _data(teacher, description, pairs)}, _recipe(options))
    if seconds > 0:
        given = merge(given, {"training": {"minutes": seconds / 60}})
    own_vocabulary = bool(given.get("tokenizer", {}).get("vocab_size"))
    if not own_vocabulary:
        given = merge({"tokenizer": _pieces(teacher)}, given)
    shape = resolve(given, pairs=1, on_gpu=False)[0].model
    shape = replace(
        shape,
        vocab_size=description.model.vocab_size,
        source_vocab_size=description.model.source_vocab_size,
    )
    if not own_vocabulary:
        longest = min(description.longest, shape.max_length)
        like_teacher = replace(description, model=shape, longest=longest)
        save_description(student, like_teacher, tokenizer)
    build(Options, given)
    inherited = inheritance(description.model, shape)
    if inherited.share:
        keep_start(student, teacher)
        given = {**given, "continued": str(teacher)}
    files.write_file(student / layout.GIVEN, json.dumps(given, indent=1).encode())
    return inherited.sentence


def _data(teacher: Path, description: Description, pairs: Path) -> dict[str, Any]:
    """The text of the student's run."""
    data: dict[str, Any] = {
        "train": [str(pairs.absolute())],
        "source_language": description.source_language,
        "target_language": description.target_language,
    }
    valid = teacher / layout.VALID_TEXT
    if valid.exists():
        data["valid"] = [str(valid.absolute())]
    return data


def _pieces(teacher: Path) -> dict[str, Any]:
    """How the teacher's vocabulary was made, as far as its folder says."""
    path = teacher / layout.OPTIONS
    table = load_toml(path).get("tokenizer", {}) if path.exists() else {}
    return {**table, "sampling": 0.0}


def _finish(student: Path, say: Say) -> None:
    """What makes the student fast on a CPU: a shortlist and weights in 8-bit integers."""
    import torch

    from dragoman.runtimes.load import load
    from dragoman.runtimes.runtime import INT8, SHORTLIST, abilities
    from dragoman.tasks.learn_shortlist import learn_shortlist

    can = abilities(load_description(student)[0].model, torch.device("cpu"))
    if SHORTLIST in can and _is_older(student / layout.SHORTLIST, student / layout.WEIGHTS):
        say(f"shortlist: {learn_shortlist(student, []).text()}")
    if INT8 in can:
        load(student, "cpu", "int8")


def _is_older(made: Path, source: Path) -> bool:
    return not made.exists() or made.stat().st_mtime_ns < source.stat().st_mtime_ns
