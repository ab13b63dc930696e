"""The command line: one function per command. Turns errors into a sentence and an exit code.

A command imports what it needs when it runs, so that `--help` is instant.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from dragoman import __version__
from dragoman.errors import DragomanError, OptionError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Two aligned text files become a translator that you own.",
)

Model = Annotated[Path, typer.Option("--model", "-m", help="A model folder, as `dragoman train` makes it.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]


def main() -> None:
    """What the command `dragoman` runs."""
    # Text comes and goes in UTF-8, whatever the terminal's settings say.
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = app(_spread(sys.argv[1:]), standalone_mode=False)
    except DragomanError as error:
        sys.exit(_fail(str(error), 2))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(_fail("interrupted", 130))
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except Exception as error:
        if hasattr(error, "format_message"):  # click's own: an unknown flag, a missing argument
            sys.exit(_fail(error.format_message(), 2) if error.format_message() else 2)  # empty: it has printed the help
        if isinstance(error, OSError):
            sys.exit(_fail(f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}", 2))
        raise
    sys.exit(code if isinstance(code, int) else 0)


@app.callback(invoke_without_command=True)
def top(version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False) -> None:
    """Two aligned text files become a translator that you own."""
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
def check(
    files: Annotated[list[str], typer.Argument(help="Two aligned files, or .tsv, .tmx and .jsonl files; several are joined.")],
    valid: Annotated[list[str] | None, typer.Option(help="Validation files, one or two.")] = None,
    test: Annotated[list[str] | None, typer.Option(help="Test files; the source side alone will do.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as one JSON object.")] = False,
    set_: Annotated[list[str] | None, typer.Option("--set", help="An option of [data], such as max_ratio=4.")] = None,
) -> None:
    """Say what is wrong with training text before training does.

    Exits with 1 where training would refuse the text, else with 0.

    Example: `dragoman check train.en train.de --valid valid.en valid.de --test test.en test.de`
    """
    from dragoman.config import assignments, build, merge
    from dragoman.data.check import check as run_check
    from dragoman.data.options import DataOptions

    named = {"train": files, "valid": valid or [], "test": test or []}
    report = run_check(build(DataOptions, merge(assignments(DataOptions, set_ or []), named)))
    print(json.dumps(report.as_dict(), ensure_ascii=False, indent=1) if as_json else report.text(), end="\n" if as_json else "")
    if report.problems:
        raise typer.Exit(1)


@app.command()
def train(
    files: Annotated[list[str] | None, typer.Argument(help="Two aligned files, or .tsv, .tmx and .jsonl files.")] = None,
    out: Annotated[Path | None, typer.Option(help="The model folder to make.")] = None,
    valid: Annotated[
        list[str] | None, typer.Option(help="Validation files; without them a part of the text is set aside.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run of this folder.")] = None,
    config: Annotated[Path | None, typer.Option(help="A recipe: a TOML file of options.")] = None,
    preset: Annotated[str | None, typer.Option(help="auto (looks at text and device), tiny, small, base or big.")] = None,
    steps: Annotated[int | None, typer.Option(help="Optimiser steps, at most.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Minutes of training, at most.")] = None,
    seed: Annotated[int | None, typer.Option(help="Everything random follows from it.")] = None,
    save_every: Annotated[int | None, typer.Option(help="Steps between checkpoints; each is validated.")] = None,
    vocab_size: Annotated[int | None, typer.Option(help="Pieces of the vocabulary.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Any other option, such as model.dropout=0.3.")] = None,
    options: Annotated[
        bool, typer.Option("--options", help="List every option that --set and recipes know, and leave.")
    ] = False,
) -> None:
    """Train a translator on two aligned text files.

    The folder holds the best model so far from the first checkpoint on. Stop with Ctrl-C at any time: the run is saved and goes
    on with --resume. Under `torchrun` the same command uses many GPUs.

    Example: `dragoman train train.en train.de --valid valid.en valid.de --out models/en-de`
    """
    from dragoman.config import assignments, load_toml, merge
    from dragoman.training.options import Options

    if options:
        _list_options(Options)
        return
    training = {"steps": steps, "minutes": minutes, "seed": seed, "save_every": save_every, "device": device}
    flags: dict[str, Any] = {
        "preset": preset,
        "data": _given({"train": files, "valid": valid}),
        "tokenizer": _given({"vocab_size": vocab_size}),
        "training": _given(training),
    }
    named = merge(load_toml(config) if config else {}, assignments(Options, set_ or []), _given(flags))

    def say(sentence: str) -> None:
        print(sentence, file=sys.stderr, flush=True)

    from dragoman.training import run

    if resume is not None:
        if out is not None:
            raise OptionError(f"--resume goes on in {resume}; leave --out away")
        reason = run.resume(resume, named, say)
    else:
        if out is None:
            raise OptionError("--out is missing; name the model folder to make, such as --out models/en-de")
        reason = run.start(out, named, say)
    raise typer.Exit({"SIGINT": 130, "SIGTERM": 143}.get(reason, 0))


@app.command()
def translate(
    model: Model,
    file: Annotated[Path | None, typer.Argument(help="A text file; without it, standard input.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write; without it, standard output.")] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")] = 4,
    alpha: Annotated[float, typer.Option(help="Length penalty; larger favours longer translations.")] = 0.6,
    device: Device = "auto",
) -> None:
    """Translate line by line, in order; an empty line stays empty.

    Example: `dragoman translate -m models/en-de < in.en > out.de`
    """
    from dragoman.decoding.options import SearchOptions
    from dragoman.translator import CHUNK, Translator

    options = SearchOptions(beam=beam, alpha=alpha)
    translator = Translator.load(model, device)
    with ExitStack() as stack:
        source = stack.enter_context(open(file, "rb")) if file else sys.stdin.buffer
        sink = stack.enter_context(open(out, "w", encoding="utf-8", newline="\n")) if out else sys.stdout
        at_once = 1 if source.isatty() else CHUNK  # whoever types a line waits for its translation
        try:
            for translation in translator.stream(_lines(source, str(file or "standard input")), options, at_once):
                sink.write(translation.text + "\n")
                sink.flush()
        except BrokenPipeError:
            # Whoever read our output has gone; there is nobody left to tell.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(141) from None


@app.command()
def evaluate(
    model: Model,
    files: Annotated[list[str], typer.Argument(help="Source and reference file, or one .tsv, .tmx or .jsonl file.")],
    against: Annotated[
        Path | None, typer.Option(help="Another model folder, or a file of translations, to compare with.")
    ] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")] = 4,
    alpha: Annotated[float, typer.Option(help="Length penalty; larger favours longer translations.")] = 0.6,
    lowercase: Annotated[bool, typer.Option(help="Score without regard to case.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as one JSON object.")] = False,
    device: Device = "auto",
) -> None:
    """Translate a test set and score it: BLEU and chrF with signature and 95% interval.

    Example: `dragoman evaluate -m models/en-de test.en test.de --against models/en-de-old`
    """
    from dragoman.decoding.options import SearchOptions
    from dragoman.evaluate import compare, read_test_set, score, tokenize_for
    from dragoman.translator import Translator

    options = SearchOptions(beam=beam, alpha=alpha)
    translator = Translator.load(model, device)
    about = translator.description
    sources, references = read_test_set(files, about.source_language, about.target_language)
    outputs = [translation.text for translation in translator.translate(sources, options)]
    tokenize = tokenize_for(about.target_language)
    scores = score(outputs, references, tokenize=tokenize, lowercase=lowercase)
    result, lines = {"model": str(model), "sentences": len(outputs), **scores.as_dict()}, scores.lines()
    if against is not None:
        if against.is_dir():
            others = [translation.text for translation in Translator.load(against, device).translate(sources, options)]
        else:
            with open(against, "rb") as file:
                others = list(_lines(file, str(against)))
        verdict = compare(outputs, others, references, tokenize=tokenize, lowercase=lowercase)
        result["against"] = {"name": str(against), **verdict.as_dict()}
        lines += verdict.lines()
    print(json.dumps(result, ensure_ascii=False) if as_json else "\n".join(lines))


def _spread(words: list[str]) -> list[str]:
    """`--valid a b` as `--valid a --valid b`: an option of several files takes all words up to the next option."""
    spread: list[str] = []
    taking = ""
    for word, following in zip(words, [*words, "-"][1:], strict=True):
        if word.startswith("-"):
            taking = word if word in ("--valid", "--test") else ""
            if taking and following.startswith("-"):
                raise OptionError(f"{word} needs a file or two behind it")
            spread += [] if taking else [word]
        else:
            spread += [taking, word] if taking else [word]
    return spread


def _lines(file: IO[bytes], name: str) -> Iterator[str]:
    """Lines of UTF-8 text without their ends; only \\n ends a line."""
    from dragoman.errors import InputError

    for number, line in enumerate(file, 1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise InputError(
                f"{name}, line {number:,} is not UTF-8; convert the file first, as in: iconv -f LATIN1 -t UTF-8"
            ) from None


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """Without what the user did not name."""
    return {key: value for key, value in values.items() if value not in (None, {}, [])}


def _list_options(cls: type) -> None:
    from dragoman.config import describe

    for name, kind, default, text in describe(cls):
        print(f"{name:<28} {text or kind} (default: {json.dumps(default)})")


def _fail(sentence: str, code: int) -> int:
    print(f"error: {sentence}", file=sys.stderr)
    return code
