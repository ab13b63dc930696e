"""Lines of text: as a caller gives them, or in chunks of UTF-8 from a file or a pipe. Knows bytes
and their limits; nothing of what becomes of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

from dragoman.errors import InputError, OptionError

FIRST_CHUNK = 8  # lines, so that the first results come at once; each next chunk is twice as long
CHUNK = 2048  # lines of the longest chunks
MAX_LINE = 2**20  # bytes
_CHUNK_BYTES = 2**20  # a chunk of long lines has fewer of them


@dataclass(frozen=True)
class Chunk:
    """Some lines of the input, or the records that they became."""

    last: int  # the number of its last line
    end: int  # bytes of the input up to there
    lines: list[str]
    records: bytes = b""
    sentences: int = 0
    before: tuple[str, ...] = ()  # the lines before it, as far as they are asked for


def growing(most: int = CHUNK) -> Iterator[int]:
    """Yield the sizes of chunks: from FIRST_CHUNK to `most`, twice as long each time."""
    size = min(FIRST_CHUNK, most)
    while True:
        yield size
        size = min(2 * size, most)


def read_chunks(
    file: IO[bytes], name: str, sizes: Iterator[int] | None = None, before: int = 0
) -> Iterator[Chunk]:
    """Lines without their ends, as many at a time as `sizes` says; only \\n ends a line. Each chunk
    comes with the last `before` lines before it."""
    earlier: deque[str] = deque(maxlen=before)
    last = 0
    start = 0
    end = 0
    lines: list[str] = []
    sizes = sizes or growing()
    size = next(sizes)
    while raw := file.readline(MAX_LINE + 1):
        last += 1
        end += len(raw)
        lines.append(_decoded(raw, f"{name}, line {last:,}"))
        if len(lines) == size or end - start > _CHUNK_BYTES:
            yield Chunk(last, end, lines, before=tuple(earlier))
            earlier.extend(lines[-before:] if before else ())
            lines = []
            start = end
            size = next(sizes)
    if lines:
        yield Chunk(last, end, lines, before=tuple(earlier))


def as_lines(given: str | Iterable[str], name: str = "lines") -> Iterator[str]:
    """Yield what a caller gave line by line; a string is one line, not a sequence of letters."""
    if isinstance(given, (bytes, bytearray)) or not isinstance(given, Iterable):
        raise OptionError(f"{name} must be a string or several strings, not {_shown(given)}")
    for line in [given] if isinstance(given, str) else given:
        if not isinstance(line, str):
            raise OptionError(f"each of the {name} must be a string, not {_shown(line)}")
        yield line


def _shown(value: object) -> str:
    return f"{type(value).__name__} {str(value)[:40]!r}"


def _decoded(raw: bytes, where: str) -> str:
    if len(raw) > MAX_LINE:
        raise InputError(f"{where} has over {MAX_LINE:,} bytes; break it up into lines")
    try:
        return raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise InputError(
            f"{where} is not UTF-8; convert the file first: iconv -f LATIN1 (or UTF-16) -t UTF-8"
        ) from None
