"""A command of the command line, which takes it in: `generate` text with a language model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.config import describe
from dragoman.decoding.search_options import SearchOptions

commands = typer.Typer()
_HELP = {one.name: f"{one.help[0].upper()}{one.help[1:]}." for one in describe(SearchOptions)}


@commands.command()
def generate(
    model: Annotated[
        Path,
        typer.Option(
            "--model", "-m", help="A model folder, as `dragoman train --task lm` makes it."
        ),
    ],
    prompt: Annotated[
        str | None,
        typer.Argument(help="What to go on from; without it, each line of standard input."),
    ] = None,
    max_tokens: Annotated[int, typer.Option(help="Tokens that are written at most.")] = 200,
    beam: Annotated[int, typer.Option(help=_HELP["beam"])] = 1,
    alpha: Annotated[float, typer.Option(help=_HELP["alpha"])] = SearchOptions.alpha,
    nbest: Annotated[
        int, typer.Option(help="Texts for each prompt, at most the beam.")
    ] = SearchOptions.nbest,
    sample: Annotated[bool, typer.Option("--sample", help=_HELP["sample"])] = SearchOptions.sample,
    temperature: Annotated[
        float, typer.Option(help=_HELP["temperature"])
    ] = SearchOptions.temperature,
    top_k: Annotated[int, typer.Option(help=_HELP["top_k"])] = SearchOptions.top_k,
    top_p: Annotated[float, typer.Option(help=_HELP["top_p"])] = SearchOptions.top_p,
    seed: Annotated[int, typer.Option(help=_HELP["seed"])] = SearchOptions.seed,
    min_length: Annotated[int, typer.Option(help=_HELP["min_length"])] = SearchOptions.min_length,
    no_repeat_ngram: Annotated[
        int, typer.Option(help=_HELP["no_repeat_ngram"])
    ] = SearchOptions.no_repeat_ngram,
    jsonl: Annotated[
        bool,
        typer.Option("--jsonl", help="A JSON object a line: prompt, text, score, alternatives."),
    ] = False,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="On a CPU, with weights as they are rather than in 8 bits."),
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
) -> None:
    """Write on from a text with a language model; what is drawn or taken greedily is shown as it is
    written.

    With --nbest a prompt becomes so many lines of its number, the score and the text, with tabs
    between. A model sees so many tokens and no more: where a text grows longer, its older half is
    forgotten; a search with --beam has to fit.

    Example: `dragoman generate -m models/lm "Once upon a time" --sample --temperature 0.8 --top-p
    0.9`
    """
    draws: dict[str, Any] = {
        "sample": sample,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
    }
    options = SearchOptions(
        beam, alpha, nbest, min_length, no_repeat_ngram=no_repeat_ngram, **draws
    )
    from dragoman.tasks.lines import read_chunks
    from dragoman.tasks.write import Writer

    writer, chunks = (
        Writer.load(model, device, exact),
        read_chunks(sys.stdin.buffer, "standard input", 1),
    )
    for number, line in enumerate(
        [prompt] if prompt is not None else (chunk.lines[0] for chunk in chunks), 1
    ):
        if not jsonl and nbest == 1:
            for part in writer.stream(line, options, max_tokens):
                print(line + part, end="", flush=True)
                line = ""
            print(line, flush=True)
            continue
        found = [
            {"text": text, "score": score}
            for text, score in writer.alternatives(line, options, max_tokens)
        ]
        if jsonl:
            print(
                json.dumps(
                    {"prompt": line, **found[0], "alternatives": found[1:]}, ensure_ascii=False
                ),
                flush=True,
            )
        for one in found if not jsonl else ():
            print(
                f"{number}\t{one['score']}\t{' '.join((line + str(one['text'])).split())}",
                flush=True,
            )
