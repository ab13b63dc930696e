"""Tables in text (.csv, .tsv): cells of the chosen columns are translated; the header, the other
columns and the quoting stay.

Without a choice, the columns that hold text are translated. Knows rows and quotes; what is in a
cell is known to messages.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.documents.code_like import looks_like_code
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.messages import MessageStyle, translate_message
from dragoman.documents.text_bytes import Edit, edited, read_text
from dragoman.text.markup_transfer import Ask

_SEPARATORS = ",;\t|"
_LONGEST_NAME = 40  # characters of a column's name
_LOOKED_AT = 1_000  # rows that tell which columns hold text


@dataclass(frozen=True)
class _Cell:
    """A cell, where it stands, and what it says."""

    start: int
    end: int
    text: str
    is_quoted: bool


def rewrite_csv(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate a table whose separator is found out."""
    file = read_text(data)
    separator = _separator(file.text)
    return file.encoded(_translated(file.text, separator, ask, settings))


def rewrite_tsv(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate a table whose separator is the tab."""
    file = read_text(data)
    return file.encoded(_translated(file.text, "\t", ask, settings))


def _separator(text: str) -> str:
    """Return what separates the cells of the first rows: what each has equally often."""
    lines = [line for line in text[:10_000].splitlines()[:20] if line.strip()]
    bare = [re.sub(r'"[^"]*"', "", line) for line in lines]

    def rank(separator: str) -> tuple[bool, int]:
        counts = [line.count(separator) for line in bare]
        fewest = min(counts, default=0)
        return fewest > 0 and fewest == max(counts), sum(counts)

    return max(_SEPARATORS, key=rank)


def _translated(text: str, separator: str, ask: Ask, settings: DocumentSettings) -> str:
    if "\x00" in text:
        raise ValueError("it has nul bytes, which no text has")
    rows = list(_rows(text, separator))
    has_header = _has_header(rows, settings.columns)
    header = [cell.text.strip() for cell in rows[0]]
    body = rows[1:] if has_header else rows
    columns = _chosen(settings.columns, header if has_header else [], max(map(len, rows)))
    if not settings.columns:
        columns = _text_columns(body)
    style = MessageStyle(settings.target_language)
    edits: list[Edit] = []
    for row in body:
        for column in columns:
            if column < len(row):
                edits += _edit(row[column], separator, ask, style)
    return edited(text, edits)


def _rows(text: str, separator: str) -> Iterator[list[_Cell]]:
    escaped = re.escape(separator)
    cell = re.compile(
        rf'"(?P<quoted>(?:[^"]|"")*+)"(?={escaped}|\r|\n|\Z)|(?P<bare>[^{escaped}\r\n]*+)'
    )
    ending = re.compile(rf"{escaped}|\r\n|\r|\n|\Z")
    position = 0
    row: list[_Cell] = []
    while position < len(text):
        match = cell.match(text, position)
        assert match is not None  # an empty cell matches
        quoted = match["quoted"]
        value = match["bare"] if quoted is None else quoted.replace('""', '"')
        row.append(_Cell(match.start(), match.end(), value, quoted is not None))
        end = ending.match(text, match.end())
        assert end is not None  # a cell goes as far as this
        position = end.end()
        if end[0] != separator:
            yield row
            row = []
    if row:
        yield row


def _has_header(rows: Sequence[Sequence[_Cell]], columns: Sequence[str]) -> bool:
    """Whether the first row has names: short, different, without figures or full stops."""
    names = [cell.text.strip() for cell in rows[0]]
    if any(column in names for column in columns):
        return True
    if len(rows) < 2 or len(set(names)) != len(names):
        return False
    return all(
        0 < len(name) <= _LONGEST_NAME
        and name[-1] not in ".!?…"
        and any(map(str.isalpha, name))
        and len(name.split()) <= 4
        for name in names
    )


def _chosen(columns: Sequence[str], header: Sequence[str], width: int) -> list[int]:
    """Return the places of columns given by name or by number, from 1."""
    places = []
    for column in columns:
        if column in header:
            places.append(header.index(column))
        elif column.isdecimal() and 1 <= int(column) <= width:
            places.append(int(column) - 1)
        else:
            known = ", ".join(name for name in header if name)[:150]
            named = f"; its columns are {known}" if known else f"; it has {width:,} columns"
            raise ValueError(f"it has no column {column[:40]}{named}")
    return sorted(set(places))


def _text_columns(rows: Sequence[Sequence[_Cell]]) -> list[int]:
    """Return the columns half of whose cells are text; rather those with several words."""
    looked_at = rows[:_LOOKED_AT]
    width = max((len(row) for row in looked_at), default=0)
    words = [0] * width
    texts = [0] * width
    filled = [0] * width
    for row in looked_at:
        for column, cell in enumerate(row):
            if not cell.text.strip():
                continue
            filled[column] += 1
            if not looks_like_code(cell.text):
                texts[column] += 1
                words[column] += len(cell.text.split()) > 1
    several = [column for column in range(width) if 2 * words[column] >= max(filled[column], 1)]
    single = [column for column in range(width) if 2 * texts[column] >= max(filled[column], 1)]
    return several or single


def _edit(cell: _Cell, separator: str, ask: Ask, style: MessageStyle) -> list[Edit]:
    if looks_like_code(cell.text):
        return []
    translation = translate_message(cell.text, ask, style)
    if translation == cell.text:
        return []
    needs_quotes = any(sign in translation for sign in (separator, "\n", "\r"))
    if cell.is_quoted or needs_quotes or translation.startswith('"'):
        written = '"' + translation.replace('"', '""') + '"'
    else:
        written = translation
    return [(cell.start, cell.end, written)]
