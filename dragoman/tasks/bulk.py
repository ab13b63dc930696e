"""Text of any length through a translator: read in chunks, shared out among devices, written in
order, resumed after a kill.

Knows lines, records and the progress line; how a line is translated is the translator's business.
"""

from __future__ import annotations

import functools
import io
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, islice, repeat
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from dragoman.errors import InputError, OptionError
from dragoman.folder.files import space_for
from dragoman.folder.layout import CTRANSLATE2_WEIGHTS
from dragoman.tasks.device_shares import is_gpu, shares
from dragoman.tasks.lines import CHUNK, Chunk, growing, read_chunks
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translate import Translator
from dragoman.tasks.translation import Translation
from dragoman.text.words import pharaoh

if TYPE_CHECKING:
    from dragoman.tasks.chained import ChainedTranslator

_TAB = "\t"
# Bytes of text from which on several processes are worth their start.
_LONG_ON_GPU = 8 * 2**20
_LONG_ON_CPU = 2**20


@dataclass(frozen=True)
class Job:
    """What to translate with, what to ask for and what to write; each process loads its translator
    from it."""

    model: Path
    request: TranslateRequest = field(default_factory=TranslateRequest)
    runtime: str = "auto"
    shortlist: bool = False
    jsonl: bool = False
    then: Path | None = None  # a second model, which translates what the first has made

    def __post_init__(self) -> None:
        if self.request.options.nbest > 1 and self.request.align and not self.jsonl:
            raise OptionError("--nbest and --alignments both add columns; add --jsonl to get both")

    def load(self, device: str) -> Translator | ChainedTranslator:
        """Load the model, or both."""
        first = Translator.load(self.model, device, self.runtime, self.shortlist)
        if self.then is None:
            return first
        from dragoman.tasks.chained import ChainedTranslator

        second = Translator.load(self.then, device, self.runtime, self.shortlist)
        return ChainedTranslator(first, second)

    @property
    def numbered(self) -> bool:
        """Whether a line of the input becomes several numbered lines."""
        return self.request.options.nbest > 1 and not self.jsonl


@dataclass(frozen=True)
class Streams:
    """Where the text comes from and where its translation goes."""

    source: Path | None = None  # default: standard input
    out: Path | None = None  # default: standard output
    resume: bool = False  # continue an unfinished `out`
    overwrite: bool = False  # replace what `out` holds


def translate_stream(job: Job, device: str, streams: Streams) -> None:
    """Translates from one stream to another in constant memory; the records of a chunk are flushed
    at once."""
    with ExitStack() as stack:
        source: IO[bytes] = sys.stdin.buffer
        if streams.source is not None:
            source = stack.enter_context(open(streams.source, "rb"))
        _check(streams, source)
        typed = source.isatty()  # who types a line waits for its translation
        name = str(streams.source or "standard input")
        sizes = repeat(1) if typed else growing(CHUNK)
        chunks = read_chunks(source, name, sizes, job.request.context)
        if streams.resume and streams.out is not None and streams.out.exists():
            chunks = _remaining(chunks, streams.out, job.numbered)
        size = os.fstat(source.fileno()).st_size if source.seekable() else None
        devices = [device.split(",")[0]] if typed else _devices(job, device, size)
        if any(map(is_gpu, devices)):
            from dragoman.tasks.shared_gpu import side_by_side

            stack.enter_context(side_by_side(devices))
        translated = _translated(job, devices, chunks)
        place = streams.out or Path("standard output")
        stack.enter_context(space_for(place, _advice(streams, source)))
        sink = _standard_output(stack)
        if streams.out is not None:
            mode = "ab" if streams.resume else "wb"
            sink = stack.enter_context(open(streams.out, mode))
        done = 0
        try:
            for chunk in _with_progress(translated, size, quiet=typed or sink.isatty()):
                sink.write(chunk.records)
                done = chunk.last  # what is not flushed yet will be when the file is closed
                sink.flush()
        except KeyboardInterrupt:
            raise KeyboardInterrupt("" if typed else _farewell(done, streams, source)) from None


