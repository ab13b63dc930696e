"""Parallel files to pairs of strings, one pair at a time. Knows formats and compression; does not
judge what it reads.

Lines end at a line feed and nowhere else, so that the characters which Python also calls line
breaks (U+2028, form feed) never shift one side against the other.
"""

from __future__ import annotations

import bz2
import gzip
import importlib
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any

from dragoman.data.tmx import MalformedError, units
from dragoman.errors import InputError, MissingDependencyError, OptionError

MAX_LINE = (
    1 << 20
)  # bytes; a longer "line" is no sentence, and is passed over without being held in memory
CHUNK = MAX_LINE
Pair = tuple[
    str | None, str | None
]  # None: a line that cannot be used, which the listener has been told
Listener = Callable[[str, str, str], None]  # kind of finding (see report.py), where, what
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_NO_LANGUAGES = (
    "txt",
    "src",
    "tgt",
    "trg",
    "ref",
    "raw",
    "tok",
    "bpe",
    "out",
)  # common endings that look like one
_SELF_CONTAINED = (".tsv", ".tmx", ".jsonl")


@dataclass(frozen=True)
class Corpus:
    """One self-contained file, or a source file and its target file; a lone source file where
    only sources matter."""

    files: tuple[str, ...]
    weight: float = 1.0

    @property
    def kind(self) -> str:
        """.tsv, .tmx, .jsonl, or anything else for plain lines."""
        return _plain_name(self.files[0]).suffix.lower()

    def place(self, number: int) -> str:
        """Where the pair of that number stands."""
        return _place(self.files[0], number, "unit" if self.kind == ".tmx" else "line")


def corpora(
    files: Sequence[str], weights: Sequence[float] = (), lone_source: bool = False
) -> list[Corpus]:
    """The files of a command line as corpora: plain files go in twos, source then target."""
    found: list[tuple[str, ...]] = []
    waiting = iter(files)
    for file in waiting:
        if _plain_name(file).suffix.lower() in _SELF_CONTAINED:
            found.append((file,))
            continue
        target = next(waiting, None)
        if target is None and not lone_source:
            raise InputError(
                f"{file} has no partner; give the source file and then the target file, or a .tsv, .tmx or .jsonl file"
            )
        found.append((file,) if target is None else (file, target))
    if weights and len(weights) != len(found):
        raise OptionError(
            f"data.weights has {len(weights)} numbers for {len(found)} corpora; give one for each"
        )
    for file in files:
        if not Path(file).is_file():
            problem = "is a folder" if Path(file).is_dir() else "does not exist"
            raise InputError(f"{file} {problem}; name a text file")
    return [
        Corpus(names, weight)
        for names, weight in zip(found, weights or [1.0] * len(found), strict=True)
    ]


def languages(found: Sequence[Corpus], source: str = "", target: str = "") -> tuple[str, str]:
    """The two languages: as given, or from the first corpus whose names or contents tell them;
    empty where none does."""
    told = [_languages_of(corpus) for corpus in found]
    first = next((pair for pair in told if all(pair)), ("", ""))
    source, target = source or first[0], target or first[1]
    for corpus, pair in zip(found, told, strict=True):
        if source != target and pair == (target, source):
            raise InputError(
                f"{corpus.files[0]} is read as the {source} side but is named as {target}; give source files first"
            )
    return source, target


def ignore(kind: str, place: str, text: str) -> None:
    """A listener for a first look."""


def read_pairs(corpus: Corpus, source: str, target: str, tell: Listener) -> Iterator[Pair]:
    """The pairs of a corpus in order. Whatever is wrong goes to `tell`, which may raise; if it
    does not, reading goes on."""
    if corpus.kind == ".tmx":
        return _read_tmx(corpus.files[0], source, target, tell)
    if corpus.kind == ".tsv":
        return _read_tsv(corpus.files[0], tell)
    if corpus.kind == ".jsonl":
        return _read_jsonl(corpus.files[0], source, target, tell)
    if len(corpus.files) == 1:
        return ((line, line) for line in _lines(corpus.files[0], tell))
    return _read_aligned(corpus.files[0], corpus.files[1], tell)


