"""Text of any length through a translator: read in chunks, shared out among devices, written in
order, resumed after a kill.

Knows lines, records, processes and the progress line; how a line is translated is the translator's
business.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing import connection, get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any

from dragoman.data.corpus import MAX_LINE
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import DragomanError, InputError, OptionError
from dragoman.tasks.translate import CHUNK, Translation, Translator
from dragoman.text.glossary import Glossary
from dragoman.text.words import pharaoh

_TAB = "\t"
_BYTES = 2**20  # of a chunk, which may have fewer lines for it


@dataclass(frozen=True)
class Job:
    """What is translated with and what is written; a process makes its translator from it."""

    model: Path
    options: SearchOptions
    runtime: str = "auto"
    shortlist: bool = False
    prefix: str = ""
    glossary: Path | None = None
    careful: bool = False
    split: bool = True
    align: bool = False
    jsonl: bool = False


@dataclass(frozen=True)
class Chunk:
    """Some lines of the input, or what they became."""

    last: int  # the number of its last line
    end: int  # bytes of the input up to there
    lines: list[str]
    records: bytes = b""
    sentences: int = 0


def translate_stream(
    job: Job, device: str, file: Path | None, out: Path | None, resume: bool
) -> None:
    """From a file or standard input to a file or standard output, in constant memory; a chunk's
    records are flushed at once."""
    with ExitStack() as stack:
        source = stack.enter_context(open(file, "rb")) if file else sys.stdin.buffer
        if resume and (out is None or not source.seekable()):
            raise OptionError(
                "--resume goes on with an output file; it needs --out, and an input that is a file"
            )
        if (
            out is not None
            and out.is_file()
            and os.path.samestat(out.stat(), os.fstat(source.fileno()))
        ):
            raise OptionError(f"--out is {out}, which is also the input; name another file")
        typed = source.isatty()  # whoever types a line waits for its translation
        chunks = read_chunks(source, str(file or "standard input"), 1 if typed else CHUNK)
        if resume and out is not None and out.exists():
            chunks = _remaining(chunks, out, job.options.nbest > 1 and not job.jsonl)
        done = _shared(job, device, chunks, typed)
        sink = (
            stack.enter_context(open(out, "ab" if resume else "wb")) if out else sys.stdout.buffer
        )
        size = os.fstat(source.fileno()).st_size if source.seekable() else None
        for chunk in _shown(done, size, quiet=typed or sink.isatty()):
            sink.write(chunk.records)
            sink.flush()


def read_chunks(file: IO[bytes], name: str, size: int = CHUNK) -> Iterator[Chunk]:
    """Lines of UTF-8 text without their ends; only \\n ends a line."""
    last = start = end = 0
    lines: list[str] = []
    while raw := file.readline(MAX_LINE + 1):
        last, end = last + 1, end + len(raw)
        lines.append(_decoded(raw, f"{name}, line {last:,}"))
        if len(lines) == size or end - start > _BYTES:
            yield Chunk(last, end, lines)
            lines, start = [], end
    if lines:
        yield Chunk(last, end, lines)


def record(job: Job, number: int, line: str, found: Translation) -> str:
    """What is written for a line: one line, or one for each translation where several were asked
    for."""
    if job.jsonl:
        values = {"source": line, **_values(found), "flags": found.flags}
        values |= {"alignment": found.alignment} if job.align else {}
        values |= (
            {"alternatives": [_values(other) for other in found.alternatives]}
            if job.options.nbest > 1
            else {}
        )
        return json.dumps(values, ensure_ascii=False, allow_nan=False) + "\n"
    if job.options.nbest > 1:
        every = [found, *found.alternatives]
        return "".join(
            f"{number}\t{one.score:.4f}\t{one.text.replace(_TAB, ' ')}\n" for one in every
        )
    return (
        f"{found.text.replace(_TAB, ' ')}\t{pharaoh(found.alignment)}\n"
        if job.align
        else f"{found.text}\n"
    )


def _values(found: Translation) -> dict[str, Any]:
    numbers = [found.score, found.confidence, *found.token_probabilities]
    # JSON has no word for what is not finite.
    score, sure, *chances = [
        None if x is None or not math.isfinite(x) else round(x, 6) for x in numbers
    ]
    return {
        "text": found.text,
        "score": score,
        "tokens": found.tokens,
        "token_probabilities": chances,
        "confidence": sure,
    }


def _decoded(raw: bytes, place: str) -> str:
    if len(raw) > MAX_LINE:
        raise InputError(f"{place} has over {MAX_LINE:,} bytes; break it up into lines")
    try:
        return raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise InputError(
            f"{place} is not UTF-8; convert the file first: iconv -f LATIN1 (or UTF-16) -t UTF-8"
        ) from None


def _remaining(chunks: Iterator[Chunk], out: Path, numbered: bool) -> Iterator[Chunk]:
    """The chunks that the output lacks. One that it has in part is cut off and done again whole,
    since the draws of a sample, and the last digits of a score, depend on what is translated
    together."""
    done, size = max(_marks(out, numbered), key=lambda mark: mark[0])
    last = 0
    for chunk in chunks:
        last = chunk.last
        if last > done:
            size = next(
                size
                for records, size in _marks(out, numbered)
                if records == last - len(chunk.lines)
            )
            chunks = chain([chunk], chunks)
            break
    if last < done:
        raise InputError(
            f"{out} has {done:,} records and the input {last:,} lines, so it is not its translation; check both"
        )
    os.truncate(out, size)
    return chunks


def _marks(out: Path, numbered: bool) -> Iterator[tuple[int, int]]:
    """(records, bytes) wherever an output may be cut. Of records that are numbered the last may
    not be whole."""
    position = 0
    yield 0, 0
    with open(out, "rb") as file:
        for count, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            number = line.split(b"\t")[0]
            if numbered and not number.isdigit():
                raise InputError(
                    f"{out} has a line without a number, so --nbest did not write it; name another --out"
                )
            yield (int(number) - 1, position) if numbered else (count, position + len(line))
            position += len(line)


def _shared(job: Job, device: str, chunks: Iterator[Chunk], typed: bool) -> Iterator[Chunk]:
    """The records of each chunk in order: by this process, or by one for each device where there
    is work for several."""
    devices = device.split(",")
    if device in ("auto", "cuda") and job.runtime in ("auto", "torch"):
        import torch

        devices = [f"cuda:{number}" for number in range(torch.cuda.device_count())] or devices
    first = [] if typed or len(devices) == 1 else list(islice(chunks, len(devices)))
    chunks = chain(first, chunks)
    return (
        _by_processes(job, devices[: len(first)], chunks)
        if len(first) > 1
        else map(_worker(job, devices[0]), chunks)
    )


def _worker(job: Job, device: str) -> Callable[[Chunk], Chunk]:
    glossary = Glossary.load(job.glossary) if job.glossary else None
    translator = Translator.load(job.model, device, job.runtime, job.shortlist)

    def work(chunk: Chunk) -> Chunk:
        lines = chunk.lines
        found = translator.translate(
            lines,
            job.options,
            prefix=job.prefix,
            glossary=glossary,
            align=job.align,
            careful=job.careful,
            split=job.split,
        )
        rows = enumerate(zip(lines, found, strict=True), chunk.last - len(lines) + 1)
        text = "".join(record(job, number, line, one) for number, (line, one) in rows)
        sentences = sum(
            len(one.token_probabilities) - len(one.tokens) for one in found
        )  # the probabilities have their ends
        return Chunk(chunk.last, chunk.end, [], text.encode("utf-8", "backslashreplace"), sentences)

    return work


def _by_processes(job: Job, devices: Sequence[str], chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Each process works at one chunk; for each at most one more waits for its turn to be written."""
    workers: dict[connection.Connection, BaseProcess] = {}
    busy: dict[connection.Connection, int] = {}
    waiting: dict[int, Chunk] = {}
    sent = written = 0
    try:
        _start(job, devices, workers)
        while True:
            idle = [pipe for pipe in workers if pipe not in busy][
                : 2 * len(devices) - sent + written
            ]
            for pipe, chunk in zip(idle, chunks, strict=False):
                with suppress(ConnectionError):  # its last word is read below
                    pipe.send(chunk)
                busy[pipe], sent = sent, sent + 1
            if written in waiting:
                yield waiting.pop(written)
                written += 1
            elif busy:
                ready = connection.wait(busy)
                for pipe in [one for one in busy if one in ready]:
                    waiting[busy.pop(pipe)] = _received(pipe, workers[pipe].name)
            else:
                return
    finally:
        for process in workers.values():
            process.terminate()
            process.join()


