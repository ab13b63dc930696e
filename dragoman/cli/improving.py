"""The commands that make models better: `backtranslate` and `distil`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.arguments import AsJson, Flags, ModelFolder, Runtime, with_flags
from dragoman.cli.terminal import print_json, say
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

    def machines(self) -> Machines:
        """As the passage of a text takes it."""
        from dragoman.improving.text_through_model import Machines

        return Machines(self.device, self.processes, self.runtime)


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

    @contextmanager
    def course(self, what: str) -> Iterator[Course]:
        """The limit of time, with a progress bar if a person is watching."""
        from dragoman.improving.text_through_model import Course

        if self.minutes < 0:
            raise OptionError(f"minutes is {self.minutes}; it must be 0 (no limit) or more")
        with _progress_bar(what, hidden=self.quiet) as report:
            yield Course(60 * self.minutes, report)

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
    with _stoppable(saying), saying.course("back-translating") as course:
        counts = back_translate(model, texts, out, options, course)
    saying.conclude(counts, out)


@contextmanager
def _stoppable(saying: Saying) -> Iterator[None]:
    """Ctrl-C ends a command with a word on how it goes on."""
    try:
        yield
    except KeyboardInterrupt:
        saying.say(_CONTINUE)
        raise typer.Exit(130) from None


@contextmanager
def _progress_bar(what: str, hidden: bool) -> Iterator[Any]:
    """A function that shows how far a passage is; it shows nothing if nobody is watching."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    shown = ("{task.description}", BarColumn(20), TextColumn("{task.percentage:>3.0f}%"))
    with Progress(*shown, console=console, disable=hidden or not console.is_terminal) as bar:
        task = bar.add_task(f"{what}: starting", total=None)

        def report(progress: Any) -> None:
            speed = progress.done / max(1e-9, progress.seconds)
            text = (
                f"{what}: {progress.done:,} of {progress.total:,} lines, {speed:,.0f} lines/s, "
                f"{_duration(progress.seconds_left)} left"
            )
            bar.update(task, description=text, completed=progress.done, total=progress.total)

        yield report


def _summary(counts: Counts, out: Path) -> str:
    dropped = ", ".join(f"{name}: {count:,}" for name, count in counts.dropped.items() if count)
    left_out = f"; left out: {dropped}" if dropped else ""
    ended = "" if counts.complete else "; the time was over before the end of the text"
    speed = counts.lines / max(1e-9, counts.seconds)
    return (
        f"{out}: {counts.pairs:,} pairs from {counts.lines:,} lines in "
        f"{_duration(counts.seconds)} ({speed:,.0f} lines/s){left_out}{ended}"
    )


def _duration(seconds: float) -> str:
    """Such as 2:07 or 1:02:07."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
