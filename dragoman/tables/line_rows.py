"""Rows that are text: JSON lines, CSV, TSV and plain lines, compressed or not. A row is copied as
it stands, and the new columns are written behind it. Knows bytes and lines.

A piece begins at a byte of the text. Behind compression, the text before it is read and thrown
away, which costs little beside what is done with the rows. A row that is damaged does not end a job
of a billion: it is written with the reason, and nothing of it is lost.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath
from typing import IO, Any

from dragoman.data.text_lines import damages, decompressed
from dragoman.errors import InputError
from dragoman.tables.field_path import FieldPath
from dragoman.tables.parquet_rows import check_columns
from dragoman.tables.quoted_rows import is_open_after, separated_values, unquoted
from dragoman.tables.row_batch import BATCH_ROWS, NewColumn, Piece, RowBatch, Unreadable
from dragoman.tables.table_places import opened

_LONGEST = 2**24  # bytes of a row
_SKIP = 2**20  # bytes at a time
_MARK = b"\xef\xbb\xbf"
_UNREADABLE = "unreadable"  # the member that holds a damaged row
_COMPRESSORS: dict[str, Callable[[IO[bytes]], Any]] = {
    # Without the name and the time that gzip would write.
    ".gz": lambda out: gzip.GzipFile("", "wb", 6, out, mtime=0),
    ".bz2": lambda out: bz2.BZ2File(out, "wb"),
    ".xz": lambda out: lzma.LZMAFile(out, "wb", preset=2),  # noqa: SIM115
}


@dataclass(frozen=True)
class LineRows:
    """A kind of table in which rows are stretches of text."""

    ending: str  # of what is written
    read: Callable[[Iterator[bytes]], Iterator[bytes]]  # lines -> rows as they stand
    parse: Callable[[bytes, Sequence[str]], dict[str, Any]]  # a row and the names of its columns
    extend: Callable[[bytes, Sequence[NewColumn], int, int], bytes]  # a row with its new columns
    delimiter: str = ""  # of values, below a header that names the columns

    def pieces(self, file: str, rows: int) -> list[Piece]:
        """Count the rows, and note where every piece begins."""
        pieces = []
        with _text(file) as text:
            source = _Counted(text, file)
            found = self._rows(source)
            if self.delimiter:
                next(found, None)
            first = 0
            start = source.taken
            while count := sum(1 for _ in islice(found, rows)):
                pieces.append(Piece(count, first, start))
                first += count
                start = source.taken
        return pieces

    def batches(self, file: str, piece: Piece, paths: Sequence[FieldPath]) -> Iterator[RowBatch]:
        """Read the rows of a piece."""
        names = _fields(self._header(file), self.delimiter) if self.delimiter else []
        if self.delimiter:
            check_columns(file, paths, names)
        with _text(file) as text:
            _skip(text, piece.offset, file)
            rows = islice(self._rows(_Counted(text, file)), piece.rows)
            while batch := list(islice(rows, BATCH_ROWS)):
                yield RowBatch([self._values(row, names, paths) for row in batch], batch)

    @contextmanager
    def writer(self, out: IO[bytes], file: str, piece: Piece) -> Iterator[_LineWriter]:
        """Each piece has the header of its file, and is compressed as the file is."""
        compressor = _COMPRESSORS.get(_compression(file))
        if compressor is None:
            yield _LineWriter(self, out, self._header(file))
            return
        with compressor(out) as packed:
            yield _LineWriter(self, packed, self._header(file))

    def _rows(self, lines: _Counted) -> Iterator[bytes]:
        try:
            yield from self.read(iter(lines))
        except _OpenQuoteError as error:
            begin = str(error)
            raise InputError(
                f"{lines.name}: a quotation mark is missing in or after the row {begin!r}; "
                "correct it"
            ) from None

    def _header(self, file: str) -> bytes:
        if not self.delimiter:
            return b""
        with _text(file) as text:
            return next(self._rows(_Counted(text, file)), b"")

    def _values(
        self, row: bytes, names: Sequence[str], paths: Sequence[FieldPath]
    ) -> tuple[Any, ...]:
        """What stands at the paths of a row, or why the row cannot be read."""
        try:
            parsed = self.parse(row, names)
        except (ValueError, RecursionError) as error:
            return (Unreadable(f"the row cannot be read: {error}"),) * len(paths)
        return tuple(path.of(parsed) for path in paths)


class _LineWriter:
    def __init__(self, kind: LineRows, out: IO[bytes], header: bytes) -> None:
        self._kind = kind
        self._out = out
        self._header = header
        self._count = len(_fields(header, kind.delimiter)) if kind.delimiter else 0

    def write(self, batch: RowBatch, columns: Sequence[NewColumn]) -> None:
        if self._header:
            self._out.write(_header_with(self._header, columns, self._kind.delimiter))
            self._header = b""
        for number, row in enumerate(batch.rows):
            self._out.write(self._kind.extend(row, columns, number, self._count))


class _Counted:
    """The lines of a file, and how many bytes of them have been taken."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self.name = name
        self.taken = 0

    def __iter__(self) -> Iterator[bytes]:
        while line := _line(self._file, self.name):
            self.taken += len(line)
            yield line


