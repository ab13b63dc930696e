"""What commands read and print: lines of text, sentences for people on standard error, JSON on
standard output."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

# What a command ends with that a signal has stopped.
EXIT_CODES = {"SIGHUP": 129, "SIGINT": 130, "SIGTERM": 143}

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def say(sentence: str) -> None:
    """Prints a sentence on standard error, which leaves standard output to results.

    Control characters are written as \\x1b, since a terminal obeys them, and a sentence may name a
    stranger's file.
    """
    print(_CONTROL.sub(_written, sentence), file=sys.stderr, flush=True)


def counted(count: int, unit: str) -> str:
    """A number with its noun: 1 file, 2 files."""
    return f"{count:,} {unit}" if count == 1 else f"{count:,} {unit}s"


def say_nothing(*_: object) -> None:
    """Takes the place of `say` and its like where nobody wants to hear."""


@contextlib.contextmanager
def silenced(silent: bool) -> Iterator[None]:
    """Drops what is printed on standard error meanwhile, if `silent`; errors are printed
    afterwards."""
    if not silent:
        yield
        return
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stderr(nowhere):
        yield


def hint_at_typing() -> None:
    """Tells a person who has to type what is read that this is so."""
    if sys.stdin.isatty():
        key = "Ctrl-Z and Enter" if os.name == "nt" else "Ctrl-D"
        say(f"type a sentence and press Enter; {key} ends")


def print_json(value: Any) -> None:
    """Prints a value as one line of JSON, at once."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def lines_of(file: Path | None) -> Iterator[str]:
    """The lines of a file or of standard input, some at a time."""
    from dragoman.tasks.lines import read_chunks

    if file is None:
        hint_at_typing()
        chunks = read_chunks(sys.stdin.buffer, "standard input")
        yield from chain.from_iterable(chunk.lines for chunk in chunks)
        return
    with open(file, "rb") as opened:
        for chunk in read_chunks(opened, str(file)):
            yield from chunk.lines


class ProgressLine:
    """A line that shows how far a passage is, on a terminal; nothing elsewhere."""

    def __init__(self, what: str, hidden: bool) -> None:
        self._what = what
        self._hidden = hidden
        self._shown: Any = None
        self._task: Any = None

    def report(self, progress: Any) -> None:
        """Show how far it is."""
        if self._hidden or not sys.stderr.isatty():
            return
        if self._shown is None:
            self._start()
        speed = progress.done / max(1e-9, progress.seconds)
        text = (
            f"{self._what}: {progress.done:,} of {progress.total:,} lines, {speed:,.0f} lines/s, "
            f"{duration(progress.seconds_left)} left"
        )
        self._shown.update(
            self._task, description=text, completed=progress.done, total=progress.total
        )

    def say(self, sentence: str) -> None:
        """Print a sentence of what comes next, which has a line of its own to show."""
        self.stop()
        if not self._hidden:
            say(sentence)

    def stop(self) -> None:
        """Leave the line as it is."""
        if self._shown is not None:
            self._shown.stop()
            self._shown = None

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = ("{task.description}", BarColumn(20), TextColumn("{task.percentage:>3.0f}%"))
        self._shown = Progress(*columns, console=Console(stderr=True))
        self._task = self._shown.add_task(self._what)
        self._shown.start()


def duration(seconds: float) -> str:
    """Such as 2:07 or 1:02:07."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _written(control: re.Match[str]) -> str:
    return f"\\x{ord(control[0]):02x}"