def _read_aligned(source: str, target: str, tell: Listener) -> Iterator[Pair]:
    end = object()
    both = zip_longest(_lines(source, tell), _lines(target, tell), fillvalue=end)
    for number, (left, right) in enumerate(both):
        if left is end or right is end:
            more = number + 1 + sum(1 for _ in both)
            counts = (number, more) if left is end else (more, number)
            tell("unequal", source, f"{counts[0]:,} lines, but {target} has {counts[1]:,}")
            return
        yield left, right  # type: ignore[misc]


def _read_tsv(file: str, tell: Listener) -> Iterator[Pair]:
    for number, line in enumerate(_lines(file, tell), 1):
        columns = ["", ""] if line is None else line.split("\t", 2)
        if len(columns) < 2:
            tell("columns", _place(file, number), line or "an empty line")
        yield (None, None) if line is None or len(columns) < 2 else (columns[0], columns[1])


def _read_jsonl(file: str, source: str, target: str, tell: Listener) -> Iterator[Pair]:
    for number, line in enumerate(_lines(file, tell), 1):
        record = {} if line is None else _json_record(line)
        pair = next(
            (
                (record[a], record[b])
                for a, b in (("source", "target"), (source, target))
                if a in record and b in record
            ),
            (None, None),
        )
        if line is not None and not all(isinstance(side, str) for side in pair):
            tell("json", _place(file, number), line or "an empty line")
            pair = (None, None)
        yield pair


def _json_record(line: str) -> dict[str, Any]:
    """The object that holds the two sides; empty if there is none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    inner = record.get("translation", record) if isinstance(record, dict) else {}
    return inner if isinstance(inner, dict) else {}


def _read_tmx(file: str, source: str, target: str, tell: Listener) -> Iterator[Pair]:
    found = units(_chunks(file, tell), MAX_LINE)
    try:
        for line, texts in found:
            left, right = _matching(texts, source), _matching(texts, target)
            if left is None or right is None:
                tell("huge", _place(file, line), "")
            yield left, right
    except MalformedError as error:
        tell("tmx", _place(file, error.line), str(error))


def _matching(texts: dict[str, str | None], language: str) -> str | None:
    """The text in a language; en also finds en-gb, as a whole match is not always to be had."""
    language = language.lower().replace("_", "-")
    near = [name for name in texts if name.split("-")[0] == language.split("-")[0]]
    return texts[language] if language in texts else texts[near[0]] if near else ""


def _languages_of(corpus: Corpus) -> tuple[str, str]:
    """What the names of the files, or else the first record, say; empty strings where they say
    nothing."""
    names = [_plain_name(file) for file in corpus.files]
    if len(names) == 2:
        suffixes = [name.suffix.lstrip(".") for name in names]
        return (suffixes[0], suffixes[1]) if all(map(_is_language, suffixes)) else ("", "")
    keys: list[str] = []
    if corpus.kind == ".jsonl":
        record = _json_record(next(_lines(corpus.files[0], ignore), None) or "")
        keys = (
            []
            if "source" in record
            else [key for key, value in record.items() if isinstance(value, str)]
        )
    elif corpus.kind == ".tmx":
        keys = next((list(texts) for _, texts in _quietly(corpus.files[0]) if len(texts) > 1), [])
    if len(keys) < 2:
        keys = re.split(r"[-_]", names[0].stem.rpartition(".")[2])
        keys = keys if len(keys) == 2 and all(map(_is_language, keys)) else ["", ""]
    return keys[0], keys[1]


def _quietly(file: str) -> Iterator[tuple[int, dict[str, str | None]]]:
    try:
        yield from units(_chunks(file, ignore), MAX_LINE)
    except MalformedError:
        return


def _place(file: str, number: int, unit: str = "line") -> str:
    return f"{file}, {unit} {number:,}"


def _is_language(name: str) -> bool:
    return (
        re.fullmatch(r"[a-z]{2,3}([-_][A-Za-z]{2,4})?", name) is not None
        and name not in _NO_LANGUAGES
    )


def _plain_name(file: str) -> Path:
    """The file's name without the ending of its compression."""
    path = Path(file)
    return Path(path.stem) if path.suffix.lower() in _COMPRESSED else Path(path.name)


