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

from bundled.kept_results import keep_integers, keep_text
from bundled.machine_text import one_way, write_both
from bundled.packed_readings import column
from bundled.stage_text import (
    first_teacher_text,
    second_teacher_text,
    student_text,
    wait_for_parts,
    write_back_sources,
    write_lines,
    write_own_sources,
)
from bundled.trainings import Model, train
from bundled.workshop import DIRECTIONS, Direction, Workshop
from packed_text import HELD_OUT, LANGUAGES, Packed

from dragoman.folder import layout
from dragoman.runtimes.load import load


def make_first(shop: Workshop, seconds: float) -> None:
    """A teacher of both directions learns from people's text."""
    text = first_teacher_text(shop)
    model = Model(shop.made.folder / "first", "first", text)
    meanwhile = [partial(write_back_sources, shop, one) for one in DIRECTIONS]
    train(shop, [model], seconds, meanwhile)


def make_back(shop: Workshop, seconds: float) -> None:
    """It writes sources for text of one language alone."""
    for direction in DIRECTIONS:
        write_back_sources(shop, direction)
    write_both(shop, "back", seconds)


def make_second(shop: Workshop, seconds: float) -> None:
    """The teacher goes on with all of that, or begins if there is none yet."""
    wait_for_parts(shop)
    text = second_teacher_text(shop)
    folder = shop.made.folder / "second"
    first = shop.made.folder / "first"
    if (first / layout.WEIGHTS).exists():
        model = Model(folder, "second", text, first)
    else:
        model = Model(folder, "first", text)
    meanwhile = [partial(write_own_sources, shop, one) for one in DIRECTIONS]
    meanwhile.append(partial(keep_text, shop, "back"))
    train(shop, [model], seconds, meanwhile)


def make_own(shop: Workshop, seconds: float) -> None:
    """The last teacher translates for its students."""
    for direction in DIRECTIONS:
        write_own_sources(shop, direction)
    write_both(shop, "own", seconds)


def make_students(shop: Workshop, seconds: float) -> None:
    """A student of each direction begins with the teacher's encoder, if there is a teacher."""
    teachers = shop.made.teachers("own")
    start = teachers[0] if teachers else None
    students = []
    for direction in DIRECTIONS:
        folder = shop.made.folder / direction.name
        text = student_text(shop, direction)
        students.append(Model(folder, "student", text, start, direction))
    train(shop, students, seconds, [partial(keep_text, shop, "own")])


def finish(shop: Workshop, seconds: float) -> None:
    """8-bit integers, which the runtime for CPUs makes and leaves in the folder."""
    for direction in DIRECTIONS:
        folder = shop.made.folder / direction.name
        if (folder / layout.WEIGHTS).exists():
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
        models = [shop.made.folder / direction.name]
        models += [one_way(one, direction) for one in shop.made.teachers("own")[:1]]
        for model in models:
            for held_out in sets:
                said = _evaluated(shop, model, direction, held_out)
                shop.log.note("scores", model=model.name, set=held_out.kind, said=said)


STAGES: dict[str, Callable[[Workshop, float], None]] = {
    "first": make_first,
    "back": make_back,
    "second": make_second,
    "own": make_own,
    "students": make_students,
    "finish": finish,
    "scores": make_scores,
}


def make_all(shop: Workshop) -> None:
    """All stages, one after the other; one that fails is noted, and the next one begins."""
    minutes = shop.plan["minutes"]
    shop.done.extend(name for name in STAGES if not minutes.get(name))
    if all(shop.files(f"back_{one.name}") for one in DIRECTIONS):
        shop.done.extend(["first", "back"])
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