class _OpenQuoteError(ValueError):
    """Quotes that do not close; the message is how the row begins."""


def json_lines(ending: str) -> LineRows:
    """A JSON object a line."""
    return LineRows(ending, _filled_rows, _parsed_json, _extended_json)


def separated(ending: str, delimiter: str) -> LineRows:
    """Comma- or tab-separated values with a header; quoted values may hold line ends."""

    def parse(row: bytes, names: Sequence[str]) -> dict[str, Any]:
        values = _fields(row, delimiter)
        if len(values) != len(names):
            beyond = ", ".join(values[len(names) :])
            more = f" ({beyond})" if beyond else ""
            raise ValueError(f"the number of its values is {len(values)}, not {len(names)}{more}")
        return dict(zip(names, values, strict=True))

    def extend(row: bytes, columns: Sequence[NewColumn], number: int, count: int) -> bytes:
        values = [_as_cell(column.values[number]) for column in columns]
        return _appended(_with_count(row, count, delimiter), values, delimiter)

    rows = _quoted_rows if delimiter == "," else _filled_rows
    return LineRows(ending, rows, parse, extend, delimiter)


def plain_lines(ending: str) -> LineRows:
    """A text a line; what is written is JSON lines, which have room for more columns."""
    return LineRows(ending, iter, _parsed_plain, _extended_plain)


def _text(file: str) -> Any:
    return decompressed(opened(file), _compression(file))


def _compression(file: str) -> str:
    suffix = PurePath(file).suffix.lower()
    return suffix if suffix in (".gz", ".bz2", ".xz", ".zst") else ""


def _line(file: IO[bytes], name: str) -> bytes:
    try:
        line = file.readline(_LONGEST + 1)
    except damages(name) as error:
        raise InputError(f"{name} is damaged ({error}); copy it again") from None
    if len(line) > _LONGEST:
        raise InputError(f"{name} has a row of over {_LONGEST:,} bytes; cut it up")
    return line


def _skip(text: IO[bytes], offset: int, file: str) -> None:
    if not _compression(file):
        text.seek(offset)
        return
    left = offset
    while left:
        passed = len(text.read(min(left, _SKIP)))
        if not passed:
            return  # the file has become shorter, and its rows will be missed
        left -= passed


def _filled_rows(lines: Iterator[bytes]) -> Iterator[bytes]:
    """An empty line is no row."""
    return (line for line in lines if line.strip())


