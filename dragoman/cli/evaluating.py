"""The `evaluate` and `calibrate` commands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.arguments import (
    AsJson,
    ChosenModel,
    Device,
    Flags,
    Machine,
    ModelFolder,
    Runtime,
    TestSet,
    with_flags,
)
from dragoman.cli.terminal import print_json
from dragoman.tasks.request import TranslateRequest

if TYPE_CHECKING:
    from dragoman.tasks.translate import Translator

commands = typer.Typer()


@dataclass(frozen=True)
class Report:
    """What is compared, and how it is printed."""

    against: Annotated[
        Path | None, typer.Option(help="Another model folder, or a file of translations.")
    ] = None
    lowercase: Annotated[bool, typer.Option(help="Ignore case when scoring.")] = False
    robust: Annotated[
        bool,
        typer.Option(
            help="Also score the set in capitals, with typos and so on; eight times the work."
        ),
    ] = False
    as_json: AsJson = False


@commands.command(rich_help_panel="Measure")
@with_flags
def evaluate(
    files: TestSet,
    chosen: ChosenModel,
    request: Annotated[TranslateRequest, Flags(only=("beam", "alpha", "glossary"))],
    report: Report,
    machine: Machine,
) -> None:
    """Translate a test set and score it: BLEU and chrF with signature and 95% interval, and with
    --glossary the share of terms that came out right.

    Example: `dragoman evaluate -m models/en-de test.en test.de --against models/en-de-old`
    """
    from dragoman.tasks.evaluate import Scoring, compare, score, term_accuracy, tokenize_for
    from dragoman.tasks.robustness import robustness
    from dragoman.tasks.translate import Translator

    folder = chosen.folder()
    request = replace(request, split=False)
    translator = Translator.load(folder, machine.device, machine.runtime)
    sources, references = _test_set(translator, files)
    described = translator.description
    languages = (described.source_language, described.target_language)
    scoring = Scoring(tokenize_for(translator.description.target_language), report.lowercase)

    outputs = [one.text for one in translator.translate(sources, request)]
    scores = score(outputs, references, scoring)
    lines = [*scores.lines(), scores.in_words()]
    result: dict[str, Any] = {"model": str(folder), "sentences": len(outputs)}
    result |= scores.as_dict()
    if request.glossary is not None:
        terms = term_accuracy(request.glossary, sources, outputs, languages)
        lines.append(terms.line())
        result["terms"] = terms.as_dict()

    if report.against is not None:
        others = _others(report.against, machine, sources, request)
        comparison = compare(outputs, others, references, scoring)
        lines += comparison.lines()
        result["against"] = {"name": str(report.against), **comparison.as_dict()}
        if request.glossary is not None:
            terms = term_accuracy(request.glossary, sources, others, languages)
            lines.append(f"the other: {terms.line()}")
            result["against"]["terms"] = terms.as_dict()

    if report.robust:
        found = robustness(
            lambda texts: [one.text for one in translator.translate(texts, request)],
            sources,
            references,
            scoring,
        )
        lines += found.lines()
        result["robust"] = found.as_dict()

    if report.as_json:
        print_json(result)
    else:
        print("\n".join(lines))


@commands.command(rich_help_panel="Measure")
def calibrate(
    model: ModelFolder, files: TestSet, runtime: Runtime = "auto", device: Device = "auto"
) -> None:
    """Learn from validation text how far translations can be trusted; `translate --jsonl` then
    prints a confidence with each. Text of several kinds is best: name a pair of files for each.

    Example: `dragoman calibrate -m models/en-de news.en news.de chat.en chat.de`
    """
    from dragoman.data.corpus import corpora
    from dragoman.folder.extras import save_calibration
    from dragoman.tasks.calibrate import calibrate as learn
    from dragoman.tasks.translate import Translator

    translator = Translator.load(model, device, runtime)
    sources: list[str] = []
    references: list[str] = []
    texts: list[str] = []
    for corpus in corpora(files):
        some_sources, some_references = _test_set(translator, list(corpus.files))
        sources += some_sources
        references += some_references
        texts += [Path(corpus.files[0]).stem] * len(some_sources)
    calibration = learn(sources, translator.translate(sources, split=False), references, texts)
    save_calibration(model, calibration.as_dict())
    print("\n".join(calibration.lines()))


def _test_set(translator: Translator, files: list[str]) -> tuple[list[str], list[str]]:
    from dragoman.tasks.evaluate import read_test_set

    description = translator.description
    return read_test_set(files, description.source_language, description.target_language)


def _others(
    against: Path, machine: Machine, sources: list[str], request: TranslateRequest
) -> list[str]:
    """The translations of another model, or those in a file."""
    from dragoman.tasks.lines import read_chunks
    from dragoman.tasks.translate import Translator

    if against.is_dir():
        other = Translator.load(against, machine.device, machine.runtime)
        return [one.text for one in other.translate(sources, request)]
    with open(against, "rb") as file:
        return [line for chunk in read_chunks(file, str(against)) for line in chunk.lines]
