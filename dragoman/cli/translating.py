"""The `translate`, `models` and `shortlist` commands."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.arguments import (
    AsJson,
    ChosenModels,
    ModelFolder,
    RayAddress,
    Runtime,
    with_flags,
)
from dragoman.cli.terminal import hint_at_typing, say
from dragoman.errors import InputError, OptionError
from dragoman.tasks.request import TranslateRequest

if TYPE_CHECKING:
    from dragoman.tasks.bulk import Job

commands = typer.Typer()
_WILDCARDS = frozenset("*?[")


@dataclass(frozen=True)
class Files:
    """Where the text comes from and where its translation goes."""

    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Text file, or documents and folders. Default: standard input."),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write, or a folder for documents. Default: standard output; of documents "
            "beside each, such as report.de.docx."
        ),
    ] = None
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue an unfinished --out file; skip documents that are translated already.",
        ),
    ] = False
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace translations that exist.")
    ] = False
    bilingual: Annotated[
        Path | None,
        typer.Option(
            help="Also write each text of the documents with its translation, for a reviewer: "
            ".tmx, .xliff or .html."
        ),
    ] = None
    columns: Annotated[
        str,
        typer.Option(
            help="Columns of a .csv or .tsv to translate, by name or number, with commas. Default: "
            "all that hold text."
        ),
    ] = ""
    jsonl: Annotated[
        bool,
        typer.Option(
            "--jsonl", help="Write a JSON object per line: text, scores, confidence, flags."
        ),
    ] = False

    @property
    def names(self) -> list[Path]:
        """The files that are named."""
        return self.files or []

    def are_for_lines(self) -> bool:
        """Whether a text is to be translated line by line; what is for documents alone is an error
        then."""
        if not self.names:
            is_for_lines = True  # and no module of documents is loaded
        else:
            from dragoman.cli.document_files import is_for_lines as asked

            is_for_lines = asked(self.names, self.out)
        of_documents = {
            "--bilingual": self.bilingual,
            "--columns": self.columns,
        }
        given = [option for option, value in of_documents.items() if value]
        if is_for_lines and given:
            raise OptionError(
                f"{given[0]} is for documents, and this is text to be translated line by line; "
                "omit it, or name a document"
            )
        return is_for_lines


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


@dataclass(frozen=True)
class TableFlags:
    """What is done with the rows of tables."""

    column: Annotated[
        str,
        typer.Option(
            "--column",
            "--field",
            help="Column of a table (.parquet, .jsonl, .csv, .tsv, .txt) to translate, or a path "
            "such as messages.*.content; --out is then a folder.",
        ),
    ] = ""
    into: Annotated[str, typer.Option(help="Name of the new column.")] = "translation"
    add: Annotated[
        str,
        typer.Option(help="More new columns, with commas: score, confidence, flags, alignment."),
    ] = ""
    markup: Annotated[
        str,
        typer.Option(help="What the column holds besides text: html or md, whose tags stay."),
    ] = ""
    engine: Annotated[
        str,
        typer.Option(help="Where tables are processed: local (processes on this machine) or ray."),
    ] = "local"
    address: RayAddress = ""
    workers: Annotated[
        int, typer.Option(help="Processes or actors. Default: as many as suit the devices.")
    ] = 0

    def check_unused(self) -> None:
        """Refuse what is for tables where there is none."""
        given = {
            "--into": self.into != "translation",
            "--add": bool(self.add),
            "--markup": bool(self.markup),
            "--engine": self.engine != "local",
            "--address": bool(self.address),
            "--workers": bool(self.workers),
        }
        for option, is_given in given.items():
            if is_given:
                raise OptionError(f"{option} is for tables; name the --column to translate")


@commands.command(rich_help_panel="Translate")
@with_flags
def translate(
    chosen: ChosenModels,
    files: Files,
    request: TranslateRequest,
    machines: Machines,
    rows: TableFlags,
) -> None:
    """Translate text line by line, documents with their structure, or a column of tables. Empty
    lines stay empty.

    A document (.docx, .html, .srt, .epub and others) becomes a file of its kind beside it. Folders
    stand for the documents in them. If one of several files fails, the others are still translated
    and the exit code is 1.

    `--nbest N` prints up to N lines per input line: its number, the score and the text, separated
    by tabs. A line of several sentences gives one result unless you add --whole-lines.

    Where no model has both languages, two models translate by way of a third language.

    Example: `dragoman translate --to de < in.en > out.de`, `dragoman translate report.docx --to
    de`, or with your own models: `-m models/en-de`, `-m models/tw-en -m models/en-de`
    """
    from dragoman.tasks.bulk import Job

    if rows.column:
        from dragoman.cli.table_files import translate_tables

        folder = _one_model(chosen)
        job = Job(folder.absolute(), request, machines.runtime, machines.shortlist)
        translate_tables(job, rows, files.names, files.out, machines.device)
        return
    rows.check_unused()
    _check_names(files.names, chosen)
    is_for_lines = files.are_for_lines()
    if not files.names:
        hint_at_typing()
    folder, *then = chosen.folders()
    job = Job(folder, request, machines.runtime, machines.shortlist, files.jsonl, *then)
    if then:
        say(f"by way of a third language: {folder.name}, then {then[0].name}")
    if is_for_lines:
        _translate_lines(job, machines.device, files)
    else:
        _translate_documents(job, machines.device, files)


def _one_model(chosen: ChosenModels) -> Path:
    """The model of a command that goes through one alone."""
    folder, *then = chosen.folders()
    if then:
        raise OptionError(
            f"--column works with one model, and these languages need two, {folder.name} and "
            f"{then[0].name}; run it once with each"
        )
    return folder


def _translate_lines(job: Job, device: str, files: Files) -> None:
    from dragoman.tasks.bulk import Streams, translate_stream

    source = files.names[0] if files.names else None
    try:
        streams = Streams(source, files.out, files.resume, files.overwrite)
        translate_stream(job, device, streams)
    except KeyboardInterrupt as stop:
        if str(stop):
            say(str(stop))
        raise typer.Exit(130) from None
    except BrokenPipeError:
        # Nobody reads our output any more, so there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(141) from None


def _translate_documents(job: Job, device: str, files: Files) -> None:
    from dragoman.cli.document_files import translate_documents
    from dragoman.documents.file_selection import Wanted

    columns = [column.strip() for column in files.columns.split(",")]
    wanted = Wanted(
        files.names,
        files.out,
        files.overwrite,
        files.resume,
        files.bilingual,
        tuple(column for column in columns if column),
    )
    translate_documents(wanted, job, device)


def _check_names(names: Sequence[Path], chosen: ChosenModels) -> None:
    """Raise an error where nothing that is named exists, and no pattern is among it. What has
    spaces is taken for text that ends in a question mark rather than for a pattern."""

    def is_pattern(name: str) -> bool:
        return bool(_WILDCARDS & set(name)) and " " not in name

    if names and not any(name.exists() or is_pattern(str(name)) for name in names):
        raise InputError(_no_file(names, chosen))


def _no_file(names: Sequence[Path], chosen: ChosenModels) -> str:
    """What to say of names that are no files; what does not look like one may be meant as text."""
    text = shlex.quote(" ".join(map(str, names)))
    if all(name.suffix and " " not in str(name) for name in names):
        return f"there is no file {text}; check its name"
    models = " ".join(f"-m {model}" for model in chosen.model or [])
    model = models or f"--to {chosen.to}"
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
