"""The `translate`, `models` and `shortlist` commands."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import AsJson, ChosenModel, ModelFolder, Runtime, with_flags
from dragoman.cli.terminal import hint_at_typing, say
from dragoman.errors import InputError
from dragoman.tasks.request import TranslateRequest

commands = typer.Typer()


@dataclass(frozen=True)
class Files:
    """Where the text comes from and where its translation goes."""

    file: Annotated[Path | None, typer.Argument(help="Text file. Default: standard input.")] = None
    out: Annotated[Path | None, typer.Option(help="File to write. Default: standard output.")] = (
        None
    )
    resume: Annotated[bool, typer.Option("--resume", help="Continue an unfinished --out file.")] = (
        False
    )
    jsonl: Annotated[
        bool,
        typer.Option(
            "--jsonl", help="Write a JSON object per line: text, scores, confidence, flags."
        ),
    ] = False


@dataclass(frozen=True)
class Machines:
    """What computes."""

    shortlist: Annotated[
        bool,
        typer.Option("--shortlist", help="Use the model's shortlist (see `dragoman shortlist`)."),
    ] = False
    runtime: Runtime = "auto"
    device: Annotated[
        str, typer.Option(help="auto (all GPUs), cpu, cuda, cuda:N, or several with commas.")
    ] = "auto"


@commands.command(rich_help_panel="Translate")
@with_flags
def translate(
    chosen: ChosenModel, files: Files, request: TranslateRequest, machines: Machines
) -> None:
    """Translate text line by line. Empty lines stay empty.

    `--nbest N` prints up to N lines per input line: its number, the score and the text, separated
    by tabs. A line of several sentences gives one result unless you add --whole-lines.

    Example: `dragoman translate --to de < in.en > out.de`, or with your own model: `-m
    models/en-de`
    """
    from dragoman.tasks.bulk import Job, Streams, translate_stream

    if files.file is None:
        hint_at_typing()
    elif not files.file.exists():
        raise InputError(_no_file(files.file, chosen))
    job = Job(chosen.folder(), request, machines.runtime, machines.shortlist, files.jsonl)
    try:
        translate_stream(job, machines.device, Streams(files.file, files.out, files.resume))
    except KeyboardInterrupt as stop:
        if str(stop):
            say(str(stop))
        raise typer.Exit(130) from None
    except BrokenPipeError:
        # Nobody reads our output any more, so there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(141) from None


def _no_file(file: Path, chosen: ChosenModel) -> str:
    """What to say of a name that is no file; it may be meant as text."""
    text = shlex.quote(str(file))
    model = f"-m {chosen.model}" if chosen.model else f"--to {chosen.to}"
    return (
        f"there is no file {text}; to translate text rather than a file, pipe it: "
        f"echo {text} | dragoman translate {model}"
    )


@commands.command(rich_help_panel="Translate")
def models(as_json: AsJson = False) -> None:
    """List the bundled models and those in the folder models/.

    Example: `dragoman models --json`
    """
    from dragoman.folder.shipped import listing

    print(listing(Path("models"), as_json))


@commands.command(rich_help_panel="Translate")
def shortlist(
    model: ModelFolder,
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Training files. Default: the training text in the model folder."),
    ] = None,
) -> None:
    """Learn which target tokens each source token may need; `translate --shortlist` then considers
    only these, which is faster.

    Example: `dragoman shortlist -m models/en-de`
    """
    from dragoman.tasks.learn_shortlist import learn_shortlist

    print(learn_shortlist(model, files or []).text())
