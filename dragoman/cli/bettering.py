"""The `improve` command."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.arguments import Printing, RayAddress, with_flags
from dragoman.cli.terminal import EXIT_CODES, print_json, say, say_nothing, silenced
from dragoman.errors import OptionError

if TYPE_CHECKING:
    from dragoman.improving.improve_journal import Outcome
    from dragoman.improving.improve_options import Inputs
    from dragoman.improving.improve_plan import PlannedStep

commands = typer.Typer()
Files = list[str] | None
# Options of [data] that say which text there is; the others are for training.
_OF_INPUTS = ("train", "valid", "test", "weights", "source_language", "target_language")


@dataclass(frozen=True)
class Texts:
    """What there is to learn from, and to be measured by."""

    from_text: Annotated[
        Files, typer.Option(help="Parallel text to start from instead of a model.")
    ] = None
    text: Annotated[
        Files, typer.Option(help="Parallel text. Default: the files the model was trained on.")
    ] = None
    target_text: Annotated[
        Files, typer.Option(help="Text in the target language, to back-translate.")
    ] = None
    source_text: Annotated[
        Files, typer.Option(help="Text in the source language, to translate.")
    ] = None
    related: Annotated[
        Files, typer.Option(help="Parallel text of related languages, such as x.en-de.tsv.")
    ] = None
    valid: Annotated[
        Files, typer.Option(help="Validation files, on which every gain is proved.")
    ] = None
    test: Annotated[
        Files, typer.Option(help="Test files: kept out of all text and scored once, at the end.")
    ] = None
    from_: Annotated[
        str | None,
        typer.Option("--from", help="Source language. Default: from the model or the file names."),
    ] = None
    to: Annotated[str | None, typer.Option(help="Target language.")] = None


@dataclass(frozen=True)
class Course:
    """How far to go, and where the result goes."""

    out: Annotated[
        Path | None, typer.Option(help="Model folder to create. Default: MODEL-improved.")
    ] = None
    reverse: Annotated[
        Path | None, typer.Option(help="Model folder of the opposite direction.")
    ] = None
    minutes: Annotated[float | None, typer.Option(help="Total minutes. Default: 60.")] = None
    student: Annotated[
        bool, typer.Option("--student", help="Also make a small, fast model: OUT-student.")
    ] = False
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")] = None
    engine: Annotated[
        str,
        typer.Option(help="Where text is translated: local (processes on this machine) or ray."),
    ] = "local"
    address: RayAddress = ""
    config: Annotated[
        Path | None, typer.Option(help="Recipe: a TOML file with [improve] and train's tables.")
    ] = None
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="An option of training, such as tokenizer.vocab_size=12000."),
    ] = None


@dataclass(frozen=True)
class Showing(Printing):
    """What is printed."""

    plan: Annotated[bool, typer.Option("--plan", help="Print the plan and exit.")] = False


@commands.command(rich_help_panel="Improve")
@with_flags
def improve(
    texts: Texts,
    course: Course,
    showing: Showing,
    model: Annotated[
        Path | None, typer.Argument(help="Model folder to improve; it is not changed.")
    ] = None,
) -> None:
    """Improve a translator with all available text: make a plan, then go through it step by step
    (cleaning, related languages, back-translation and more), keeping a step only if a paired test
    proves a gain.

    The result and its report are in OUT, the work in OUT.work. If the command is killed or stopped,
    run it again to continue where it left off.

    Example: `dragoman improve models/en-tw --target-text twi.txt.xz --valid dev.en dev.tw
    --minutes 60`, or `dragoman improve --from-text train.en train.tw --out models/en-tw`
    """
    from dragoman.folder import layout
    from dragoman.improving.improve_plan import in_words
    from dragoman.improving.improve_run import improve as run
    from dragoman.improving.improve_run import plan_of
    from dragoman.improving.improve_training import StoppedError

    inputs = _inputs(model, texts, course)
    if showing.plan:
        planned = plan_of(inputs)
        if showing.as_json:
            print_json([asdict(step) for step in planned])
        else:
            print(in_words(planned, inputs.options))
        return
    try:
        with silenced(showing.silent):
            done = run(inputs, _listener(inputs, showing.silent))
    except StoppedError as stopped:
        say(str(stopped))
        raise typer.Exit(EXIT_CODES.get(stopped.name, 130)) from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; run the same command again to continue") from None
    if showing.as_json:
        print_json({"out": inputs.out, "steps": [asdict(one) for one in done]})
    elif not showing.quiet:
        say(f"the model is {inputs.out}; what each step gave: {Path(inputs.out) / layout.REPORT}")


def _inputs(model: Path | None, texts: Texts, course: Course) -> Inputs:
    """What a user gave: flags come before the recipe, and the recipe before what a model says."""
    from dragoman.config import assignments, build, load_toml, merge
    from dragoman.improving.improve_options import ImproveOptions, Inputs
    from dragoman.tasks.ray_workers import cluster_of
    from dragoman.training.training_options import Options

    recipe = load_toml(course.config) if course.config else {}
    of_improving = recipe.pop("improve", {})
    tables = merge(recipe, assignments(Options, course.set_ or []))
    build(Options, tables)  # a mistake shows before anything is read
    data = dict(tables.pop("data", {}))
    other = {name: value for name, value in data.items() if name not in _OF_INPUTS}
    tables = merge(tables, {"data": other} if other else {})
    training = {"seed": course.seed, "device": course.device}
    tables = merge(tables, {"training": _given(training)})
    options = build(ImproveOptions, merge(of_improving, _improving(texts, course)))
    known = _known(model, data)
    named = texts.from_text or texts.text or data.get("train") or known.get("train", [])
    if texts.from_text and model is not None:
        raise OptionError("--from-text starts without a model; omit MODEL, or use --text")
    return Inputs(
        start=str(model) if model is not None else "",
        out=_out(model, course),
        train=tuple(named),
        valid=tuple(texts.valid or data.get("valid") or known.get("valid", [])),
        test=tuple(texts.test or data.get("test") or []),
        options=options,
        weights=tuple(float(weight) for weight in data.get("weights", ())),
        languages=_languages(model, texts, data, tuple(named)),
        tables=tables,
        cluster=cluster_of(course.engine, course.address, course.device or "auto"),
    )


def _improving(texts: Texts, course: Course) -> dict[str, Any]:
    """The options of [improve] that have a flag."""
    return _given(
        {
            "minutes": course.minutes,
            "target_text": texts.target_text,
            "source_text": texts.source_text,
            "related": texts.related,
            "reverse": str(course.reverse) if course.reverse else None,
            "student": course.student or None,
        }
    )


def _known(model: Path | None, data: dict[str, Any]) -> dict[str, list[str]]:
    """The files that a model was trained on, as far as they are still there."""
    from dragoman.config import load_toml
    from dragoman.folder import layout

    if model is None or not (model / layout.OPTIONS).exists():
        return {}
    before = load_toml(model / layout.OPTIONS).get("data", {})
    found = {}
    for name in ("train", "valid"):
        files = [str(file) for file in before.get(name, [])]
        if files and all(os.path.isfile(file) for file in files):
            found[name] = files
    return found


def _languages(
    model: Path | None, texts: Texts, data: dict[str, Any], files: tuple[str, ...]
) -> tuple[str, str]:
    """As named, as the model says, or by the names of the files."""
    from dragoman.data.corpus import corpora, languages
    from dragoman.folder.description import load_description
    from dragoman.text.languages import canonical

    source = canonical(texts.from_ or "") or str(data.get("source_language", ""))
    target = canonical(texts.to or "") or str(data.get("target_language", ""))
    if model is not None:
        description, _ = load_description(model)
        source = source or description.source_language
        target = target or description.target_language
    return languages(corpora(files), source, target) if files else (source, target)


def _out(model: Path | None, course: Course) -> str:
    if course.out is not None:
        return str(course.out)
    if model is None:
        raise OptionError(
            "--out is missing; name the model folder to create, such as --out models/en-tw"
        )
    return str(model.with_name(f"{model.name}-improved"))


def _listener(inputs: Inputs, silent: bool) -> Any:
    """What a person is told: each step when it begins, with the time left, and what it gave."""
    from dragoman.improving.improve_plan import in_words
    from dragoman.improving.improve_report import outcome_in_words
    from dragoman.improving.improve_run import Listener

    def planned(steps: Sequence[PlannedStep]) -> None:
        say(f"\nThe plan for this machine:\n{in_words(steps, inputs.options)}")

    def begun(step: PlannedStep, left: float) -> None:
        about = f"about {step.minutes:.1f} minutes, {max(0.0, left):.1f} left in all"
        say(f"\n{step.name}: {step.reason} ({about})")

    def done(outcome: Outcome) -> None:
        say(outcome_in_words(outcome))

    if silent:
        return Listener(say_nothing, say_nothing, say_nothing, say_nothing)
    return Listener(say, planned, begun, done)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """Without what the user did not name."""
    return {key: value for key, value in values.items() if value not in (None, "", {}, [])}
