"""The `generate` command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.arguments import Device, Flags, with_flags
from dragoman.cli.terminal import hint_at_typing, print_json
from dragoman.decoding.search_options import SearchOptions

if TYPE_CHECKING:
    from dragoman.tasks.write import Writer

commands = typer.Typer()
_SEARCH = Flags(
    only=(
        "beam",
        "alpha",
        "nbest",
        "sample",
        "temperature",
        "top_k",
        "top_p",
        "seed",
        "min_length",
        "no_repeat_ngram",
    ),
    defaults={"beam": 1},
)


@dataclass(frozen=True)
class LanguageModel:
    """What writes, and on what."""

    model: Annotated[
        Path,
        typer.Option("--model", "-m", help="Model folder that `dragoman train --task lm` made."),
    ]
    exact: Annotated[
        bool, typer.Option("--exact", help="On a CPU: use the weights as they are, not in 8 bits.")
    ] = False
    device: Device = "auto"


@dataclass(frozen=True)
class Output:
    """How much is written, and how it is printed."""

    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum tokens to write.")] = 200
    jsonl: Annotated[
        bool,
        typer.Option(
            "--jsonl", help="Print a JSON object per prompt: prompt, text, score, alternatives."
        ),
    ] = False


@commands.command(rich_help_panel="Other tasks")
@with_flags
def generate(
    language_model: LanguageModel,
    options: Annotated[SearchOptions, _SEARCH],
    output: Output,
    prompt: Annotated[
        str | None, typer.Argument(help="Text to continue. Default: each line of standard input.")
    ] = None,
) -> None:
    """Continue a text with a language model. Sampled and greedy text is printed as it is written.

    `--nbest N` prints N lines per prompt: its number, the score and the text, separated by tabs.
    When the text outgrows the model's context, its older half is dropped. With --beam, prompt and
    output must fit the context.

    Example: `dragoman generate -m models/lm "Once upon a time" --sample --temperature 0.8 --top-p
    0.9`
    """
    from dragoman.tasks.write import Writer

    writer = Writer.load(language_model.model, language_model.device, language_model.exact)
    if prompt is None:
        hint_at_typing()
    prompts = _lines() if prompt is None else iter([prompt])
    for number, line in enumerate(prompts, 1):
        if output.jsonl or options.nbest > 1:
            _print_alternatives(writer, number, line, options, output)
        else:
            _print_stream(writer, line, options, output.max_tokens)


def _lines() -> Iterator[str]:
    """The lines of standard input, one at a time."""
    from dragoman.tasks.lines import read_chunks

    for chunk in read_chunks(sys.stdin.buffer, "standard input", repeat(1)):
        yield chunk.lines[0]


def _print_stream(writer: Writer, prompt: str, options: SearchOptions, max_tokens: int) -> None:
    written = False
    for part in writer.stream(prompt, options, max_tokens):
        print(part if written else prompt + part, end="", flush=True)
        written = True
    print("" if written else prompt, flush=True)


def _print_alternatives(
    writer: Writer, number: int, prompt: str, options: SearchOptions, output: Output
) -> None:
    alternatives = writer.alternatives(prompt, options, output.max_tokens)
    if output.jsonl:
        values = [{"text": text, "score": score} for text, score in alternatives]
        print_json({"prompt": prompt, **values[0], "alternatives": values[1:]})
        return
    for text, score in alternatives:
        one_line = " ".join((prompt + text).split())
        print(f"{number}\t{score}\t{one_line}", flush=True)
