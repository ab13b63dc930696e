"""What of a passage of text through a model is done: the file that grows beside its output, and how
a passage that was killed goes on. Knows files and counts; nothing of models.

While a passage runs, its output is OUT.part and OUT.journal says how far it is: a line of JSON for
what is to be done, and one for each chunk that is done. In the end OUT.part becomes OUT, and
OUT.journal stays to say how OUT was made.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from dragoman.errors import InputError, OptionError
from dragoman.folder import files

try:
    import fcntl
except ImportError:  # Windows has no such lock
    fcntl = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Counts:
    """What became of a text."""

    lines: int = 0  # that were read
    pairs: int = 0  # that were written
    dropped: Mapping[str, int] = field(default_factory=dict)  # lines left out, by the reason
    seconds: float = 0.0  # over all attempts
    complete: bool = True  # False if the time was over before the end of the text

    def plus(self, lines: int, pairs: int, dropped: Mapping[str, int]) -> Counts:
        """With those of one more chunk."""
        names = sorted({*self.dropped, *dropped})
        both = {name: self.dropped.get(name, 0) + dropped.get(name, 0) for name in names}
        return replace(self, lines=self.lines + lines, pairs=self.pairs + pairs, dropped=both)


@dataclass(frozen=True)
class Entry:
    """How far a passage is."""

    chunks: int = 0  # that are done
    size: int = 0  # bytes of the output
    counts: Counts = field(default_factory=Counts)
    finished: bool = False


class Journal:
    """The journal of one output; `opened` gives it."""

    def __init__(self, out: Path, file: IO[bytes], chunk_size: int) -> None:
        self.out = out
        self.part = part_of(out)
        self.chunk_size = chunk_size  # lines; what was begun with one goes on with it
        self.last = Entry()
        self._file = file

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Read how far the output is, or write down that it begins."""
        self._file.seek(0)
        lines = self._file.read().split(b"\n")
        whole = lines[:-1]
        if not whole:
            self._file.truncate(0)
            self.part.touch()
            self._write({"facts": facts, "chunk_size": self.chunk_size})
            return
        head, entries = self._parsed(whole)
        _compare(self.out, head["facts"], json.loads(json.dumps(facts)))
        self._file.truncate(sum(len(line) + 1 for line in whole))  # a kill may cut a line off
        self.chunk_size = head["chunk_size"]
        self.last = self._last(entries)

    def note(self, entry: Entry) -> None:
        """Note that a chunk is done, after its records are on the disk."""
        self._write(asdict(entry))
        self.last = entry

    def settle(self) -> None:
        """Put an output that is finished in its place."""
        if self.part.exists():
            files.settle(self.part, self.out)

    def _parsed(self, lines: list[bytes]) -> tuple[dict[str, Any], list[Entry]]:
        try:
            head, *others = [json.loads(line) for line in lines]
            entries = [_entry(values) for values in others]
            if isinstance(head["facts"], dict) and head["chunk_size"] > 0:
                return head, entries
        except (ValueError, KeyError, TypeError):
            pass
        raise InputError(
            f"{journal_of(self.out)} is damaged; delete it and {self.part} to start again"
        )

    def _last(self, entries: list[Entry]) -> Entry:
        """The last entry whose records are in the output."""
        if self.part.exists():
            there = self.part.stat().st_size
            return max((one for one in entries if one.size <= there), key=_chunks, default=Entry())
        if entries and entries[-1].finished and self.out.exists():
            return entries[-1]
        raise InputError(f"{self.out} is gone; delete {journal_of(self.out)} to make it again")

    def _write(self, values: Mapping[str, Any]) -> None:
        with files.space_for(self.out):
            self._file.write(json.dumps(values).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())


def part_of(out: Path) -> Path:
    """Where an output grows."""
    return out.with_name(f"{out.name}.part")


def journal_of(out: Path) -> Path:
    """The journal of an output."""
    return out.with_name(f"{out.name}.journal")


@contextmanager
def opened(out: Path, facts: Mapping[str, Any], chunk_size: int) -> Iterator[Journal]:
    """The journal of an output, new or to be continued; nobody else can have it open.

    `facts` are all that decides what the output is. A journal of other facts, and an output without
    a journal, are refused: nothing that somebody may need is overwritten.
    """
    place = journal_of(out)
    files.check_place(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        for path in (out, part_of(out)):
            if path.exists():
                raise OptionError(f"{path} exists already; name another --out, or delete it")
    with files.space_for(out), open(place, "a+b") as file:
        _lock(file, out)
        journal = Journal(out, file, chunk_size)
        journal.begin(facts)
        yield journal


def discard(out: Path) -> None:
    """Remove a journal and its unfinished output, both made by this process."""
    part_of(out).unlink(missing_ok=True)
    journal_of(out).unlink(missing_ok=True)


def _entry(values: Mapping[str, Any]) -> Entry:
    counts = Counts(**values["counts"])
    return Entry(values["chunks"], values["size"], counts, values["finished"])


def _chunks(entry: Entry) -> tuple[int, bool]:
    return entry.chunks, entry.finished


def _compare(out: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for name in now:
        if before.get(name) != now[name]:
            raise OptionError(
                f"{journal_of(out)} is of another run: {name} was {_shown(before.get(name))} and "
                f"is {_shown(now[name])}; name another --out, or delete it to start again"
            )


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _lock(file: IO[bytes], out: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OptionError(
            f"another process is writing {out}; wait for it or name another --out"
        ) from None
