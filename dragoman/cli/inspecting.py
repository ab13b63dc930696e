"""The `inspect` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import ChosenModel, Flags, Machine, with_flags
from dragoman.cli.terminal import say
from dragoman.decoding.search_options import SearchOptions

commands = typer.Typer()


@commands.command("inspect", rich_help_panel="Look inside")
@with_flags
def inspect_one(
    text: Annotated[
        str,
        typer.Argument(help="What the model reads: a sentence, a prompt, an image or sound file."),
    ],
    chosen: ChosenModel,
    options: Annotated[SearchOptions, Flags(only=("beam",))],
    machine: Machine,
    out: Annotated[
        Path | None,
        typer.Option(help="An .html, .svg, .png or .json file to write. Default: the terminal."),
    ] = None,
) -> None:
    """Look inside a model at work: every head of every layer, how sure each word is, and the tree
    of the search for a translation or a parse.

    A language model continues the text by at most 50 tokens; an encoder reads it, or an image
    file, and a classifier names its label; a speech model transcribes the first window of a sound
    file.

    Example: `dragoman inspect "The cat is sleeping on the chair." --to de --out attention.html`
    """
    from dragoman.folder.files import check_file_place
    from dragoman.inspection.look import look_into
    from dragoman.inspection.picture import as_text
    from dragoman.inspection.view_file import check_name, drawn, write_view

    if out is not None:
        check_name(out)
        check_file_place(out)
    view = look_into(chosen.folder(), text, options, machine.device, machine.runtime)
    sentences = view["sentences"]
    if len(sentences) > 1:
        say(f"showing the first of {len(sentences)} sentences: {sentences[0]}")
    print(view["text"])
    if out is not None:
        write_view(view, out)
        return
    drawing = drawn(view)
    print(as_text(drawing.rows, drawing.columns, drawing.mean), end="")
