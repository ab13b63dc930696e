"""Text of any length through a model and into a file, by all devices at once: the one way in which
back-translation, distillation and scoring read, compute and write.

Every process does all that a chunk needs, from tokenising to compressing its records, so that a GPU
computes for some processes while others prepare or join; this process reads ahead, writes in order
and notes in a journal what is done. A passage that was killed continues where it was, and its
output has the same bytes as if it had not been. Knows chunks and time; what a process makes of a
chunk is a function that it is given.
"""

from __future__ import annotations

import gzip
import lzma
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from dragoman.errors import InputError, OptionError
from dragoman.folder.files import space_for
from dragoman.improving.passage_journal import Counts, Entry, Journal, discard, opened
from dragoman.improving.source_texts import SourceText, TextChunk, chunks_of
from dragoman.tasks.device_shares import is_gpu, shares
from dragoman.tasks.ray_workers import Cluster, actor_devices, by_actors
from dragoman.tasks.shared_gpu import side_by_side
from dragoman.tasks.workers import by_processes

_CHUNKS = 128  # of a text, about, so that no process waits long for the last one
_CHUNK_ON_GPU = (4096, 32_768)  # lines, at least and at most
_CHUNK_ON_CPU = (128, 1024)
_WORTH_SHARING = 50_000  # lines
_PLAIN = "plain"
_COMPRESSION = {".gz": ".gz", ".xz": ".xz"}
_UNKNOWN = (".bz2", ".zst", ".zip")


@dataclass(frozen=True)
class Progress:
    """How far a passage is."""

    done: int  # lines
    total: int
    pairs: int
    seconds: float  # over all attempts
    seconds_left: float  # to the end of the text or of the time, whichever is first


def unheard(progress: Progress) -> None:
    """For those who need not know how far a passage is."""


@dataclass(frozen=True)
class Course:
    """How long something may take, and who is told how far it is.

    `seconds` counts all attempts together; 0 sets no limit. When they are over, the output is
    finished with what there is.
    """

    seconds: float = 0.0
    report: Callable[[Progress], None] = unheard


@dataclass(frozen=True)
class Machines:
    """What computes: which devices, how many processes on each, and which runtime."""

    device: str = "auto"
    processes: int = 0  # for each device; 0: six share a GPU, and a CPU has one for each core
    runtime: str = "auto"
    cluster: Cluster | None = None  # of Ray; default: processes of this machine

    @property
    def devices(self) -> list[str]:
        """The device of each process or actor."""
        if self.cluster is not None:
            return actor_devices(self.device, self.processes)
        return shares(self.device, self.processes)


@dataclass(frozen=True)
class Place:
    """Where a process computes."""

    device: str
    processes: int  # that share the device


@dataclass(frozen=True)
class Records:
    """What a chunk became."""

    content: bytes  # compressed as the output is
    lines: int  # of the chunk
    pairs: int
    dropped: Mapping[str, int] = field(default_factory=dict)


Work = Callable[[TextChunk], Records]
MakeWork = Callable[[Place], Work]  # must be possible to send to another process


@dataclass(frozen=True)
class Passage:
    """Which texts go where, and by what."""

    model: Path
    texts: Sequence[SourceText]
    out: Path
    make_work: MakeWork
    facts: Mapping[str, Any]  # all that decides the output, besides the texts
    machines: Machines = field(default_factory=Machines)


def put_through(passage: Passage, course: Course | None = None) -> Counts:
    """Put the texts through, or continue doing so, and return what became of them; a passage that
    is finished already is left as it is."""
    course = course or Course()
    texts = passage.texts
    devices = passage.machines.devices
    named = [[text.path.name, text.size, text.lines] for text in texts]
    facts = {**passage.facts, "text": named}
    with opened(passage.out, facts, _chunk_size(texts, devices)) as journal:
        if not journal.last.finished:
            _run(passage, _Run(journal, texts, devices), course)
        counts = journal.last.counts
        if counts.pairs:
            journal.settle()
            return counts
    discard(passage.out)
    raise InputError(_nothing_usable(passage, counts, course))


def packed(text: str, kind: str) -> bytes:
    """Records as they stand in an output of this kind; those of several chunks, one behind the
    other, are one file."""
    content = text.encode("utf-8", "backslashreplace")
    if kind == _PLAIN or not content:
        return content
    if kind == ".gz":
        return gzip.compress(content, 6, mtime=0)
    return lzma.compress(content, preset=2)


def kind_of(out: Path) -> str:
    """How an output is compressed, by its name."""
    suffix = out.suffix.lower()
    if suffix in _UNKNOWN:
        raise OptionError(f"--out is {out}; name a file that ends in .tsv, .tsv.gz or .tsv.xz")
    return _COMPRESSION.get(suffix, _PLAIN)


def check_apart(texts: Sequence[Path], out: Path) -> None:
    """Refuse to write over what is read."""
    for text in texts:
        same = out.exists() and text.exists() and os.path.samefile(text, out)
        if same or os.path.abspath(text) == os.path.abspath(out):
            raise OptionError(f"--out is {out}, which is also the input; name another file")