def _standard_output(stack: ExitStack) -> IO[bytes]:
    """Standard output with a buffer, which `python -u` leaves out: so that lines are counted before
    anybody can read them."""
    output: Any = sys.stdout.buffer
    if not isinstance(output, io.RawIOBase):
        return cast(IO[bytes], output)
    buffered = io.BufferedWriter(output)
    stack.callback(buffered.detach)
    return buffered


def record(job: Job, number: int, line: str, translation: Translation, via: str = "") -> str:
    """What is written for a line: one line, or with --nbest one for each translation."""
    if job.jsonl:
        return _json_record(job, line, translation, via)
    if job.numbered:
        best_first = (translation, *translation.alternatives)
        return "".join(_numbered_row(number, one) for one in best_first)
    if job.request.align:
        text = translation.text.replace(_TAB, " ")
        return f"{text}\t{pharaoh(translation.alignment)}\n"
    return f"{translation.text}\n"


def _numbered_row(number: int, translation: Translation) -> str:
    text = translation.text.replace(_TAB, " ")
    return f"{number}\t{translation.score:.4f}\t{text}\n"


def _json_record(job: Job, line: str, translation: Translation, via: str) -> str:
    values = {"source": line, **_values(translation), "flags": translation.flags}
    if via:
        values["via"] = via
    if job.request.align:
        values["alignment"] = translation.alignment
    if job.request.options.nbest > 1:
        values["alternatives"] = [_values(other) for other in translation.alternatives]
    return json.dumps(values, ensure_ascii=False, allow_nan=False) + "\n"


def _values(translation: Translation) -> dict[str, Any]:
    return {
        "text": translation.text,
        "score": _finite(translation.score),
        "tokens": translation.tokens,
        "token_probabilities": [_finite(value) for value in translation.token_probabilities],
        "confidence": _finite(translation.confidence),
    }


def _finite(value: float | None) -> float | None:
    """A number as JSON can hold it: JSON has no word for what is not finite."""
    return None if value is None or not math.isfinite(value) else round(value, 6)


def _check(streams: Streams, source: IO[bytes]) -> None:
    out = streams.out
    if streams.resume and (out is None or not source.seekable()):
        raise OptionError("--resume needs --out, and an input that is a file")
    if out is None or not out.is_file():
        return
    if os.path.samestat(out.stat(), os.fstat(source.fileno())):
        raise OptionError(f"--out is {out}, which is also the input; name another file")
    if out.stat().st_size and not (streams.resume or streams.overwrite):
        or_resume = ", or --resume to continue it" if source.seekable() else ""
        raise OptionError(f"{out} exists already; add --overwrite to replace it{or_resume}")


def _advice(streams: Streams, source: IO[bytes]) -> str:
    """What to do when the disk is full."""
    again = "free some space, then run the command again"
    resumable = streams.out is not None and source.seekable()
    return f"{again} with --resume" if resumable else again


def _farewell(done: int, streams: Streams, source: IO[bytes]) -> str:
    """What is kept when a user interrupts, and how to continue."""
    place = streams.out or "standard output"
    kept = f"stopped: the first {done:,} lines are translated and in {place}"
    if not done:
        kept = "stopped before any new line was translated"
    if streams.out is not None and source.seekable():
        return f"{kept}; continue with the same command and --resume"
    if not done:
        return kept
    return f"{kept}; continue with the input from line {done + 1:,} on"


def _remaining(chunks: Iterator[Chunk], out: Path, numbered: bool) -> Iterator[Chunk]:
    """The chunks that the output lacks. A chunk that is there in part is removed and translated
    again as a whole, since the draws of a sample, and the last digits of a score, depend on what
    is translated together."""
    done, size = max(_marks(out, numbered), key=lambda mark: mark[0])
    last = 0
    for chunk in chunks:
        last = chunk.last
        if last > done:
            before = last - len(chunk.lines)
            sizes = (size for records, size in _marks(out, numbered) if records == before)
            size = next(sizes)
            chunks = chain([chunk], chunks)
            break
    if last < done:
        raise InputError(
            f"{out} has {done:,} records but the input {last:,} lines, so {out} is not its "
            "translation; check both"
        )
    os.truncate(out, size)
    return chunks


