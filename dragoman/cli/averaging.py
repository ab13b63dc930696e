"""The `average` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.errors import OptionError

commands = typer.Typer()


@commands.command(rich_help_panel="Improve")
def average(
    out: Annotated[Path, typer.Argument(help="Model folder to create.")],
    parts: Annotated[
        list[str],
        typer.Argument(help="Model folders and their shares, FOLDER:SHARE; they add up to 1."),
    ],
    from_: Annotated[
        str | None,
        typer.Option("--from", help="Source language. Default: that of the first model."),
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="Target language. Default: that of the first model.")
    ] = None,
) -> None:
    """Average the weights of models that started from the same one.

    A model that was tuned on little text forgets some of what it knew; a share of the model that it
    started from brings that back. --from and --to choose the direction of a model that has both.

    Example: `dragoman average models/twi-en models/tuned:0.8 models/parent:0.2`
    """
    from dragoman.folder.description import load_description
    from dragoman.folder.files import check_place
    from dragoman.improving.averaged_weights import average as make

    check_place(out)
    if out.exists():
        raise OptionError(f"{out} exists already; name another folder")
    shares = [_part(words) for words in parts]
    first, _ = load_description(shares[0][0])
    languages = (from_ or first.source_language, to or first.target_language)
    make(out, shares, languages)


def _part(words: str) -> tuple[Path, float]:
    folder, _, share = words.rpartition(":")
    try:
        value = float(share)
    except ValueError:
        value = -1.0
    if not folder or not 0 <= value <= 1:
        raise OptionError(f"'{words}' is not FOLDER:SHARE; write models/a:0.5 models/b:0.5")
    return Path(folder), value