@dataclass(frozen=True)
class _Run:
    journal: Journal
    texts: Sequence[SourceText]
    devices: Sequence[str]  # of each process

    @property
    def total(self) -> int:
        return sum(text.lines for text in self.texts)


def _chunk_size(texts: Sequence[SourceText], devices: Sequence[str]) -> int:
    lines = sum(text.lines for text in texts)
    least, most = _CHUNK_ON_GPU if any(map(is_gpu, devices)) else _CHUNK_ON_CPU
    return min(most, max(least, lines // _CHUNKS))


def _run(passage: Passage, run: _Run, course: Course) -> None:
    """Write the records of all chunks that the output lacks."""
    journal = run.journal
    clock = _Clock(course.seconds, journal.last.counts.seconds, len(run.devices))
    chunks = chunks_of(run.texts, journal.chunk_size)
    remaining = clock.feed(islice(chunks, journal.last.chunks, None))
    os.truncate(journal.part, journal.last.size)
    with _sharing(run), space_for(passage.out), open(journal.part, "ab") as out:
        for records in _worked(passage, run.devices, remaining):
            out.write(records.content)
            out.flush()
            os.fsync(out.fileno())
            journal.note(_after(journal.last, records, clock.tick(records.lines)))
            course.report(clock.progress(journal.last.counts, run.total))
    counts = journal.last.counts
    complete = counts.lines == run.total
    counts = replace(counts, seconds=clock.seconds(), complete=complete)
    journal.note(replace(journal.last, counts=counts, finished=True))


def _nothing_usable(passage: Passage, counts: Counts, course: Course) -> str:
    if not counts.lines:
        return f"the time was over after {course.seconds:.0f} s, before a line was done; allow more"
    reasons = ", ".join(f"{name}: {count:,}" for name, count in counts.dropped.items() if count)
    return (
        f"{passage.model} gave no usable translation of {counts.lines:,} lines ({reasons}); "
        "check that it is trained, and that the text is in its source language"
    )


def _sharing(run: _Run) -> AbstractContextManager[bool]:
    """GPUs that compute for several processes at once, where the text is worth the preparations."""
    is_long = run.total - run.journal.last.counts.lines >= _WORTH_SHARING
    return side_by_side(run.devices if is_long else ())


def _after(last: Entry, records: Records, seconds: float) -> Entry:
    counts = last.counts.plus(records.lines, records.pairs, records.dropped)
    size = last.size + len(records.content)
    return Entry(last.chunks + 1, size, replace(counts, seconds=seconds))


def _worked(
    passage: Passage, devices: Sequence[str], chunks: Iterator[TextChunk]
) -> Iterator[Records]:
    """The records of each chunk in order: by this process, or by several if there is work for
    them."""
    first = list(islice(chunks, len(devices)))
    devices = devices[: len(first)]
    chunks = chain(first, chunks)
    make_work = partial(_placed, passage.make_work, Counter(devices))
    cluster = passage.machines.cluster
    if devices and cluster is not None:
        alone = partial(_placed, passage.make_work, dict.fromkeys(devices, 1))
        return by_actors(alone, devices, chunks, cluster)
    if len(devices) > 1:
        return by_processes(make_work, devices, chunks)
    if not devices:
        return iter(())
    return map(passage.make_work(Place(devices[0], 1)), chunks)


def _placed(make_work: MakeWork, processes: Mapping[str, int], device: str) -> Work:
    return make_work(Place(device, processes[device]))


class _Clock:
    """How long a passage has taken, over all attempts, and when its time is over."""

    def __init__(self, limit: float, before: float, processes: int) -> None:
        self._limit = limit
        self._before = before
        self._processes = processes
        self._start = time.monotonic()
        self._chunks = 0  # of this attempt
        self._lines = 0
        self._first = 0.0  # seconds until the first chunk was done, starting the processes included

    def seconds(self) -> float:
        return self._before + time.monotonic() - self._start

    def feed(self, chunks: Iterator[TextChunk]) -> Iterator[TextChunk]:
        """The chunks for which there is time, as far as the last ones tell."""
        for chunk in chunks:
            if self._limit and self.seconds() + self._seconds_of_a_chunk() > self._limit:
                return
            yield chunk

    def tick(self, lines: int) -> float:
        """Count a chunk that is done; return the seconds until now."""
        if not self._chunks:
            self._first = time.monotonic() - self._start
        self._chunks += 1
        self._lines += lines
        return self.seconds()

    def progress(self, counts: Counts, total: int) -> Progress:
        elapsed = time.monotonic() - self._start
        left = (total - counts.lines) * elapsed / max(1, self._lines)
        if self._limit:
            left = min(left, max(0.0, self._limit - self.seconds()))
        return Progress(counts.lines, total, counts.pairs, self.seconds(), left)

    def _seconds_of_a_chunk(self) -> float:
        """How long a chunk takes from being handed out to its result, while others are worked on.

        All processes begin together, so what the first result took is the most that a chunk can
        take, until each process can have given one. Later the pace tells, without the start.
        """
        if self._chunks <= self._processes:
            return self._first
        since_first = time.monotonic() - self._start - self._first
        return self._processes * since_first / (self._chunks - 1)
