"""The commands that make models better: `backtranslate` and `distil`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.arguments import (
    Flags,
    ModelFolder,
    Printing,
    RayAddress,
    Runtime,
    with_flags,
)
from dragoman.cli.terminal import (
    EXIT_CODES,
    ProgressLine,
    duration,
    print_json,
    say,
    silenced,
)
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import OptionError

if TYPE_CHECKING:
    from dragoman.improving.passage_journal import Counts
    from dragoman.improving.text_through_model import Course, Machines

commands = typer.Typer()
# An output with so many more tokens than its source is dropped anyway; the search need not go on.
_MAX_EXTRA = 20
_CONTINUE = "stopped; run the same command again to continue"


@dataclass(frozen=True)
class Workers:
    """What computes."""

    device: Annotated[
        str, typer.Option(help="auto (all GPUs), cpu, cuda, cuda:N, or several with commas.")
    ] = "auto"
    processes: Annotated[
        int,
        typer.Option(help="Processes per device; 0: six on a GPU, and one for each core on a CPU."),
    ] = 0
    runtime: Runtime = "auto"
    engine: Annotated[
        str, typer.Option(help="Where the work runs: local (processes on this machine) or ray.")
    ] = "local"
    address: RayAddress = ""

    def machines(self) -> Machines:
        """As the passage of a text takes it."""
        from dragoman.improving.text_through_model import Machines
        from dragoman.tasks.ray_workers import cluster_of

        cluster = cluster_of(self.engine, self.address, self.device)
        return Machines(self.device, self.processes, self.runtime, cluster)


@dataclass(frozen=True)
class Saying(Printing):
    """How much is printed, and how long it may take."""

    minutes: Annotated[
        float, typer.Option(help="Maximum minutes in total, across interruptions; 0: no limit.")
    ] = 0.0

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
            with silenced(self.quiet):
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


@dataclass(frozen=True)
class Passage:
    """What is translated, by which model, and what is written."""

    texts: Annotated[
        list[Path],
        typer.Argument(help="Text in the model's source language; .gz and .xz are read too."),
    ]
    model: ModelFolder
    out: Annotated[Path, typer.Option(help="File to write: .tsv, .tsv.gz or .tsv.xz.")]
    tag: Annotated[
        str, typer.Option(help="Word that marks the sources as machine-made; '' for none.")
    ] = "<bt>"


@commands.command(rich_help_panel="Improve")
@with_flags
def backtranslate(passage: Passage, search: Search, workers: Workers, saying: Saying) -> None:
    """Turn text in one language into training pairs for the other direction: the model's
    translation of each line, marked with a tag, and the line itself.

    Train with `--set 'tokenizer.tags=["<bt>"]'`, so that the tag is one piece. Lines whose
    translation does not end, repeats itself or has an unlikely length are left out. If the command
    is killed, run it again to continue where it left off.

    Example: `dragoman backtranslate -m models/tw-en twi.txt.xz --out bt.tsv.xz`
    """
    from dragoman.improving.back_translation import BackTranslation, back_translate

    search = replace(search, max_extra=_MAX_EXTRA)
    options = BackTranslation(passage.tag, search, workers.machines())
    with saying.watched("back-translating") as line:
        course = saying.course(line)
        counts = back_translate(passage.model, passage.texts, passage.out, options, course)
    saying.conclude(counts, passage.out)


@dataclass(frozen=True)
class Student:
    """What the student is, and where it goes."""

    out: Annotated[Path, typer.Option(help="Model folder of the student.")]
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
class Teacher:
    """Who teaches, with which text, and which of its translations are kept."""

    model: Annotated[Path, typer.Option("--model", "-m", help="Model folder of the teacher.")]
    texts: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Text in the teacher's source language. Default: that in the model folder."
        ),
    ] = None
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
    teacher: Teacher,
    student: Student,
    search: Annotated[SearchOptions, Flags(only=("beam",), defaults={"beam": 1})],
    workers: Workers,
    saying: Saying,
) -> None:
    """Train a small, fast model on the translations of a large one.

    The teacher translates the text, unlikely translations are left out, and a student is trained
    on the rest; int8 weights and a shortlist make it fast on a CPU. With --minutes, the teacher
    gets at most 30% of them. If the command is killed, run it again to continue where it left off.

    Example: `dragoman distil -m models/en-tw news.en.xz --out models/en-tw-small --minutes 60`
    """
    from dragoman.improving.distillation import Distillation, distil

    options = Distillation(
        texts=tuple(teacher.texts or ()),
        student=student.tables(),
        reverse=teacher.reverse,
        keep=teacher.keep,
        search=replace(search, max_extra=_MAX_EXTRA),
        machines=workers.machines(),
    )
    with saying.watched("distilling") as line:
        course = saying.course(line)
        distilled = distil(teacher.model, student.out, options, course, line.say)
    if saying.as_json:
        print_json({"out": str(student.out), **asdict(distilled)})
    if distilled.stopped:
        saying.say(_CONTINUE)
    raise typer.Exit(EXIT_CODES.get(distilled.reason, 0))


def _summary(counts: Counts, out: Path) -> str:
    dropped = ", ".join(f"{name}: {count:,}" for name, count in counts.dropped.items() if count)
    left_out = f"; left out: {dropped}" if dropped else ""
    ended = "" if counts.complete else "; the time was over before the end of the text"
    speed = counts.lines / max(1e-9, counts.seconds)
    return (
        f"{out}: {counts.pairs:,} pairs from {counts.lines:,} lines in "
        f"{duration(counts.seconds)} ({speed:,.0f} lines/s){left_out}{ended}"
    )
