"""The commands that make models better: `backtranslate` and `distil`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.arguments import AsJson, Flags, ModelFolder, Runtime, with_flags
from dragoman.cli.terminal import ProgressLine, duration, print_json, say
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import OptionError

if TYPE_CHECKING:
    from dragoman.improving.passage_journal import Counts
    from dragoman.improving.text_through_model import Course, Machines

commands = typer.Typer()
_EXIT_CODES = {"SIGHUP": 129, "SIGINT": 130, "SIGTERM": 143}
# An output with so many more tokens than its source is dropped anyway; the search need not go on.
_MAX_EXTRA = 20
_CONTINUE = "stopped; the same command continues where it was"


@dataclass(frozen=True)
class Workers:
    """What computes."""

    device: Annotated[
        str, typer.Option(help="auto (all GPUs), cpu, cuda, cuda:N, or several with commas.")
    ] = "auto"
    processes: Annotated[
        int,
        typer.Option(
            help="Processes for each device; 0: six share a GPU, and a CPU has one for each core."
        ),
    ] = 0
    runtime: Runtime = "auto"
    engine: Annotated[str, typer.Option(help="Who works: local (processes here) or ray.")] = "local"
    address: Annotated[
        str,
        typer.Option(help="Ray cluster to join, such as auto. Default: one of our own, here."),
    ] = ""

    def machines(self) -> Machines:
        """As the passage of a text takes it."""
        from dragoman.improving.text_through_model import Machines
        from dragoman.tasks.ray_workers import cluster_of

        cluster = cluster_of(self.engine, self.address, self.device)
        return Machines(self.device, self.processes, self.runtime, cluster)


@dataclass(frozen=True)
class Saying:
    """How much is said, and how long it may take."""

    minutes: Annotated[
        float, typer.Option(help="Most minutes in all, those before an interruption included.")
    ] = 0.0
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False
    as_json: AsJson = False

    def say(self, sentence: str) -> None:
        """Print a sentence, unless the user wants none."""
        if not self.quiet:
            say(sentence)

    def course(self, line: ProgressLine) -> Course:
        """The limit of time, and who is told how far it is."""
        from dragoman.improving.text_through_model import Course

        if self.minutes < 0:
            raise OptionError(f"minutes is {self.minutes}; it must be 0 (no limit) or more")
        return Course(60 * self.minutes, line.report)

    @contextmanager
    def watched(self, what: str) -> Iterator[ProgressLine]:
        """A progress bar if a person is watching; Ctrl-C ends with a word on how to go on."""
        line = ProgressLine(what, hidden=self.quiet)
        try:
            with ExitStack() as silence:
                if self.quiet:
                    nowhere = silence.enter_context(open(os.devnull, "w", encoding="utf-8"))
                    silence.enter_context(redirect_stderr(nowhere))
                yield line
        except KeyboardInterrupt:
            line.stop()
            self.say(_CONTINUE)
            raise typer.Exit(130) from None
        finally:
            line.stop()

    def conclude(self, counts: Counts, out: Path) -> None:
        """Say what became of the text."""
        if self.as_json:
            print_json({"out": str(out), **asdict(counts)})
            return
        self.say(_summary(counts, out))


Search = Annotated[
    SearchOptions,
    Flags(
        only=("beam", "sample", "temperature", "top_k", "top_p", "seed"),
        defaults={"beam": 1},
    ),
]


@commands.command(rich_help_panel="Improve")
@with_flags
def backtranslate(
    texts: Annotated[
        list[Path],
        typer.Argument(help="Text in the model's source language; .gz and .xz are read too."),
    ],
    model: ModelFolder,
    out: Annotated[Path, typer.Option(help="File to write: .tsv, .tsv.gz or .tsv.xz.")],
    search: Search,
    workers: Workers,
    saying: Saying,
    tag: Annotated[
        str, typer.Option(help="Word that marks the sources as a model's; '' for none.")
    ] = "<bt>",
) -> None:
    """Turn text of one language into training pairs for the other direction: the model's
    translation of each line, marked with a tag, and the line itself.

    Train with `--set 'tokenizer.tags=["<bt>"]'`, so that the tag is one piece. Lines whose
    translation does not end, repeats itself or has an unlikely length are left out. Killed at any
    moment, the same command continues where it was.

    Example: `dragoman backtranslate -m models/tw-en twi.txt.xz --out bt.tsv.xz`
    """
    from dragoman.improving.back_translation import BackTranslation, back_translate

    search = replace(search, max_extra=_MAX_EXTRA)
    options = BackTranslation(tag, search, workers.machines())
    with saying.watched("back-translating") as line:
        counts = back_translate(model, texts, out, options, saying.course(line))
    saying.conclude(counts, out)


@dataclass(frozen=True)
class Student:
    """What the student is."""

    config: Annotated[
        Path | None, typer.Option(help="Recipe of the student: a TOML file of options.")
    ] = None
    preset: Annotated[
        str | None, typer.Option(help="Preset of the student. Default: student, for a CPU.")
    ] = None
    vocab_size: Annotated[
        int | None,
        typer.Option(help="Pieces of a vocabulary of its own. Default: the teacher's vocabulary."),
    ] = None
    valid: Annotated[
        list[str] | None,
        typer.Option(help="Validation files. Default: the teacher's, or a part of the text."),
    ] = None
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any other option of training, such as steps=20000."),
    ] = None

    def tables(self) -> dict[str, Any]:
        """The options that are given, in the tables of a recipe."""
        from dragoman.config import assignments, load_toml, merge
        from dragoman.training.training_options import Options

        named: dict[str, Any] = {}
        if self.preset is not None:
            named["preset"] = self.preset
        if self.vocab_size is not None:
            named["tokenizer"] = {"vocab_size": self.vocab_size}
        if self.valid:
            named["data"] = {"valid": [str(Path(file).absolute()) for file in self.valid]}
        recipe = load_toml(self.config) if self.config else {}
        return merge(recipe, assignments(Options, self.set_ or []), named)


@dataclass(frozen=True)
class Judging:
    """Which of the teacher's translations are kept."""

    reverse: Annotated[
        Path | None,
        typer.Option(help="Model of the other direction, which judges the teacher's translations."),
    ] = None
    keep: Annotated[
        float, typer.Option(help="Share of the translations to keep with --reverse.")
    ] = 0.8


