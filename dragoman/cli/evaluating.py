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
    ValidationText,
    with_flags,
)
from dragoman.cli.terminal import print_json
from dragoman.errors import OptionError
from dragoman.tasks.request import TranslateRequest

if TYPE_CHECKING:
    from dragoman.tasks.translate import Translator

commands = typer.Typer()
_OF_ENCODERS = ("class", "label", "embed")


@dataclass(frozen=True)
class Report:
    """What is compared, and how it is printed."""

    against: Annotated[
        Path | None, typer.Option(help="Another model folder, or a file of translations or trees.")
    ] = None
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case when scoring.")] = (
        False
    )
    robust: Annotated[
        bool,
        typer.Option(
            "--robust",
            help="Also score the set in capitals, with typos and so on; eight times the work.",
        ),
    ] = False
    as_json: AsJson = False

    def refuse_for(self, task: str, glossary: object) -> None:
        """Raise an error for what can be asked of translations alone."""
        if self.lowercase or self.robust or glossary:
            raise OptionError(
                "--lowercase, --robust and --glossary are for translations; "
                f"omit them for the task {task}"
            )


@dataclass(frozen=True)
class TextTest:
    """What a model for text to text is scored on, and what it is compared with."""

    folder: Path
    files: list[str]
    against: Path | None


@dataclass(frozen=True)
class Test:
    """What is scored."""

    files: TestSet
    task: Annotated[
        str | None,
        typer.Option(
            help="translate, text, parse, class, label, embed or speech. Default: the model's task."
        ),
    ] = None


@dataclass(frozen=True)
class Search(Machine):
    """How outputs are searched for, and what computes."""

    beam: Annotated[
        int | None,
        typer.Option(min=1, help="Hypotheses kept. Default: 4; 21 for trees, 5 for speech."),
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option(min=0.0, help="Exponent of the length penalty. Default: 0.6; 0.3 for trees."),
    ] = None

    def over(self, defaults: Any) -> Any:
        """The defaults, a dataclass, with what the user named."""
        named = {"beam": self.beam, "alpha": self.alpha}
        return replace(
            defaults, **{name: value for name, value in named.items() if value is not None}
        )


@commands.command(rich_help_panel="Measure")
@with_flags
def evaluate(
    test: Test,
    chosen: ChosenModel,
    request: Annotated[TranslateRequest, Flags(only=("glossary", "context", "tone", "variant"))],
    search: Search,
    report: Report,
) -> None:
    """Translate a test set and score it: BLEU and chrF with signature and 95% interval, and with
    --glossary the share of terms that came out right. Text to text is scored by ROUGE-1, -2 and -L,
    exact match and token F1 as in SQuAD; a parser by labelled precision, recall, F1 and exact match
    on the trees of a treebank, as in EVALB; a classifier by accuracy and macro F1; labels of words
    by accuracy and, where they form spans, precision, recall and F1 as in conlleval; vectors of
    texts by how often the nearest text of the other side is the right one; a model for speech by
    word and character error rates on lines of path, tab and text.

    Example: `dragoman evaluate -m models/en-de test.en test.de --against models/en-de-old`,
    `dragoman evaluate -m models/summaries --task text test.src test.tgt`,
    `dragoman evaluate -m models/parser --task parse test.mrg`,
    `dragoman evaluate -m models/ner --task label test.conll`, or
    `dragoman evaluate -m models/ours --task speech test.tsv`
    """
    folder = chosen.folder()
    asked = _task(folder, test.task)
    if asked != "translate":
        report.refuse_for(asked, request.glossary)
    if asked == "text":
        from dragoman.cli.rewriting import evaluate_texts

        options = search.over(request.options)
        text_test = TextTest(folder, test.files, report.against)
        evaluate_texts(text_test, options, search, report.as_json)
        return
    if asked == "parse":
        from dragoman.cli.parsing import TreeSearch, evaluate_trees, print_scores

        searched = search.over(TreeSearch())
        scores = evaluate_trees(folder, test.files, searched, search, report.against)
        print_scores(scores, report.as_json)
        return
    if asked == "speech":
        from dragoman.cli.transcribing import evaluate_speech

        _refuse_for_speech(search, report)
        evaluate_speech(folder, test.files, search, search.beam or 5, report.as_json)
        return
    if asked in _OF_ENCODERS:
        from dragoman.cli.evaluated_encoders import evaluate_encoder

        if search.beam or search.alpha is not None or report.against:
            raise OptionError(
                f"--beam, --alpha and --against are not for the task {asked}; omit them"
            )
        evaluate_encoder(asked, folder, test.files, search, report.as_json)
        return
    request = replace(request, options=search.over(request.options), split=False)
    _evaluate_translations(folder, test.files, request, report, search)


def _task(folder: Path, asked: str | None) -> str:
    """What is evaluated: what was asked for, or the model's own task."""
    from dragoman.config import one_of
    from dragoman.folder.description import load_description

    if asked is None:
        return load_description(folder)[0].task
    one_of("--task", asked, ("translate", "text", "parse", *_OF_ENCODERS, "speech"))
    return asked


def _refuse_for_speech(search: Search, report: Report) -> None:
    """Raise an error for what cannot be asked of transcripts."""
    if search.alpha is not None or report.against is not None:
        raise OptionError("--alpha and --against do not go with the task speech; omit them")


def _evaluate_translations(
    folder: Path, files: list[str], request: TranslateRequest, report: Report, machine: Machine
) -> None:
    from dragoman.tasks.evaluate import Scoring, compare, score, term_accuracy, tokenize_for
    from dragoman.tasks.robustness import robustness
    from dragoman.tasks.translate import Translator

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
    model: ModelFolder,
    files: ValidationText,
    runtime: Runtime = "auto",
    device: Device = "auto",
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
        described = other.description
        # What only the first has learnt is not asked of the other.
        able = replace(
            request,
            context=min(request.context, described.context),
            tone=request.tone if request.tone in described.tones else "",
            variant=request.variant if request.variant in described.variants else "",
        )
        return [one.text for one in other.translate(sources, able)]
    with open(against, "rb") as file:
        return [line for chunk in read_chunks(file, str(against)) for line in chunk.lines]
