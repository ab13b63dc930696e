"""Commands of the command line, which takes them in, for models that read: `fill`, `embed` and
`classify`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from dragoman.errors import OptionError

if TYPE_CHECKING:
    from dragoman.tasks.encode import Array

commands = typer.Typer()
Model = Annotated[
    Path,
    typer.Option("--model", "-m", help="A folder that `dragoman train --task` or `convert` made."),
]
Text = Annotated[str, typer.Argument(help="A sentence with [MASK] in the place of words.")]
Files = Annotated[
    list[Path] | None,
    typer.Argument(help="Text, a sentence a line; without files, standard input."),
]
Items = Annotated[list[str], typer.Argument(help="Texts, or for a model of images, image files.")]
Out = Annotated[Path | None, typer.Option(help="An .npy file to write, a row for each line.")]
First = Annotated[
    bool, typer.Option("--first", help="Take the first position rather than the mean over all.")
]
Count = Annotated[int, typer.Option(min=1, help="How many guesses.")]
Jsonl = Annotated[bool, typer.Option("--jsonl", help="Print a line of JSON for each.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]


@commands.command()
def fill(
    text: Text, model: Model, count: Count = 5, jsonl: Jsonl = False, device: Device = "auto"
) -> None:
    """Guess the words that a [MASK] stands for.

    Example: `dragoman fill -m models/bert "The cat sat on the [MASK]."`
    """
    from dragoman.tasks.encode import Encoder

    found = Encoder.load(model, device).fill(text, count)
    if jsonl:
        print(json.dumps({"text": found.text, "masks": found.masks}, ensure_ascii=False))
        return
    print(found.text)
    for guesses in found.masks:
        print("", *(f"{chance:.4f}  {word}" for word, chance in guesses), sep="\n")


@commands.command()
def embed(
    model: Model,
    files: Files = None,
    out: Out = None,
    first: First = False,
    jsonl: Jsonl = False,
    device: Device = "auto",
) -> None:
    """Make a vector of length 1 of each line; lines that are alike to the model have a scalar
    product near 1.

    Example: `dragoman embed -m models/bert sentences.txt --out vectors.npy`
    """
    from dragoman.tasks.encode import Encoder
    from dragoman.tasks.lines import read_chunks

    if (out is None) != jsonl:
        raise OptionError(
            "vectors go to a file or to standard output; name --out FILE.npy or --jsonl, one of them"
        )
    encoder = Encoder.load(model, device)
    with ExitStack() as stack:
        opened: list[IO[bytes]] = [stack.enter_context(open(file, "rb")) for file in files or ()]
        chunks = (
            chunk
            for source in opened or [sys.stdin.buffer]
            for chunk in read_chunks(source, str(source.name))
        )
        found = (encoder.embed(chunk.lines, first) for chunk in chunks)
        if out is not None:
            _write_rows(out, found, encoder.config.d_model)
        for vectors in found:  # all that are left
            print("\n".join(map(json.dumps, vectors.tolist())), flush=True)


@commands.command()
def classify(
    items: Items, model: Model, count: Count = 1, jsonl: Jsonl = False, device: Device = "auto"
) -> None:
    """Say which label a text or an image has, and how likely that is.

    Example: `dragoman classify -m models/digits one.png two.png`
    """
    from dragoman.tasks.encode import Encoder

    for item, found in zip(items, Encoder.load(model, device).classify(items), strict=True):
        plain = "\t".join([item, *(f"{label} {chance:.4f}" for label, chance in found[:count])])
        print(
            json.dumps({"item": item, "labels": dict(found[:count])}, ensure_ascii=False)
            if jsonl
            else plain
        )


def _write_rows(out: Path, found: Iterator[Array], width: int) -> None:
    """An .npy file, whose header leaves room for the number of rows to grow; written aside,
    there once it is whole."""
    from numpy.lib.format import write_array_header_1_0

    from dragoman.folder.files import output

    rows = 0
    layout = {"descr": "<f4", "fortran_order": False}
    with output(out) as new, open(new, "wb") as file:
        write_array_header_1_0(file, layout | {"shape": (0, width)})
        for vectors in found:
            rows += len(vectors)
            file.write(vectors.tobytes())
        file.seek(0)
        write_array_header_1_0(file, layout | {"shape": (rows, width)})