def _quoted_rows(lines: Iterator[bytes]) -> Iterator[bytes]:
    """A row ends at a line end outside quotes."""
    row: list[bytes] = []
    size = 0
    is_open = False
    for line in lines:
        row.append(line)
        size += len(line)
        is_open = is_open_after(line.removeprefix(_MARK), is_open)
        if is_open and size <= _LONGEST:
            continue
        if is_open:
            break
        if line.strip() or len(row) > 1:
            yield b"".join(row)
        row = []
        size = 0
    if is_open:
        first_line = row[0].decode("utf-8", "replace")
        raise _OpenQuoteError(first_line.strip()[:60])


def _parsed_json(row: bytes, names: Sequence[str]) -> dict[str, Any]:
    parsed = json.loads(row.decode("utf-8").removeprefix("\ufeff"))
    if not isinstance(parsed, dict):
        raise ValueError("it is not an object")
    return parsed


def _parsed_plain(row: bytes, names: Sequence[str]) -> dict[str, Any]:
    return {"text": row.removeprefix(_MARK).decode("utf-8").rstrip("\r\n")}


def _extended_json(row: bytes, columns: Sequence[NewColumn], number: int, count: int) -> bytes:
    """The object as it stands, with more members before its last brace."""
    members = {column.name: column.values[number] for column in columns}
    try:
        parsed = _parsed_json(row, ())
    except (ValueError, RecursionError):
        return _as_json_line({_UNREADABLE: _readable(row)} | members)
    for name in members:
        if name in parsed:
            raise InputError(
                f"the rows have a field {name!r} already; choose another name with --into"
            )
    body = row.rstrip()[:-1].rstrip()
    comma = b", " if parsed else b""
    return body + comma + _as_json_line(members)[1:]


def _extended_plain(row: bytes, columns: Sequence[NewColumn], number: int, count: int) -> bytes:
    members = {column.name: column.values[number] for column in columns}
    try:
        parsed = _parsed_plain(row, ())
    except ValueError:
        parsed = {_UNREADABLE: _readable(row)}
    return _as_json_line(parsed | members)


def _as_json_line(members: dict[str, Any]) -> bytes:
    line = json.dumps(members, ensure_ascii=False, allow_nan=False) + "\n"
    return line.encode("utf-8", "backslashreplace")


def _readable(row: bytes) -> str:
    """A damaged row with its bytes that are no text as \\xff."""
    return row.rstrip(b"\r\n").decode("utf-8", "backslashreplace")


def _fields(row: bytes, delimiter: str) -> list[str]:
    body = row.removeprefix(_MARK).rstrip(b"\r\n")
    values = separated_values(body, delimiter.encode())
    if delimiter == ",":
        values = [unquoted(value) for value in values]
    return [value.decode("utf-8") for value in values]


def _with_count(row: bytes, count: int, delimiter: str) -> bytes:
    """The row with so many values: empty ones more, or only the first ones, since the error names
    the others."""
    end = b"\r\n" if row.endswith(b"\r\n") else b"\n"
    values = separated_values(row.rstrip(b"\r\n"), delimiter.encode())
    if len(values) == count:
        return row
    values = [*values, *[b""] * (count - len(values))][:count]
    return delimiter.encode().join(values) + end


def _header_with(header: bytes, columns: Sequence[NewColumn], delimiter: str) -> bytes:
    names = _fields(header, delimiter)
    for column in columns:
        if column.name in names:
            raise InputError(
                f"the rows have a column {column.name!r} already; choose another name with --into"
            )
    return _appended(header, [column.name for column in columns], delimiter)


def _appended(row: bytes, values: Sequence[str], delimiter: str) -> bytes:
    body = row.rstrip(b"\r\n")
    end = b"\r\n" if row.endswith(b"\r\n") else b"\n"
    if delimiter == "\t":
        cells = "\t".join(" ".join(value.split()) for value in values)
    else:
        out = io.StringIO()
        csv.writer(out, lineterminator="").writerow(values)
        cells = out.getvalue()
    return body + delimiter.encode() + cells.encode("utf-8", "backslashreplace") + end


def _as_cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