def _lines(file: str, tell: Listener) -> Iterator[str | None]:
    """The lines of a UTF-8 file without their ends; None for one that is no text or far too long."""
    number, rest, mark = 0, b"", b"\xef\xbb\xbf"
    for chunk in _chunks(file, tell):
        whole, newline, tail = chunk.removeprefix(mark).rpartition(b"\n")
        mark = b""
        if not newline:
            rest = (rest + tail)[: MAX_LINE + 1]
            continue
        lines = _decode(rest + whole, file, number, tell)
        yield from lines
        number, rest = number + len(lines), tail
    if rest:
        yield from _decode(rest, file, number, tell)


def _decode(block: bytes, file: str, number: int, tell: Listener) -> Sequence[str | None]:
    """The lines of a block that follows line `number`. Only its first line can be too long: a
    chunk is no longer."""
    block = block.removesuffix(b"\r").replace(b"\r\n", b"\n")
    if block.find(b"\n", 0, MAX_LINE + 1) >= 0 or len(block) <= MAX_LINE:
        try:
            return block.decode("utf-8").split("\n")
        except UnicodeDecodeError:
            pass
    lines: list[str | None] = []
    for line in block.split(b"\n"):
        number += 1
        lines.append(_decode_one(line, file, number, tell))
    return lines


def _decode_one(line: bytes, file: str, number: int, tell: Listener) -> str | None:
    if len(line) > MAX_LINE:
        tell("huge", _place(file, number), line[:1000].decode("utf-8", "replace"))
        return None
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        about = line[max(0, error.start - 30) : error.start + 30].decode(
            "utf-8", "backslashreplace"
        )
        tell(
            "encoding",
            _place(file, number),
            f"not UTF-8 (byte 0x{line[error.start]:02x}) at {about}",
        )
        return None


def _chunks(file: str, tell: Listener) -> Iterator[bytes]:
    """The uncompressed bytes; the next chunk is read and decompressed in a thread while this one
    is used."""
    failures: tuple[type[Exception], ...] = (
        EOFError,
        OSError,
        lzma.LZMAError,
        zlib.error,
        *_zstd_errors(file),
    )
    with _open(file) as opened, ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(opened.read, CHUNK)
        while True:
            try:
                chunk = ahead.result()
            except failures as error:
                tell("damaged", file, f"cannot be read to its end ({error})")
                return
            if not chunk:
                return
            ahead = pool.submit(opened.read, CHUNK)
            yield chunk


def _open(file: str) -> IO[bytes]:
    suffix = Path(file).suffix.lower()
    openers: dict[str, Any] = {
        ".gz": gzip.open,
        ".bz2": bz2.open,
        ".xz": lzma.open,
        ".zst": _open_zstd,
    }
    try:
        return openers.get(suffix, open)(file, "rb")
    except OSError as error:
        raise InputError(
            f"{file} cannot be opened ({error.strerror}); name a text file that can be read"
        ) from None


def _open_zstd(file: str, mode: str) -> IO[bytes]:
    module = _zstd()
    if hasattr(module, "ZstdFile"):
        return module.open(file, mode)
    return module.ZstdDecompressor().stream_reader(open(file, mode), read_across_frames=True)


def _zstd() -> Any:
    """Python's own module from 3.14 on, or the package."""
    for name in ("compression.zstd", "zstandard"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise MissingDependencyError(
        "reading .zst files needs a package on this Python; run: pip install zstandard"
    )


def _zstd_errors(file: str) -> tuple[type[Exception], ...]:
    return (_zstd().ZstdError,) if file.lower().endswith(".zst") else ()
