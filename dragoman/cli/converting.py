"""The `convert` command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import with_flags
from dragoman.cli.terminal import say
from dragoman.errors import OptionError

commands = typer.Typer()


@dataclass(frozen=True)
class Imported:
    """What a model of Hugging Face's does not say of itself."""

    from_: Annotated[
        str, typer.Option("--from", help="For hf:FOLDER: source language, by its tag there.")
    ] = ""
    to: Annotated[str, typer.Option("--to", help="For hf:FOLDER: target language.")] = ""
    prefix: Annotated[
        str, typer.Option(help="For hf:FOLDER: text put before every source, as for T5.")
    ] = ""


@commands.command("convert", rich_help_panel="Convert")
@with_flags
def convert_model(
    model: Annotated[
        str, typer.Argument(help="Model folder, or hf:FOLDER for one from Hugging Face.")
    ],
    target: Annotated[
        str,
        typer.Argument(
            help="ct2:FOLDER, onnx:FOLDER, marian:FOLDER or argos:FILE; for hf:, a new folder."
        ),
    ],
    imported: Imported,
    compute_type: Annotated[str, typer.Option(help="For ct2 and onnx: int8 or float32.")] = "int8",
) -> None:
    """Make a model folder from a Hugging Face model, or write a model in another format and compare
    it with ours token by token.

    Example: `dragoman convert hf:opus-mt-en-de models/en-de` and `dragoman convert models/en-de
    ct2:models/en-de-ct2` (or `onnx:models/en-de-onnx`)
    """
    from dragoman.folder.files import check_place

    if model.startswith("hf:"):
        from dragoman.formats import import_huggingface
        from dragoman.formats.huggingface_frame import Direction

        direction = Direction(imported.from_, imported.to, imported.prefix)
        check_place(Path(target))
        import_huggingface.convert(Path(model[3:]), Path(target), direction, say)
        return
    if imported != Imported():
        raise OptionError("--from, --to and --prefix are for hf:FOLDER; omit them")
    kind, _, out = target.partition(":")
    if kind not in ("ct2", "onnx", "marian", "argos") or not out:
        raise OptionError(
            f"the target is '{target}'; "
            "it must be ct2:FOLDER, onnx:FOLDER, marian:FOLDER or argos:FILE"
        )
    check_place(Path(out))
    if kind == "ct2":
        from dragoman.formats import export_ctranslate2

        export_ctranslate2.export(Path(model), Path(out), compute_type, say)
    elif kind == "onnx":
        from dragoman.formats import export_onnx

        export_onnx.export(Path(model), Path(out), compute_type, say)
    elif kind == "marian":
        from dragoman.formats import export_marian

        export_marian.export(Path(model), Path(out), say)
    else:
        from dragoman.formats import export_argos

        export_argos.export(Path(model), Path(out), say)
