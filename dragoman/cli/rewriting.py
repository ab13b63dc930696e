"""The `rewrite`, `ask` and `summarise` commands, and the part of `evaluate` that is about text to
text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.arguments import Flags, Machine, with_flags
from dragoman.cli.terminal import lines_of, print_json, say
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import InputError

if TYPE_CHECKING:
    from dragoman.cli.evaluating import TextTest
    from dragoman.tasks.json_output import JsonOutput
    from dragoman.tasks.text_to_text import TextToText

commands = typer.Typer()
_LARGEST_TEXT = 2**24  # bytes of a context or of a text to summarise
_SEARCH = Flags(only=("beam", "alpha", "min_length", "max_length", "no_repeat_ngram"))
_SEARCH_OF_LINES = Flags(only=(*_SEARCH.only, "nbest"))
Model = Annotated[
    Path,
    typer.Option(
        "--model",
        "-m",
        help="Model folder of `dragoman train --task text`, or a converted T5 or BART.",
    ),
]
Schema = Annotated[
    Path | None,
    typer.Option(
        "--json-schema", help="Write JSON of this schema: a file with a part of JSON Schema."
    ),
]
Prompt = Annotated[
    str, typer.Option(help="Template to use instead of the model's own; see the documentation.")
]


@dataclass(frozen=True)
class TextModel:
    """What writes, and the form of what it writes."""

    model: Model
    json_schema: Schema = None


@dataclass(frozen=True)
class ModelOfLines(TextModel):
    """What writes a line for each line."""

    jsonl: Annotated[
        bool,
        typer.Option(
            "--jsonl", "--json", help="Print a JSON object per line: text, score, alternatives."
        ),
    ] = False


@dataclass(frozen=True)
class ModelOfOneText(TextModel):
    """What writes one text."""

    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, with the score.")
    ] = False


@commands.command(rich_help_panel="Other tasks")
@with_flags
def rewrite(
    text_model: ModelOfLines,
    options: Annotated[SearchOptions, _SEARCH_OF_LINES],
    machine: Machine,
    file: Annotated[
        Path | None, typer.Argument(help="Text file, one text a line. Default: standard input.")
    ] = None,
) -> None:
    """Write a line for each line with a model for text to text.

    An empty line stays empty. The end of a line that is longer than the model reads is left out,
    and a message tells of it. `--nbest N` prints N lines per input: its number, the score and the
    text, separated by tabs.

    Example: `dragoman rewrite -m models/records < records.txt`, or
    `dragoman rewrite -m models/records records.txt --json-schema record.json`
    """
    model, output = _load(text_model, machine)
    for number, one in enumerate(model.stream(lines_of(file), options, output), 1):
        if one.left_out:
            say(
                f"line {number:,}: {one.tokens:,} tokens, and the model reads {model.limit:,}; "
                "the rest is left out"
            )
        if text_model.jsonl:
            others = [{"text": text, "score": score} for text, score in one.others]
            print_json({"text": one.text, "score": one.score, "alternatives": others})
        elif options.nbest > 1:
            for text, score in [(one.text, one.score), *one.others]:
                print(f"{number}\t{score:.4f}\t{_line(text)}", flush=True)
        else:
            print(_line(one.text), flush=True)


@dataclass(frozen=True)
class Question:
    """A question, what it is about, and how both are put to a model."""

    question: Annotated[str, typer.Argument(help="The question.")]
    context: Annotated[Path, typer.Option(help="Text file that holds the answer.")]
    prompt: Prompt = ""


@commands.command(rich_help_panel="Other tasks")
@with_flags
def ask(
    asked: Question,
    text_model: ModelOfOneText,
    options: Annotated[SearchOptions, _SEARCH],
    machine: Machine,
) -> None:
    """Answer a question about a text.

    A text that is longer than the model reads is read in windows that overlap, and the answer with
    the best score counts. `--json` also prints which window it came from.

    Example: `dragoman ask --context town.txt "Who founded Aldern?" -m models/facts`
    """
    text = _text(asked.context)
    model, output = _load(text_model, machine)
    answer = model.ask(asked.question, text, options, asked.prompt, output)
    if text_model.as_json:
        print_json(
            {
                "question": asked.question,
                "answer": answer.text,
                "score": answer.score,
                "window": answer.window,
                "windows": answer.windows,
                "passage": answer.passage,
            }
        )
    else:
        print(_line(answer.text))


@commands.command(rich_help_panel="Other tasks")
@with_flags
def summarise(
    file: Annotated[Path, typer.Argument(help="Text file to summarise.")],
    text_model: ModelOfOneText,
    options: Annotated[SearchOptions, _SEARCH],
    machine: Machine,
    prompt: Prompt = "",
) -> None:
    """Summarise a text.

    A text that is longer than the model reads is read in windows that overlap; their summaries are
    joined.

    Example: `dragoman summarise report.txt -m models/bart-cnn`
    """
    text = _text(file)
    model, output = _load(text_model, machine)
    summary = model.summarise(text, options, prompt, output)
    if text_model.as_json:
        parts = [{"text": part.text, "score": part.score} for part in summary.parts]
        print_json({"summary": summary.text, "score": summary.score, "parts": parts})
    else:
        print(_line(summary.text))


def evaluate_texts(test: TextTest, options: SearchOptions, machine: Machine, as_json: bool) -> None:
    """Score the outputs of a model on a test set, and print the scores; compare them with those of
    another model or with the lines of a file if there is one."""
    from dragoman.tasks.evaluate import read_test_set
    from dragoman.tasks.text_scores import compare_texts, score_texts
    from dragoman.tasks.text_to_text import TextToText

    model = TextToText.load(test.folder, machine.device, machine.runtime)
    sources, references = read_test_set(test.files, "", "")
    others: list[str] = []
    if test.against is not None and not test.against.is_dir():
        others = list(lines_of(test.against))
    written = model.write(sources, options)
    outputs = [one.text for one in written]
    scores = score_texts(outputs, references)
    result: dict[str, Any] = {"model": str(test.folder), **scores.as_dict()}
    lines = scores.in_lines()
    cut = sum(one.left_out > 0 for one in written)
    result["cut"] = cut
    if cut:
        lines.append(f"{cut:,} sources are longer than the model reads; their ends were left out")
    if test.against is not None:
        if test.against.is_dir():
            other = TextToText.load(test.against, machine.device, machine.runtime)
            others = [one.text for one in other.write(sources, options)]
        comparisons = compare_texts(outputs, others, references)
        result["against"] = [comparison.as_dict() for comparison in comparisons]
        lines += [comparison.verdict for comparison in comparisons]
    if as_json:
        print_json(result)
    else:
        print("\n".join(lines))


def _load(text_model: TextModel, machine: Machine) -> tuple[TextToText, JsonOutput | None]:
    """The model, and what holds its outputs to a schema if one is named."""
    from dragoman.tasks.json_output import JsonOutput
    from dragoman.tasks.text_to_text import TextToText
    from dragoman.text.json_schema import load_schema

    schema = None
    if text_model.json_schema is not None:
        schema = load_schema(text_model.json_schema)
    model = TextToText.load(text_model.model, machine.device, machine.runtime)
    output = None if schema is None else JsonOutput(schema, model.tokenizer)
    return model, output


def _text(file: Path) -> str:
    """The text of a file, which has some."""
    from dragoman.folder.files import read_bounded

    raw = read_bounded(file, _LARGEST_TEXT)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(
            f"{file} is not UTF-8; convert it first: iconv -f LATIN1 (or UTF-16) -t UTF-8"
        ) from None
    if not text.strip():
        raise InputError(f"{file} is empty; name a file with text")
    return text


def _line(text: str) -> str:
    """The text on one line."""
    return " ".join(text.split())
