"""The lines of a text file, compressed or not. Knows bytes and UTF-8; does not judge what it reads.

Lines end at a line feed and nowhere else, so that the characters which Python also calls line
breaks (U+2028, form feed) never shift one side against the other.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import importlib
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import IO, Any

from dragoman.data.zstd_frames import ZstdFrames
from dragoman.errors import InputError, MissingDependencyError

# Bytes. A longer "line" is not a sentence, and is skipped without being held in memory.
MAX_LINE = 1 << 20
CHUNK = MAX_LINE
# Is called with the kind of a finding (see check_report.py), its location and its text.
Listener = Callable[[str, str, str], None]
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


def location(
    file: str,
    number: int,
    unit: str = "line",
) -> str:
    """Return where something stands in a file, for people to read."""
    return f"{file}, {unit} {number:,}"


def read_lines(file: str, notify: Listener) -> Iterator[str | None]:
    """Yield the lines of a UTF-8 file without their ends.

    A line that is not text or far too long is None.
    """
    number = 0
    rest = b""
    windows_ends = 0
    for chunk in _utf8_chunks(file, notify):
        windows_ends += chunk.count(b"\r\n")
        whole, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            rest = (rest + tail)[: MAX_LINE + 1]
            continue
        lines = _decode(rest + whole, file, number, notify)
        yield from lines
        number += len(lines)
        rest = tail
    if rest:
        yield from _decode(rest, file, number, notify)
    if windows_ends:
        notify("crlf", file, f"{windows_ends:,} lines end with CR LF")


def _utf8_chunks(file: str, notify: Listener) -> Iterator[bytes]:
    """Yield the bytes of a file in UTF-8 and without a byte order mark.

    A file in UTF-16, which Windows calls "Unicode", is converted as it is read.
    """
    chunks = read_chunks(file, notify)
    first = next(chunks, b"")
    encoding = _utf16(first)
    if not encoding:
        if first.startswith(codecs.BOM_UTF8):
            notify("mark", file, "it begins with a byte order mark")
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from chunks
        return
    notify("utf16", file, "this file is UTF-16, not UTF-8")
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in chain([first], chunks):
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _utf16(beginning: bytes) -> str:
    """Return the encoding of a file in UTF-16, judged by its mark or by its many zero bytes."""
    if beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    some = beginning[: min(len(beginning), 4096) // 2 * 2]
    high = some[1::2].count(0)
    low = some[0::2].count(0)
    most = 0.4 * len(some) / 2
    if not some or max(high, low) < max(2, most) or min(high, low) > 0.1 * max(high, low):
        return ""
    return "utf-16-le" if high > low else "utf-16-be"


def read_chunks(file: str, notify: Listener) -> Iterator[bytes]:
    """Yield the uncompressed bytes of a file.

    The next chunk is read and decompressed in a thread while this one is used.
    """
    failures = damages(file)
    with _open(file) as opened, ThreadPoolExecutor(1) as pool:
        next_chunk = pool.submit(opened.read, CHUNK)
        while True:
            try:
                chunk = next_chunk.result()
            except failures as error:
                notify("damaged", file, f"cannot be read to its end ({error})")
                return
            if not chunk:
                return
            next_chunk = pool.submit(opened.read, CHUNK)
            yield chunk


def _decode(
    block: bytes,
    file: str,
    number: int,
    notify: Listener,
) -> Sequence[str | None]:
    """Return the lines of a block that follows line `number`.

    Only its first line can be too long, since a chunk is not longer than a line may be.
    """
    block = block.removesuffix(b"\r").replace(b"\r\n", b"\n")
    if block.find(b"\n", 0, MAX_LINE + 1) >= 0 or len(block) <= MAX_LINE:
        try:
            return block.decode("utf-8").split("\n")
        except UnicodeDecodeError:
            pass
    lines: list[str | None] = []
    for line in block.split(b"\n"):
        number += 1
        lines.append(_decode_one(line, file, number, notify))
    return lines


def _decode_one(
    line: bytes,
    file: str,
    number: int,
    notify: Listener,
) -> str | None:
    if len(line) > MAX_LINE:
        beginning = line[:1000].decode("utf-8", "replace")
        notify("huge", location(file, number), beginning)
        return None
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        start = max(0, error.start - 30)
        context = line[start : error.start + 30].decode("utf-8", "backslashreplace")
        text = f"not UTF-8 (byte 0x{line[error.start]:02x}) at {context}"
        notify("encoding", location(file, number), text)
        return None


def decompressed(file: IO[bytes], suffix: str) -> IO[bytes]:
    """The content of a file that is open, by the ending of its name."""
    if suffix not in COMPRESSED:
        return file
    stream: IO[bytes] = _openers()[suffix](file, "rb")
    return stream


def _openers() -> dict[str, Any]:
    return {
        ".gz": gzip.open,
        ".bz2": bz2.open,
        ".xz": lzma.open,
        ".zst": _open_zstd,
    }


def _open(file: str) -> IO[bytes]:
    suffix = Path(file).suffix.lower()
    try:
        return _openers().get(suffix, open)(file, "rb")
    except OSError as error:
        raise InputError(
            f"{file} cannot be opened ({error.strerror}); name a text file that can be read"
        ) from None


def _open_zstd(file: str | IO[bytes], mode: str) -> IO[bytes]:
    module = _zstd()
    if hasattr(module, "ZstdFile"):
        return module.open(file, mode)
    stream = open(file, mode) if isinstance(file, str) else file  # noqa: SIM115
    # A reader by itself has no lines.
    return io.BufferedReader(ZstdFrames(stream, module.ZstdDecompressor()), CHUNK)


def _zstd() -> Any:
    """Return Python's own module (from 3.14 on), or the package."""
    for name in ("compression.zstd", "zstandard"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise MissingDependencyError(
        "reading .zst files needs a package on this Python; run: pip install zstandard"
    )


def damages(file: str) -> tuple[type[Exception], ...]:
    """What is raised while a file is read that is damaged."""
    zstd = (_zstd().ZstdError,) if file.lower().endswith(".zst") else ()
    return (EOFError, OSError, lzma.LZMAError, zlib.error, *zstd)