def _start(
    job: Job, devices: Sequence[str], workers: dict[connection.Connection, BaseProcess]
) -> None:
    context = get_context("spawn")
    handler = signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # which the processes inherit: Ctrl-C is for this one to answer
    for device in devices:
        ours, theirs = context.Pipe()
        workers[ours] = context.Process(
            target=_serve, args=(job, device, theirs), name=device, daemon=True
        )
        workers[ours].start()
        theirs.close()  # so that the end of the process is the end of the pipe
    signal.signal(signal.SIGINT, handler)


def _serve(job: Job, device: str, pipe: connection.Connection) -> None:
    """A process of its own: answers each chunk, until the other side has gone."""
    try:
        work = _worker(job, device)
        while True:
            pipe.send(work(pipe.recv()))
    except (EOFError, ConnectionError):
        pass
    except (DragomanError, OSError) as error:
        pipe.send(error)


def _received(pipe: connection.Connection, device: str) -> Chunk:
    try:
        answer = pipe.recv()
    except (EOFError, ConnectionError):
        raise DragomanError(
            f"the process on {device} has ended, perhaps for want of memory; name fewer devices"
        ) from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _shown(done: Iterable[Chunk], size: int | None, quiet: bool) -> Iterator[Chunk]:
    """The same, with a line of progress where standard error is a terminal; `size` is the
    input's, where it is known."""
    from rich import progress
    from rich.console import Console

    console, start = Console(stderr=True), time.monotonic()
    columns = (
        "{task.description}",
        progress.BarColumn(20),
        progress.TaskProgressColumn(),
        progress.TimeRemainingColumn(),
    )
    quiet = quiet or not console.is_terminal
    sentences = 0
    with progress.Progress(
        *columns, console=console, disable=quiet, speed_estimate_period=600
    ) as bar:
        task = bar.add_task("starting", total=size)
        for chunk in done:
            yield chunk
            sentences += chunk.sentences
            said = (
                f"{chunk.last:,} lines, {sentences / (time.monotonic() - start):,.0f} sentences/s"
            )
            bar.update(task, description=said, completed=chunk.end)
