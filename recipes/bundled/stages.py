"""The stages of the recipe for bundled models in their order, and how one follows the other. Knows
which models and which text a stage needs; how they are made is in the files beside this one."""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bundled.earlier_models import take_over
from bundled.kept_results import keep_integers
from bundled.machine_text import write_both
from bundled.packed_readings import column
from bundled.stage_text import (
    student_text,
    teacher_text,
    wait_for,
    write_back_sources,
    write_lines,
    write_own_sources,
)
from bundled.trainings import Model, train
from bundled.workshop import DIRECTIONS, Direction, Workshop, is_model
from packed_text import HELD_OUT, LANGUAGES, PEOPLE, Packed

from dragoman.runtimes.load import load


def make_back(shop: Workshop, seconds: float) -> None:
    """The models of before write sources for text of one language alone."""
    for direction in DIRECTIONS:
        write_back_sources(shop, direction)
    write_both(shop, "back", seconds)


def make_teachers(shop: Workshop, seconds: float) -> None:
    """A teacher of each direction begins with the model of before, to which its plan may add
    layers, and learns from people's text and from what was translated back."""
    wait_for(shop, PEOPLE)
    teachers = []
    for direction in DIRECTIONS:
        text = teacher_text(shop, direction)
        start = shop.made.before(direction)
        folder = shop.made.teacher(direction)
        teachers.append(
            Model(folder, "teacher", text, direction, start if is_model(start) else None)
        )
    meanwhile = [partial(write_own_sources, shop, one) for one in DIRECTIONS]
    train(shop, teachers, seconds, meanwhile)


def make_own(shop: Workshop, seconds: float) -> None:
    """The teachers translate for their students."""
    for direction in DIRECTIONS:
        write_own_sources(shop, direction)
    write_both(shop, "own", seconds)


def make_students(shop: Workshop, seconds: float) -> None:
    """A student of each direction begins with its teacher's encoder, if there is a teacher."""
    students = []
    for direction in DIRECTIONS:
        folder = shop.made.student(direction)
        text = student_text(shop, direction)
        start = shop.made.writer("own", direction)
        students.append(Model(folder, "student", text, direction, start))
    train(shop, students, seconds)


def finish(shop: Workshop, seconds: float) -> None:
    """8-bit integers, which the runtime for CPUs makes and leaves in the folder."""
    for direction in DIRECTIONS:
        folder = shop.made.student(direction)
        if is_model(folder):
            load(folder, "cpu", "int8")
            keep_integers(shop, folder)


def make_scores(shop: Workshop, seconds: float) -> None:
    """BLEU of students and teacher on each validation set, with a beam of 4."""
    sets = shop.files(HELD_OUT)
    for held_out in sets:
        for language in LANGUAGES:
            lines = column(held_out.files[language])
            write_lines(_lines_of(shop, held_out, language), lines)
    for direction in DIRECTIONS:
        models = [shop.made.student(direction), shop.made.teacher(direction)]
        for model in filter(is_model, models):
            for held_out in sets:
                said = _evaluated(shop, model, direction, held_out)
                shop.log.note("scores", model=model.name, set=held_out.kind, said=said)


STAGES: dict[str, Callable[[Workshop, float], None]] = {
    "back": make_back,
    "teachers": make_teachers,
    "own": make_own,
    "students": make_students,
    "finish": finish,
    "scores": make_scores,
}


def make_all(shop: Workshop) -> None:
    """All stages, one after the other; one that fails is noted, and the next one begins."""
    minutes = shop.plan["minutes"]
    shop.done.extend(name for name in STAGES if not minutes.get(name))
    take_over(shop)
    for name, stage in STAGES.items():
        if name in shop.done:
            continue
        began = time.monotonic()
        seconds = shop.clock.seconds(name, shop.done)
        shop.log.note(name, begins=round(seconds, 1))
        try:
            stage(shop, seconds)
        except Exception:
            shop.log.note(name, failed=traceback.format_exc(limit=3))
        shop.done.append(name)
        shop.log.note(name, seconds=round(time.monotonic() - began, 1))


def _evaluated(shop: Workshop, model: Path, direction: Direction, held_out: Packed) -> str:
    """What `dragoman evaluate` says of a model, as JSON, or its error."""
    words = ["-m", "dragoman", "evaluate", "-m", str(model)]
    words += [str(_lines_of(shop, held_out, one)) for one in direction.languages]
    words += ["--device", shop.device, "--json"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    said = done.stdout.strip().splitlines()
    return "".join(said or done.stderr.strip().splitlines()[-1:])


def _lines_of(shop: Workshop, held_out: Packed, language: str) -> Path:
    """Where the lines of a validation set lie as text."""
    return shop.made.folder / f"{held_out.kind}.{language}"
