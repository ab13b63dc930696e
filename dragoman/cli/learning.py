"""The commands by which a model learns from its readers: `learn` and `rollback`."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.arguments import Printing, with_flags
from dragoman.cli.terminal import (
    EXIT_CODES,
    duration,
    print_json,
    say,
    say_nothing,
    silenced,
)
from dragoman.errors import InputError, OptionError

if TYPE_CHECKING:
    from dragoman.improving.learn_options import Given
    from dragoman.improving.learn_request import LearnRequest, Learnt

commands = typer.Typer()
_LOWEST = 19  # priority
Files = list[str] | None


@dataclass(frozen=True)
class Lessons:
    """What there is to learn, and the older text beside it."""

    corrections: Annotated[
        list[Path] | None,
        typer.Option(
            help="File in which `dragoman serve` keeps corrections, or a .tmx, .tsv, .jsonl or "
            ".xliff file. May be repeated."
        ),
    ] = None
    user: Annotated[
        list[str] | None,
        typer.Option(help="Learn only from the corrections of this API key. May be repeated."),
    ] = None
    unreviewed: Annotated[
        bool,
        typer.Option(
            "--unreviewed", help="Also use units that an XLIFF file does not mark as reviewed."
        ),
    ] = False
    text: Annotated[
        Files,
        typer.Option(
            help="Older text to train on as well: parallel files, or one in the source language "
            "alone. Default: what the model folder holds."
        ),
    ] = None
    valid: Annotated[
        Files,
        typer.Option(
            help="Older validation set, on which quality must not drop. Default: what the model "
            "folder holds, or part of --text."
        ),
    ] = None


@dataclass(frozen=True)
class Telling(Printing):
    """What is printed, and how much of the machine is used."""

    plan: Annotated[bool, typer.Option("--plan", help="Print what would be done and exit.")] = False
    background: Annotated[
        bool, typer.Option("--background", help="Run at the lowest priority, on one core.")
    ] = False
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Another option of learning, such as passes=6."),
    ] = None


@dataclass(frozen=True)
class Bounds:
    """How far it may go; see learn_options.py for what else may be --set."""

    minutes: Annotated[float | None, typer.Option(help="Maximum minutes. Default: 30.")] = None
    per_user: Annotated[
        int | None,
        typer.Option(help="Newest corrections of each user to use. Default: 200."),
    ] = None
    keep: Annotated[
        int | None,
        typer.Option(help="Earlier models to keep besides the first. Default: 3."),
    ] = None
    most_loss: Annotated[
        float | None,
        typer.Option(help="BLEU points that the older validation set may lose. Default: 0.2."),
    ] = None
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")] = None
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None


@commands.command(rich_help_panel="Improve")
@with_flags
def learn(
    model: Annotated[
        Path, typer.Argument(help="Model folder, or the name of a bundled model, such as en-de.")
    ],
    lessons: Lessons,
    bounds: Bounds,
    telling: Telling,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Model folder to create. Default: MODEL itself becomes the better model, and what "
            "it was is kept in MODEL.history. A bundled model needs this."
        ),
    ] = None,
) -> None:
    """Teach a model from its readers' corrections; keep the result only if it is better.

    The corrections are checked, a copy of the model is tuned on them and on older text, and the
    result is tested on held-out corrections and on the older validation set. If it is
    better, it becomes the model in one step, and `dragoman rollback` goes back; if not, nothing
    changes. Send a running service SIGHUP to reload it.

    Example: `dragoman learn models/en-de --corrections corrections.sqlite`
    """
    from dragoman.improving.improve_training import StoppedError
    from dragoman.improving.learn_request import intention
    from dragoman.improving.learn_run import learn as run

    if telling.background:
        _step_back()
    request = _request(model, lessons, bounds, telling, out)
    plan = intention(request)
    if telling.plan:
        print(plan)
        return
    tell = say_nothing if telling.silent else say
    tell(plan)
    try:
        with silenced(telling.silent):
            learnt = run(request, tell)
    except StoppedError as stopped:
        say(f"stopped by {stopped.name}; {request.folder} is as it was")
        raise typer.Exit(EXIT_CODES.get(stopped.name, 130)) from None
    if telling.as_json:
        print_json(asdict(learnt))
    elif not telling.quiet:
        _tell(learnt)


@commands.command(rich_help_panel="Improve")
def rollback(
    model: Annotated[Path, typer.Argument(help="Model folder that has learnt from corrections.")],
) -> None:
    """Go back to the model that a folder held before it last learnt.

    Both are kept: the one that was current goes to MODEL.history. Send a running service SIGHUP to
    reload it.

    Example: `dragoman rollback models/en-de`
    """
    from dragoman.improving.learn_run import roll_back

    number = roll_back(model)
    which = "the model before it learnt anything" if number == 0 else f"model number {number}"
    say(f"{model} is {which} again; send a running service a SIGHUP")


def _request(
    model: Path, lessons: Lessons, bounds: Bounds, telling: Telling, out: Path | None
) -> LearnRequest:
    from dragoman.config import assignments, build, merge
    from dragoman.folder.description import load_description
    from dragoman.improving.learn_options import LearnOptions
    from dragoman.improving.learn_request import LearnRequest
    from dragoman.improving.older_text import Named

    flags = {name: value for name, value in asdict(bounds).items() if value is not None}
    tables = merge(assignments(LearnOptions, telling.set_ or []), flags)
    options = build(LearnOptions, tables)
    folder = _folder(model)
    description, _ = load_description(folder)
    languages = (description.source_language, description.target_language)
    given = _given(lessons, languages)
    named = Named(tuple(lessons.text or ()), tuple(lessons.valid or ()), languages)
    return LearnRequest(folder, given, named, out, options)


def _folder(model: Path) -> Path:
    """A model folder; of a bundled model, the name is enough."""
    from dragoman.folder.shipped import shipped_folders

    if model.exists():
        return model
    bundled = {folder.name: folder for folder in shipped_folders()}
    return bundled.get(str(model), model)


def _given(lessons: Lessons, languages: tuple[str, str]) -> tuple[Given, ...]:
    """The corrections of all files, in their order."""
    if not lessons.corrections:
        raise OptionError(
            "no corrections are named; add --corrections with the file in which `dragoman serve` "
            "keeps them, or a .tmx, .tsv or .xliff file"
        )
    given: list[Given] = []
    for file in lessons.corrections:
        given += _of_file(file, languages, lessons)
    return tuple(given)


def _of_file(file: Path, languages: tuple[str, str], lessons: Lessons) -> list[Given]:
    from dragoman.data.correction_files import is_table_of_corrections, read_corrected
    from dragoman.improving.learn_options import Given
    from dragoman.server.corrections import Corrections
    from dragoman.text.languages import canonical

    if is_table_of_corrections(file):
        found = read_corrected(file, languages, lessons.unreviewed)
        return [Given(one.source, one.target) for one in found]
    if not file.is_file():
        raise InputError(f"{file} does not exist; name a file of corrections")
    store = Corrections(file)
    try:
        saved = store.of_each_user(canonical(languages[0]), canonical(languages[1]))
    finally:
        store.close()
    wanted = {f"key {name}" for name in lessons.user or ()}
    return [
        Given(one.source, one.target, one.user) for one in saved if not wanted or one.user in wanted
    ]


def _tell(learnt: Learnt) -> None:
    for note in learnt.notes:
        say(note)
    if learnt.kept:
        say(f"{learnt.folder} has learnt from {learnt.learnt:,} corrections: {learnt.why}")
        older = learnt.verdict.older if learnt.verdict else None
        if older is not None:
            say(f"older valid set: BLEU {older.before:.2f} before, {older.after:.2f} after")
        say(f"`dragoman rollback {learnt.folder}` goes back ({duration(learnt.seconds)})")
    else:
        say(f"{learnt.folder}: {learnt.why} ({duration(learnt.seconds)})")


def _step_back() -> None:
    """Let every other program come first."""
    import torch

    torch.set_num_threads(1)
    if hasattr(os, "nice"):
        os.nice(_LOWEST)
