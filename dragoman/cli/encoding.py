"""The `fill`, `embed`, `classify` and `label` commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from dragoman.cli.arguments import Device, with_flags
from dragoman.cli.terminal import hint_at_typing, print_json
from dragoman.errors import OptionError

if TYPE_CHECKING:
    from dragoman.tasks.encode import Array

commands = typer.Typer()
Model = Annotated[
    Path,
    typer.Option(
        "--model", "-m", help="Model folder that `dragoman train --task` or `convert` made."
    ),
]
Count = Annotated[int, typer.Option(min=1, help="How many guesses to print.")]
Jsonl = Annotated[bool, typer.Option("--jsonl", help="Print a JSON object per line.")]


@dataclass(frozen=True)
class Vectors:
    """How vectors are made, and where they go."""

    out: Annotated[
        Path | None, typer.Option(help="An .npy file to write, with a row per line.")
    ] = None
    first: Annotated[
        bool, typer.Option("--first", help="Use the first position instead of the mean over all.")
    ] = False
    jsonl: Jsonl = False


@commands.command(rich_help_panel="Other tasks")
def fill(
    text: Annotated[str, typer.Argument(help="A sentence with [MASK] in place of words.")],
    model: Model,
    count: Count = 5,
    jsonl: Jsonl = False,
    device: Device = "auto",
) -> None:
    """Guess the words that a [MASK] stands for.

    Example: `dragoman fill -m models/bert "The cat sat on the [MASK]."`
    """
    from dragoman.tasks.encode import TextEncoder

    filled = TextEncoder.load(model, device).fill(text, count)
    if jsonl:
        print_json({"text": filled.text, "masks": filled.masks})
        return
    print(filled.text)
    for guesses in filled.masks:
        print()
        for word, chance in guesses:
            print(f"{chance:.4f}  {word}")


@commands.command(rich_help_panel="Other tasks")
@with_flags
def embed(
    model: Model,
    vectors: Vectors,
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Text files with a sentence per line. Default: standard input."),
    ] = None,
    device: Device = "auto",
) -> None:
    """Turn each line into a vector of length 1. Lines with a similar meaning have a dot product
    near 1.

    Example: `dragoman embed -m models/bert sentences.txt --out vectors.npy`
    """
    from dragoman.folder.files import check_file_place
    from dragoman.tasks.encode import TextEncoder
    from dragoman.tasks.lines import read_chunks

    if (vectors.out is None) != vectors.jsonl:
        raise OptionError("name --out FILE.npy or --jsonl, and not both")
    if vectors.out is not None:
        check_file_place(vectors.out)
    encoder = TextEncoder.load(model, device)
    if not files:
        hint_at_typing()
    with ExitStack() as stack:
        sources: list[IO[bytes]] = [stack.enter_context(open(file, "rb")) for file in files or ()]

        def embedded() -> Iterator[Array]:
            for source in sources or [sys.stdin.buffer]:
                for chunk in read_chunks(source, str(source.name)):
                    yield encoder.embed(chunk.lines, vectors.first)

        if vectors.out is not None:
            _write_rows(vectors.out, embedded(), encoder.config.d_model)
            return
        for rows in embedded():
            for row in rows.tolist():
                print_json(row)


@commands.command(rich_help_panel="Other tasks")
def classify(
    model: Model,
    items: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts; for an image model, image files. Default: lines of standard input."
        ),
    ] = None,
    count: Count = 1,
    jsonl: Jsonl = False,
    device: Device = "auto",
) -> None:
    """Name the label of a text, of a pair of texts or of an image, with its probability. A tab
    separates the two texts of a pair.

    Example: `dragoman classify -m models/reviews "A film to see twice."`, or
    `dragoman classify -m models/entailment < pairs.tsv`
    """
    from dragoman.tasks.encode import TextEncoder

    encoder = TextEncoder.load(model, device)
    for some in [items] if items else _lines():
        for item, labels in zip(some, encoder.classify(some), strict=True):
            best = labels[:count]
            if jsonl:
                print_json({"item": item, "labels": dict(best)})
            else:
                columns = [f"{label} {chance:.4f}" for label, chance in best]
                print("\t".join([item, *columns]))


@dataclass(frozen=True)
class WordLabels:
    """How texts are cut into words, and what is printed of their labels."""

    tokenized: Annotated[
        bool,
        typer.Option("--tokenized", help="The words are separated by spaces already."),
    ] = False
    spans: Annotated[
        bool,
        typer.Option("--spans", help="Print the spans that labels such as B-PER form instead."),
    ] = False
    jsonl: Jsonl = False


@commands.command(rich_help_panel="Other tasks")
@with_flags
def label(
    model: Model,
    words: WordLabels,
    texts: Annotated[
        list[str] | None, typer.Argument(help="Texts. Default: lines of standard input.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Label the words of texts: names, parts of speech, or what the model was trained to tell.
    Each line of output has a word, a tab and its label; an empty line ends a text.

    Example: `dragoman label -m models/ner "Ada Lovelace lived in London."`, or
    `dragoman label -m models/ner --jsonl < texts.txt`
    """
    from dataclasses import asdict

    from dragoman.tasks.label_words import Labeller

    labeller = Labeller.load(model, device)
    for some in [texts] if texts else _lines():
        for one in labeller.label(some, words.tokenized):
            if words.jsonl:
                print_json(asdict(one))
                continue
            parts = one.spans if words.spans else one.words
            lines = [f"{part.text}\t{part.label}\n" for part in parts]
            print("".join(lines), flush=True)


def _lines() -> Iterator[list[str]]:
    """Lines of standard input, some at a time."""
    from dragoman.tasks.lines import read_chunks

    hint_at_typing()
    for chunk in read_chunks(sys.stdin.buffer, "standard input"):
        yield chunk.lines


def _write_rows(out: Path, found: Iterator[Array], width: int) -> None:
    """Writes an .npy file, whose header leaves space for the number of rows to grow, under another
    name, and renames it once it is whole."""
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
