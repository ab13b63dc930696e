"""Parquet: groups of rows in, all their columns and the new ones out. Knows pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from dragoman.errors import InputError, MissingDependencyError
from dragoman.tables.field_path import FieldPath
from dragoman.tables.row_batch import BATCH_ROWS, NewColumn, Piece, RowBatch
from dragoman.tables.table_places import opened


class ParquetRows:
    """The kind of .parquet files."""

    ending = ".parquet"

    def pieces(self, file: str, rows: int) -> list[Piece]:
        """Pieces lie within groups of rows, which can be read one by one."""
        with _opened(file) as parquet:
            groups = [
                parquet.metadata.row_group(number).num_rows
                for number in range(parquet.num_row_groups)
            ]
        pieces: list[Piece] = []
        for number, count in enumerate(groups):
            starts = range(0, count, rows)
            pieces += [Piece(min(rows, count - first), first, number) for first in starts]
        return pieces

    def batches(self, file: str, piece: Piece, paths: Sequence[FieldPath]) -> Iterator[RowBatch]:
        """Read a piece; the rows of its group that stand before it are passed over."""
        with _opened(file) as parquet:
            check_columns(file, paths, parquet.schema_arrow.names)
            skip = piece.first
            left = piece.rows
            batches = parquet.iter_batches(BATCH_ROWS, row_groups=[piece.offset])
            for batch in _read(file, batches):
                rows = batch.slice(min(skip, batch.num_rows), left)
                skip = max(0, skip - batch.num_rows)
                left -= rows.num_rows
                if rows.num_rows:
                    yield RowBatch(values_at(rows, paths), rows)
                if not left:
                    return

    @contextmanager
    def writer(self, out: IO[bytes], file: str, piece: Piece) -> Iterator[_ParquetWriter]:
        """The schema is that of the file, with the new columns behind it."""
        writer = _ParquetWriter(out)
        yield writer
        writer.close()


class _ParquetWriter:
    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._writer: Any = None

    def write(self, batch: RowBatch, columns: Sequence[NewColumn]) -> None:
        import pyarrow
        from pyarrow import parquet

        table = with_columns(pyarrow.Table.from_batches([batch.rows]), columns)
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._out, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def with_columns(table: Any, columns: Sequence[NewColumn]) -> Any:
    """A table of Arrow with more columns behind those that it has."""
    import pyarrow

    for column in columns:
        if column.name in table.column_names:
            raise InputError(
                f"the rows have a column {column.name!r} already; choose another name with --into"
            )
        values = pyarrow.array(list(column.values), type=_arrow_type(column))
        table = table.append_column(column.name, values)
    return table


def values_at(rows: Any, paths: Sequence[FieldPath]) -> list[tuple[Any, ...]]:
    """What stands at each of the paths, row by row, in a table or a batch of Arrow."""
    columns = {path.column: rows.column(path.column).to_pylist() for path in paths}
    found = []
    for number in range(rows.num_rows):
        row = {name: values[number] for name, values in columns.items()}
        found.append(tuple(path.of(row) for path in paths))
    return found


def check_columns(file: str, paths: Sequence[FieldPath], names: Sequence[str]) -> None:
    """Refuse a table that lacks a column."""
    for path in paths:
        if path.column not in names:
            known = ", ".join(names[:20])
            raise InputError(f"{file} has no column {path.column!r}; it has {known}")


def _arrow_type(column: NewColumn) -> Any:
    import pyarrow

    types = {
        "text": pyarrow.string(),
        "number": pyarrow.float64(),
        "texts": pyarrow.list_(pyarrow.string()),
        "vector": pyarrow.list_(pyarrow.float32()),
    }
    found = types[column.holds]
    for _ in range(column.depth):
        found = pyarrow.list_(found)
    return found


@contextmanager
def _opened(file: str) -> Iterator[Any]:
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingDependencyError.for_extra("reading .parquet", "tables") from None
    with opened(file) as stream:
        try:
            parquet = ParquetFile(stream)
        except (pyarrow.ArrowException, OSError) as error:
            raise InputError(f"{file} is not a whole Parquet file ({_reason(error)})") from None
        yield parquet


def _read(file: str, batches: Iterator[Any]) -> Iterator[Any]:
    """The batches of a file, whose pages may be damaged although its footer is not."""
    import pyarrow

    while True:
        try:
            batch = next(batches, None)
        except (pyarrow.ArrowException, OSError) as error:
            raise InputError(f"{file} is damaged ({_reason(error)}); copy it again") from None
        if batch is None:
            return
        yield batch


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