@commands.command(rich_help_panel="Improve")
@with_flags
def distil(
    model: Annotated[Path, typer.Option("--model", "-m", help="Model folder of the teacher.")],
    out: Annotated[Path, typer.Option(help="Model folder of the student.")],
    student: Student,
    judging: Judging,
    search: Annotated[SearchOptions, Flags(only=("beam",), defaults={"beam": 1})],
    workers: Workers,
    saying: Saying,
    texts: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Text in the teacher's source language. Default: that in the model folder."
        ),
    ] = None,
) -> None:
    """Train a small, fast model on what a large one says.

    The teacher translates the text, unlikely translations are left out, and a student is trained
    on the rest; int8 weights and a shortlist make it fast on a CPU. With --minutes the teacher has
    at most 30% of them. Killed at any moment, the same command continues where it was.

    Example: `dragoman distil -m models/en-tw news.en.xz --out models/en-tw-small --minutes 60`
    """
    from dragoman.improving.distillation import Distillation, distil

    options = Distillation(
        texts=tuple(texts or ()),
        student=student.tables(),
        reverse=judging.reverse,
        keep=judging.keep,
        search=replace(search, max_extra=_MAX_EXTRA),
        machines=workers.machines(),
    )
    with saying.watched("distilling") as line:
        distilled = distil(model, out, options, saying.course(line), line.say)
    if saying.as_json:
        print_json({"out": str(out), **asdict(distilled)})
    if distilled.stopped:
        saying.say(_CONTINUE)
    raise typer.Exit(_EXIT_CODES.get(distilled.reason, 0))


def _summary(counts: Counts, out: Path) -> str:
    dropped = ", ".join(f"{name}: {count:,}" for name, count in counts.dropped.items() if count)
    left_out = f"; left out: {dropped}" if dropped else ""
    ended = "" if counts.complete else "; the time was over before the end of the text"
    speed = counts.lines / max(1e-9, counts.seconds)
    return (
        f"{out}: {counts.pairs:,} pairs from {counts.lines:,} lines in "
        f"{duration(counts.seconds)} ({speed:,.0f} lines/s){left_out}{ended}"
    )
