"""Commands of the command line, which takes them in: `inspect` a model at work, `corrections
export`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.decoding.search_options import SearchOptions

commands, corrections = (
    typer.Typer(),
    typer.Typer(help="What readers made better, saved by `dragoman serve`."),
)
commands.add_typer(corrections, name="corrections")


@commands.command("inspect")
def inspect_one(
    text: Annotated[
        str,
        typer.Argument(help="A sentence; a prompt; an image or sound file: what the model reads."),
    ],
    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", help="A model folder; without it, what came for --to."),
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", help="The source language, where --to has several.")
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="The target language of a model that came with dragoman.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="An .html, .svg, .png or .json file; without it, the terminal."),
    ] = None,
    beam: Annotated[
        int, typer.Option(help="Hypotheses of a translation, followed side by side.")
    ] = SearchOptions.beam,
    runtime: Annotated[str, typer.Option(help="Of a translation: auto, torch or int8.")] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
) -> None:
    """Look inside a model at work: every head of every layer, how sure each word is, the tree of a
    translation's search.

    A language model writes on from the text, at most 50 tokens; an encoder reads it, or an image
    file, and a classifier says what it is; a model of speech writes down the first window of a
    sound file.

    Example: `dragoman inspect "The cat sat on the mat." --to de --out attention.html`
    """
    from dragoman.folder.shipped import choose
    from dragoman.inspection.look import look_into
    from dragoman.inspection.picture import as_text
    from dragoman.inspection.view_file import drawn, write_view

    view = look_into(choose(model, from_, to), text, SearchOptions(beam), device, runtime)
    if len(view["sentences"]) > 1:
        print(
            f"the first of {len(view['sentences'])} sentences is looked into: {view['sentences'][0]}",
            file=sys.stderr,
        )
    print(view["text"])
    if out is not None:
        write_view(view, out)
    else:
        drawing = drawn(view)
        print(as_text(drawing.rows, drawing.columns, drawing.mean), end="")


@corrections.command("export")
def export_corrections(
    database: Annotated[
        Path, typer.Argument(help="The file in which `dragoman serve` keeps corrections.")
    ],
    out: Annotated[
        Path, typer.Argument(help="A .tmx or .tsv file to write, which `dragoman train` reads.")
    ],
) -> None:
    """Write the newest correction of each sentence as training text.

    Example: `dragoman corrections export corrections.sqlite corrections.tmx`
    """
    from dragoman.server.corrections_export import export

    print(f"{export(database, out):,} corrections are in {out}")
