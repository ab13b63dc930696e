"""The `train` command."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.arguments import with_flags
from dragoman.cli.terminal import EXIT_CODES, say
from dragoman.errors import OptionError

commands = typer.Typer()


@dataclass(frozen=True)
class Folders:
    """Where a run writes, and what it starts from."""

    out: Annotated[Path | None, typer.Option(help="Model folder to create.")] = None
    resume: Annotated[Path | None, typer.Option(help="Model folder whose run to continue.")] = None
    continue_: Annotated[
        Path | None, typer.Option("--continue", help="Model folder to start from.")
    ] = None
    auto_resume: Annotated[
        bool,
        typer.Option(
            "--auto-resume",
            help="Continue the run in --out if this command has begun it before; for schedulers "
            "that start a killed job again.",
        ),
    ] = False


@dataclass(frozen=True)
class Named:
    """The options that have a flag of their own. Those that are not given are left to recipes."""

    task: Annotated[
        str | None,
        typer.Option(
            help="translate, text (any line to any line), parse (trees), lm, mlm, "
            "class (label, tab, one text or two), label (a word and its label a line), "
            "embed (pairs of texts), image (folders) or speech (path, tab, text)."
        ),
    ] = None
    from_: Annotated[
        str | None,
        typer.Option("--from", help="Source language, such as en. Default: from the file names."),
    ] = None
    to: Annotated[
        str | None,
        typer.Option(help="Target language, such as tw. Default: from the file names."),
    ] = None
    valid: Annotated[
        list[str] | None,
        typer.Option(help="Validation files. Default: part of the training text."),
    ] = None
    preset: Annotated[
        str | None,
        typer.Option(help="auto (by text and device), tiny, small, base, big or student."),
    ] = None
    steps: Annotated[int | None, typer.Option(help="Maximum number of optimiser steps.")] = None
    minutes: Annotated[
        float | None,
        typer.Option(help="Maximum minutes of training. With --resume: additional minutes."),
    ] = None
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None
    save_every: Annotated[
        int | None, typer.Option(help="Steps between checkpoints; each is validated.")
    ] = None
    vocab_size: Annotated[int | None, typer.Option(help="Vocabulary size, in pieces.")] = None
    max_length: Annotated[
        int | None, typer.Option(help="Maximum tokens per line; longer pairs are dropped.")
    ] = None
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")] = None

    def tables(self, files: list[str] | None) -> dict[str, Any]:
        """The options that are given, in the tables of a recipe."""
        from dragoman.text.languages import canonical

        data = {
            "train": files,
            "valid": self.valid,
            "source_language": canonical(self.from_ or ""),
            "target_language": canonical(self.to or ""),
            "max_length": self.max_length,
        }
        training = {
            "steps": self.steps,
            "minutes": self.minutes,
            "seed": self.seed,
            "save_every": self.save_every,
            "device": self.device,
        }
        return _given(
            {
                "task": self.task,
                "preset": self.preset,
                "data": _given(data),
                "tokenizer": _given({"vocab_size": self.vocab_size}),
                "training": _given(training),
            }
        )


@dataclass(frozen=True)
class Recipe:
    """All other options."""

    config: Annotated[Path | None, typer.Option(help="Recipe: a TOML file of options.")] = None
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any other option, such as model.dropout=0.3.")
    ] = None
    options: Annotated[
        bool,
        typer.Option("--options", help="List the options for --set and recipes, and exit."),
    ] = False


@commands.command(rich_help_panel="Train")
@with_flags
def train(
    named: Named,
    folders: Folders,
    recipe: Recipe,
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Training files: source and target, or .tsv, .tmx, .jsonl."),
    ] = None,
) -> None:
    """Train a translator on two aligned text files; or, with --task, a model for any text to text,
    a parser, a language model, an encoder, a classifier, a model that labels words, or one for
    speech.

    From the first checkpoint on, the folder holds the best model so far. You can stop with Ctrl-C
    at any time: the run is saved, and --resume continues it. Under `torchrun` the same command
    uses several GPUs, and several machines.

    Example: `dragoman train train.en train.de --valid valid.en valid.de --out models/en-de`,
    `dragoman train --task lm text.txt --out models/lm`,
    `dragoman train --task label words.tsv --continue models/encoder --out models/ner`,
    `dragoman train --task text in.src in.tgt --out models/summaries`,
    `dragoman train --task parse trees.mrg --valid dev.mrg --out models/parser`, or
    `dragoman train --task speech recordings.tsv --continue models/whisper-tiny --out models/ours`
    """
    from dragoman.config import assignments, load_toml, merge
    from dragoman.training.training_options import Options

    if recipe.options:
        _list_options(Options)
        return
    from_recipe = load_toml(recipe.config) if recipe.config else {}
    tables = merge(from_recipe, assignments(Options, recipe.set_ or []), named.tables(files))
    reason = _run(folders, tables)
    raise typer.Exit(EXIT_CODES.get(reason, 0))


def _run(folders: Folders, tables: dict[str, Any]) -> str:
    """Trains; returns why training stopped."""
    from dragoman.training import run

    if folders.resume is None:
        if folders.out is None:
            raise OptionError(
                "--out is missing; name the model folder to create, such as --out models/en-de"
            )
        return run.start(folders.out, tables, say, folders.continue_, folders.auto_resume)
    if folders.out is not None or folders.continue_ is not None:
        raise OptionError(f"--resume continues in {folders.resume}; omit --out and --continue")
    return run.resume(folders.resume, tables, say)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """Without what the user did not name."""
    return {key: value for key, value in values.items() if value not in (None, "", {}, [])}


def _list_options(cls: type) -> None:
    from dragoman.config import describe

    for option in describe(cls):
        text = option.help or option.kind
        print(f"{option.name:<28} {text} (default: {json.dumps(option.default)})")