def _marks(out: Path, numbered: bool) -> Iterator[tuple[int, int]]:
    """(records, bytes) wherever an output may be cut. The last of numbered records may not be
    whole."""
    position = 0
    yield 0, 0
    with open(out, "rb") as file:
        for count, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            end = position + len(line)
            if numbered:
                yield _number(line, out) - 1, position
            else:
                yield count, end
            position = end


def _number(line: bytes, out: Path) -> int:
    number = line.split(b"\t")[0]
    if not number.isdigit():
        raise InputError(
            f"{out} has a line without a number, so --nbest did not write it; name another --out"
        )
    return int(number)


def _devices(job: Job, device: str, size: int | None) -> list[str]:
    """The device of each process: as many processes as suit a device if the text is long, else
    one; `size` is that of the text in bytes, if it is known."""
    if job.runtime == "ctranslate2":  # which has threads of its own
        return [device]
    converted = job.runtime == "auto" and (job.model / CTRANSLATE2_WEIGHTS).exists()
    if job.runtime == "int8" and device == "auto":
        device = "cpu"
    one_each = shares(device, 1)
    long = _LONG_ON_GPU if is_gpu(one_each[0]) else _LONG_ON_CPU
    # Several processes could each find another runtime the fastest.
    is_race = converted and not is_gpu(one_each[0])
    return one_each if size is None or size < long or is_race else shares(device)


def _translated(job: Job, devices: list[str], chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The records of each chunk in order: by this process, or by one for each of the devices if
    there is work for several."""
    first = list(islice(chunks, len(devices))) if len(devices) > 1 else []
    chunks = chain(first, chunks)
    if len(first) > 1:
        from dragoman.tasks.workers import by_processes

        used = devices[: len(first)]
        return by_processes(functools.partial(_worker, job, Counter(used)), used, chunks)
    return map(_worker(job, {}, devices[0]), chunks)


def _worker(job: Job, processes: Mapping[str, int], device: str) -> Callable[[Chunk], Chunk]:
    """What a process does with a chunk; `processes` are those of each device."""
    translator = job.load(device)
    if is_gpu(device) and processes.get(device, 1) > 1:
        from dragoman.tasks.shared_gpu import take_smaller_batches

        for part in translator.parts:
            take_smaller_batches(part.runtime)
    via = translator.via

    def work(chunk: Chunk) -> Chunk:
        first = chunk.last - len(chunk.lines) + 1
        translations = translator.translate(chunk.lines, job.request, before=chunk.before)
        rows = zip(chunk.lines, translations, strict=True)
        records = [record(job, number, *row, via) for number, row in enumerate(rows, first)]
        encoded = "".join(records).encode("utf-8", "backslashreplace")
        return Chunk(chunk.last, chunk.end, [], encoded, sum(map(_sentences, translations)))

    return work


def _sentences(translation: Translation) -> int:
    """Each sentence has an end, which has a probability but is not among the tokens."""
    return len(translation.token_probabilities) - len(translation.tokens)


def _with_progress(chunks: Iterable[Chunk], size: int | None, quiet: bool) -> Iterator[Chunk]:
    """The chunks, with a line of progress if standard error is a terminal; `size` is that of the
    input if it is known."""
    if quiet or not sys.stderr.isatty():
        yield from chunks
        return
    from rich import progress
    from rich.console import Console

    columns = (
        "{task.description}",
        progress.BarColumn(20),
        progress.TaskProgressColumn(),
        progress.TimeRemainingColumn(),
    )
    start = time.monotonic()
    sentences = 0
    with progress.Progress(
        *columns, console=Console(stderr=True), speed_estimate_period=600
    ) as bar:
        task = bar.add_task("starting", total=size)
        for chunk in chunks:
            yield chunk
            sentences += chunk.sentences
            speed = sentences / (time.monotonic() - start)
            description = f"{chunk.last:,} lines, {speed:,.0f} sentences/s"
            bar.update(task, description=description, completed=chunk.end)
