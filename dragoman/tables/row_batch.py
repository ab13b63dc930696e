"""What a kind of table promises: parts that can be read alone, batches of rows, and the same rows
written with more columns. Knows no kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Any, Literal, Protocol

from dragoman.tables.field_path import FieldPath

Holds = Literal["text", "number", "texts", "vector"]
Values = Sequence[Any]  # of one row: what stands at each of the paths that were asked for

BATCH_ROWS = 1024  # read, worked on and written together; sorted by length among themselves


@dataclass(frozen=True)
class Piece:
    """A stretch of rows of a file that can be read without those before it."""

    rows: int
    first: int  # the number of its first row in the file, or in the group of rows
    offset: int  # where it begins: bytes of the text, or the number of a group of rows


@dataclass(frozen=True)
class Unreadable:
    """Stands in place of the values of a row that is damaged; the row goes on with an error."""

    reason: str


@dataclass(frozen=True)
class NewColumn:
    """A column that a stage adds: a value for each row, in lists as deep as the path has stars."""

    name: str
    holds: Holds
    depth: int
    values: Sequence[Any]


@dataclass(frozen=True)
class RowBatch:
    """Some rows: what a stage needs of them, and the rows as their kind keeps them."""

    values: Sequence[Values]
    rows: Any


class Writer(Protocol):
    """Writes rows with new columns."""

    def write(self, batch: RowBatch, columns: Sequence[NewColumn]) -> None: ...


class Kind(Protocol):
    """A kind of table."""

    @property
    def ending(self) -> str:
        """The ending of what is written."""
        ...

    def pieces(self, file: str, rows: int) -> list[Piece]:
        """Cut a file into pieces of about so many rows."""
        ...

    def batches(self, file: str, piece: Piece, paths: Sequence[FieldPath]) -> Iterator[RowBatch]:
        """Read the rows of a piece."""
        ...

    def writer(self, out: IO[bytes], file: str, piece: Piece) -> AbstractContextManager[Writer]:
        """Write rows of a file."""
        ...
