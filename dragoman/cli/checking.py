"""The `check` command."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import AsJson, with_flags

commands = typer.Typer()


@dataclass(frozen=True)
class HeldOut:
    """Text that must not be trained on."""

    valid: Annotated[list[str] | None, typer.Option(help="Validation files, one or two.")] = None
    test: Annotated[
        list[str] | None, typer.Option(help="Test files; the source side is enough.")
    ] = None


@commands.command(rich_help_panel="Train")
@with_flags
def check(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Two aligned files, or .tsv, .tmx and .jsonl files; several are joined."
        ),
    ],
    held_out: HeldOut,
    clean: Annotated[
        Path | None,
        typer.Option(
            help="Also write the usable pairs to CLEAN.en and CLEAN.de (by their languages), and "
            "the dropped ones with the reason to CLEAN.dropped.tsv.",
        ),
    ] = None,
    as_json: AsJson = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="An option of [data], such as max_ratio=4.")
    ] = None,
) -> None:
    """Find problems in training text before you train on it.

    Exits with 1 if training would refuse the text, else with 0.

    Example: `dragoman check train.en train.de --valid valid.en valid.de --test test.en test.de`
    """
    from dragoman.config import assignments, build, merge
    from dragoman.data.check import check as run_check
    from dragoman.data.data_options import DataOptions

    named = {"train": files, "valid": held_out.valid or [], "test": held_out.test or []}
    options = build(DataOptions, merge(assignments(DataOptions, set_ or []), named))
    report = run_check(options, clean)
    if as_json:
        print(json.dumps(report.as_dict(), ensure_ascii=False, indent=1))
    else:
        print(report.text(), end="")
    if report.problems:
        raise typer.Exit(1)
