"""The command `convert`, which the command line takes in: models from and to other formats."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.errors import OptionError

commands = typer.Typer()


@commands.command("convert")
def convert_model(
    model: Annotated[str, typer.Argument(help="A model folder, or hf:FOLDER, from Hugging Face.")],
    target: Annotated[
        str,
        typer.Argument(
            help="ct2:FOLDER, marian:FOLDER or argos:FILE; of hf:FOLDER, a folder to make."
        ),
    ],
    from_: Annotated[
        str, typer.Option("--from", help="Of hf:FOLDER: the source language, by its tag there.")
    ] = "",
    to: Annotated[str, typer.Option("--to", help="Of hf:FOLDER: the target language.")] = "",
    prefix: Annotated[
        str, typer.Option(help="Of hf:FOLDER: text that stands before every source, as for T5.")
    ] = "",
    compute_type: Annotated[str, typer.Option(help="Of ct2: int8 or float32.")] = "int8",
) -> None:
    """Make a model folder from one of Hugging Face's, or write a model in another format, compared
    token by token with ours.

    Example: `dragoman convert hf:opus-mt-en-de models/en-de` and `dragoman convert models/en-de
    ct2:models/en-de-ct2`
    """
    from dragoman.formats import export_argos as argos
    from dragoman.formats import export_ctranslate2 as ctranslate2
    from dragoman.formats import export_marian as marian
    from dragoman.formats import import_huggingface as convert

    kind, _, out = target.partition(":")
    if model.startswith("hf:"):
        direction = convert.Direction(from_, to, prefix)
        return convert.convert(Path(model[3:]), Path(target), direction, _say)
    if from_ or to or prefix:
        raise OptionError(
            "--from, --to and --prefix are for models that come from hf:FOLDER; leave them away"
        )
    if kind not in ("ct2", "marian", "argos") or not out:
        raise OptionError(
            f"the target is '{target}'; it must be ct2:FOLDER, marian:FOLDER or argos:FILE"
        )
    if kind == "ct2":
        return ctranslate2.export(Path(model), Path(out), compute_type, _say)
    return {"marian": marian.export, "argos": argos.export}[kind](Path(model), Path(out), _say)


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
