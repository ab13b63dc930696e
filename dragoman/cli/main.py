"""The command line: one function per command. Turns errors into a sentence and an exit code.

A command imports what it needs when it runs, so that `--help` is instant.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman import __version__
from dragoman.cli import converting as cli_convert
from dragoman.cli import encoding as cli_encode
from dragoman.cli import inspecting as cli_inspect
from dragoman.cli import serving as cli_serve
from dragoman.cli import transcribing as cli_transcribe
from dragoman.cli import writing as cli_generate
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import DragomanError, OptionError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Two aligned text files become a translator that you own.",
)

Model = Annotated[
    Path, typer.Option("--model", "-m", help="A model folder, as `dragoman train` makes it.")
]
Chosen = Annotated[
    Path | None,
    typer.Option("--model", "-m", help="A model folder; without it, what came for --to."),
]
From = Annotated[
    str | None, typer.Option("--from", help="The source language, where --to has several.")
]
To = Annotated[
    str | None,
    typer.Option(help="The target language of a model that came with dragoman, such as de."),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
Runtime = Annotated[str, typer.Option(help="auto (the fastest here), torch, int8 or ctranslate2.")]
TestSet = Annotated[
    list[str], typer.Argument(help="Source and reference file, or one .tsv, .tmx or .jsonl file.")
]
Terms = Annotated[
    Path | None,
    typer.Option("--glossary", help="Terms, a line each: source, tab, target, tab, other form..."),
]


def _search(name: str) -> Any:
    """The flag of a search option, whose help is what the option says of itself."""
    from dragoman.config import describe

    text = next(one.help for one in describe(SearchOptions) if one.name == name)
    return typer.Option(f"--{name.replace('_', '-')}", help=f"{text[0].upper()}{text[1:]}.")


Beam = Annotated[int, _search("beam")]
Alpha = Annotated[float, _search("alpha")]


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
            sys.exit(
                _fail(error.format_message(), 2) if error.format_message() else 2
            )  # empty: it has printed the help
        if isinstance(error, OSError):
            sys.exit(
                _fail(
                    f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}", 2
                )
            )
        raise
    sys.exit(code if isinstance(code, int) else 0)


@app.callback(invoke_without_command=True)
def top(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.")
    ] = False,
) -> None:
    """Two aligned text files become a translator that you own."""
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
def check(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Two aligned files, or .tsv, .tmx and .jsonl files; several are joined."
        ),
    ],
    valid: Annotated[list[str] | None, typer.Option(help="Validation files, one or two.")] = None,
    test: Annotated[
        list[str] | None, typer.Option(help="Test files; the source side alone will do.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the findings as one JSON object.")
    ] = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="An option of [data], such as max_ratio=4.")
    ] = None,
) -> None:
    """Say what is wrong with training text before training does.

    Exits with 1 where training would refuse the text, else with 0.

    Example: `dragoman check train.en train.de --valid valid.en valid.de --test test.en test.de`
    """
    from dragoman.config import assignments, build, merge
    from dragoman.data.check import check as run_check
    from dragoman.data.data_options import DataOptions

    named = {"train": files, "valid": valid or [], "test": test or []}
    report = run_check(build(DataOptions, merge(assignments(DataOptions, set_ or []), named)))
    print(
        json.dumps(report.as_dict(), ensure_ascii=False, indent=1) if as_json else report.text(),
        end="\n" if as_json else "",
    )
    if report.problems:
        raise typer.Exit(1)


@app.command()
def train(
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Two aligned files, a .tsv, .tmx, .jsonl, or for --task."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="translate, lm, mlm, class (label, tab, text) or image (folders)."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The model folder to make.")] = None,
    valid: Annotated[
        list[str] | None,
        typer.Option(help="Validation files; without them a part of the text is set aside."),
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run of this folder.")] = None,
    continue_: Annotated[
        Path | None, typer.Option("--continue", help="Start from the model of this folder.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A recipe: a TOML file of options.")] = None,
    preset: Annotated[
        str | None, typer.Option(help="auto (looks at text and device), tiny, small, base or big.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Optimiser steps, at most.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Minutes of training, at most.")] = None,
    seed: Annotated[int | None, typer.Option(help="Everything random follows from it.")] = None,
    save_every: Annotated[
        int | None, typer.Option(help="Steps between checkpoints; each is validated.")
    ] = None,
    vocab_size: Annotated[int | None, typer.Option(help="Pieces of the vocabulary.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any other option, such as model.dropout=0.3.")
    ] = None,
    options: Annotated[
        bool,
        typer.Option("--options", help="List every option that --set and recipes know, and leave."),
    ] = False,
) -> None:
    """Train a translator on two aligned text files; or, by --task, a language model, an encoder or
    a classifier.

    The folder holds the best model so far from the first checkpoint on. Stop with Ctrl-C at any
    time: the run is saved and goes on with --resume. Under `torchrun` the same command uses many
    GPUs.

    Example: `dragoman train train.en train.de --valid valid.en valid.de --out models/en-de`,
    or `dragoman train --task lm text.txt --out models/lm`
    """
    from dragoman.config import assignments, load_toml, merge
    from dragoman.training.training_options import Options

    if options:
        _list_options(Options)
        return
    training = {
        "steps": steps,
        "minutes": minutes,
        "seed": seed,
        "save_every": save_every,
        "device": device,
    }
    flags: dict[str, Any] = {
        "task": task,
        "preset": preset,
        "data": _given({"train": files, "valid": valid}),
        "tokenizer": _given({"vocab_size": vocab_size}),
        "training": _given(training),
    }
    named = merge(
        load_toml(config) if config else {}, assignments(Options, set_ or []), _given(flags)
    )

    from dragoman.training import run

    if resume is not None:
        if out is not None or continue_ is not None:
            raise OptionError(f"--resume goes on in {resume}; leave --out and --continue away")
        reason = run.resume(resume, named, _say)
    else:
        if out is None:
            raise OptionError(
                "--out is missing; name the model folder to make, such as --out models/en-de"
            )
        reason = run.start(out, named, _say, continue_)
    raise typer.Exit({"SIGINT": 130, "SIGTERM": 143}.get(reason, 0))


@app.command()
def translate(
    model: Chosen = None,
    from_: From = None,
    to: To = None,
    file: Annotated[
        Path | None, typer.Argument(help="A text file; without it, standard input.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write; without it, standard output.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an --out file that was left unfinished.")
    ] = False,
    beam: Beam = SearchOptions.beam,
    alpha: Alpha = SearchOptions.alpha,
    nbest: Annotated[int, _search("nbest")] = SearchOptions.nbest,
    sample: Annotated[bool, _search("sample")] = SearchOptions.sample,
    temperature: Annotated[float, _search("temperature")] = SearchOptions.temperature,
    top_k: Annotated[int, _search("top_k")] = SearchOptions.top_k,
    top_p: Annotated[float, _search("top_p")] = SearchOptions.top_p,
    seed: Annotated[int, _search("seed")] = SearchOptions.seed,
    min_length: Annotated[int, _search("min_length")] = SearchOptions.min_length,
    max_length: Annotated[int, _search("max_length")] = SearchOptions.max_length,
    no_repeat_ngram: Annotated[int, _search("no_repeat_ngram")] = SearchOptions.no_repeat_ngram,
    coverage: Annotated[float, _search("coverage")] = SearchOptions.coverage,
    prefix: Annotated[str, typer.Option(help="Text that every translation begins with.")] = "",
    glossary: Terms = None,
    alignments: Annotated[
        bool, typer.Option("--alignments", help="Add a tab and the aligned words, as in 0-0 1-2.")
    ] = False,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="A JSON object a line: text, scores, confidence, flags.")
    ] = False,
    careful: Annotated[
        bool, typer.Option("--careful", help="Search again where a translation looks wrong.")
    ] = False,
    whole_lines: Annotated[
        bool, typer.Option("--whole-lines", help="Do not split lines into sentences.")
    ] = False,
    shortlist: Annotated[
        bool, typer.Option("--shortlist", help="Use what `dragoman shortlist` has learnt.")
    ] = False,
    runtime: Runtime = "auto",
    device: Annotated[
        str, typer.Option(help="auto (all GPUs), cpu, cuda, cuda:N or several with commas between.")
    ] = "auto",
) -> None:
    """Translate line by line, in order; an empty line stays empty.

    With --nbest a line becomes up to so many lines of its number, the score and the text, with tabs
    between; a line of several sentences becomes one, unless --whole-lines is named.

    Example: `dragoman translate --to de < in.en > out.de`, or with your own model: `-m
    models/en-de`
    """
    from dragoman.folder.shipped import choose
    from dragoman.tasks.bulk import Job, Streams, translate_stream
    from dragoman.tasks.request import TranslateRequest
    from dragoman.text.glossary import Glossary

    lengths: dict[str, Any] = {"min_length": min_length, "max_length": max_length}
    draws: dict[str, Any] = {
        "sample": sample,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
    }
    options = SearchOptions(
        beam, alpha, nbest, **lengths, no_repeat_ngram=no_repeat_ngram, coverage=coverage, **draws
    )
    terms = Glossary.load(glossary) if glossary else None
    request = TranslateRequest(options, prefix, terms, alignments, careful, not whole_lines)
    job = Job(choose(model, from_, to), request, runtime, shortlist, jsonl)
    try:
        translate_stream(job, device, Streams(file, out, resume))
    except BrokenPipeError:
        # Whoever read our output has gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(141) from None


@app.command()
def evaluate(
    files: TestSet,
    model: Chosen = None,
    from_: From = None,
    to: To = None,
    against: Annotated[
        Path | None, typer.Option(help="Another model folder, or a file of translations.")
    ] = None,
    glossary: Terms = None,
    beam: Beam = SearchOptions.beam,
    alpha: Alpha = SearchOptions.alpha,
    lowercase: Annotated[bool, typer.Option(help="Score without regard to case.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the scores as one JSON object.")
    ] = False,
    runtime: Runtime = "auto",
    device: Device = "auto",
) -> None:
    """Translate a test set and score it: BLEU and chrF with signature and 95% interval, and how
    many terms came out right.

    Example: `dragoman evaluate -m models/en-de test.en test.de --against models/en-de-old`
    """
    from dragoman.folder.shipped import choose
    from dragoman.tasks.evaluate import compare, read_test_set, score, terms, tokenize_for
    from dragoman.tasks.lines import read_chunks
    from dragoman.tasks.translate import Translator
    from dragoman.text.glossary import Glossary

    options, known = SearchOptions(beam, alpha), Glossary.load(glossary) if glossary else None
    model = choose(model, from_, to)
    translator = Translator.load(model, device, runtime)
    about = translator.description
    sources, references = read_test_set(files, about.source_language, about.target_language)
    outputs = [
        one.text for one in translator.translate(sources, options, glossary=known, split=False)
    ]
    how: dict[str, Any] = {"tokenize": tokenize_for(about.target_language), "lowercase": lowercase}
    scores = score(outputs, references, **how)
    result, lines = (
        {"model": str(model), "sentences": len(outputs), **scores.as_dict()},
        scores.lines(),
    )
    if known is not None:
        result["terms"], line = terms(known, sources, outputs)
        lines.append(line)
    if against is not None:
        if against.is_dir():
            other = Translator.load(against, device, runtime)
            others = [
                one.text for one in other.translate(sources, options, glossary=known, split=False)
            ]
        else:
            with open(against, "rb") as file:
                others = [line for chunk in read_chunks(file, str(against)) for line in chunk.lines]
        verdict = compare(outputs, others, references, **how)
        result["against"] = {"name": str(against), **verdict.as_dict()}
        lines += verdict.lines()
        if known is not None:
            result["against"]["terms"], line = terms(known, sources, others)
            lines.append(f"the other: {line}")
    print(json.dumps(result, ensure_ascii=False) if as_json else "\n".join(lines))


@app.command()
def calibrate(
    model: Model, files: TestSet, runtime: Runtime = "auto", device: Device = "auto"
) -> None:
    """Learn from a valid set how far translations can be trusted; --jsonl then tells a confidence
    for each.

    Example: `dragoman calibrate -m models/en-de valid.en valid.de`
    """
    from dragoman.folder.extras import save_calibration
    from dragoman.tasks.calibrate import calibrate as learn
    from dragoman.tasks.evaluate import read_test_set
    from dragoman.tasks.translate import Translator

    translator = Translator.load(model, device, runtime)
    sources, references = read_test_set(
        files, translator.description.source_language, translator.description.target_language
    )
    found = learn(sources, translator.translate(sources, split=False), references)
    save_calibration(model, found.as_dict())
    print(
        f"expected calibration error {found.error:.3f}, correlation {found.correlation:.2f} on {found.sentences:,} sentences"
    )
    print("a confidence of 0.6 means that sentences the model was as sure of had a chrF of 60 here")


@app.command()
def shortlist(
    model: Model,
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Training files; without them, the text in the folder."),
    ] = None,
) -> None:
    """Learn which target tokens each source token may call for; `translate --shortlist` then looks
    at these alone.

    Example: `dragoman shortlist -m models/en-de`
    """
    import time
    from tempfile import TemporaryDirectory

    import numpy as np
    import torch

    from dragoman.data.batches import Pairs
    from dragoman.data.data_options import DataOptions
    from dragoman.data.prepare import is_prepared, prepare
    from dragoman.folder import layout
    from dragoman.folder.description import load_description
    from dragoman.folder.extras import save_shortlist
    from dragoman.folder.files import space_for
    from dragoman.runtimes.shortlist import candidates, learn
    from dragoman.text.tokenizer import RESERVED, TokenizerOptions

    start, (about, tokenizer) = time.monotonic(), load_description(model)
    if not about.model.plain:
        raise OptionError(
            f"{model} is not of the paper's kind; a shortlist is for such models only"
        )
    source_size, target_size = tokenizer.source_size, tokenizer.target_size
    with TemporaryDirectory() as aside, space_for(Path(aside)):
        data = Path(aside) if files else model / layout.DATA
        if files:
            prepare(DataOptions(tuple(files)), TokenizerOptions(), data, seed=1, known=tokenizer)
        elif not is_prepared(data):
            raise OptionError(
                f"{model} holds no training text; name the files that it was trained on"
            )
        kinds = {
            "bin": json.loads((data / layout.MANIFEST).read_text(encoding="utf-8"))["dtype"],
            "idx": "int64",
        }
        names = [(f"{side}.{end}", end) for side in ("source", "target") for end in kinds]
        source, starts, target, ends = [
            np.memmap(data / layout.TRAIN / name, kinds[end], "r") for name, end in names
        ]
        frequent, table = learn(
            source, starts, target, ends, source_size, target_size, joint=tokenizer.joint
        )
        frequent = np.union1d(frequent, np.arange(RESERVED))
        save_shortlist(
            model, {"frequent": torch.from_numpy(frequent), "table": torch.from_numpy(table)}
        )
        took = f"learnt from {len(starts) - 1:,} pairs in {time.monotonic() - start:.0f} s"
        print(
            f"{len(frequent):,} frequent tokens and {table.shape[1]} for each of {len(table):,} source tokens, {took}"
        )
        valid = Pairs(data / layout.VALID, kinds["bin"])
        rows = [valid.batch(np.array([row])) for row in range(min(len(valid), 2000))]
        kept = [
            np.isin(row.labels, candidates(table, frequent, row.source.tolist(), target_size))
            for row in rows
        ]
    if kept:
        print(
            f"{np.concatenate(kept).mean():.2%} of the target tokens of {len(kept):,} valid sentences are among them"
        )


@app.command()
def models(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """List the models that came with dragoman and those in the folder models/ here.

    Example: `dragoman models --json`
    """
    from dragoman.folder.shipped import listing

    print(listing(Path("models"), as_json))


def _spread(words: list[str]) -> list[str]:
    """`--valid a b` as `--valid a --valid b`: an option of several files takes all words up to
    the next option."""
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


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """Without what the user did not name."""
    return {key: value for key, value in values.items() if value not in (None, {}, [])}


def _list_options(cls: type) -> None:
    from dragoman.config import describe

    for one in describe(cls):
        print(f"{one.name:<28} {one.help or one.kind} (default: {json.dumps(one.default)})")


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def _fail(sentence: str, code: int) -> int:
    _say(f"error: {sentence}")
    return code


for part in (cli_convert, cli_generate, cli_encode, cli_transcribe, cli_inspect, cli_serve):
    app.add_typer(part.commands)
