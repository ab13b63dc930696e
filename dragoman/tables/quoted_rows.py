"""Where the values of a row of CSV begin and end. Knows bytes and quotation marks.

A quotation mark counts only at the beginning of a value, as in Python's csv; within another value
it is a character like any other.
"""

from __future__ import annotations

_COMMA = b","
_QUOTE = b'"'


def is_open_after(line: bytes, was_open: bool) -> bool:
    """Whether a line ends within quotes, given whether it begins within them."""
    if _QUOTE not in line:
        return was_open
    at = 0
    if was_open:
        at = _closed(line, 0)
        if at < 0:
            return True
        at = _next_value(line, at, _COMMA)
    while 0 <= at < len(line):
        end = _end(line, at, _COMMA)
        if end < 0:
            return True
        at = end + 1
    return False


def separated_values(row: bytes, delimiter: bytes) -> list[bytes]:
    """The values of a row as they stand, quotes included; there are none in other rows than CSV."""
    if delimiter != _COMMA or _QUOTE not in row:
        return row.split(delimiter)
    values = []
    at = 0
    while at <= len(row):
        end = _end(row, at, delimiter)
        end = len(row) if end < 0 else end
        values.append(row[at:end])
        at = end + 1
    return values


def unquoted(value: bytes) -> bytes:
    """What a value of CSV says. Python's csv reads the same, but no value of over 128 KB."""
    if not value.startswith(_QUOTE):
        return value
    end = _closed(value, 1)
    if end < 0:
        return value[1:]
    inner = value[1 : end - 1]
    behind = value[end:]
    return inner.replace(b'""', _QUOTE) + behind


def _end(row: bytes, at: int, delimiter: bytes) -> int:
    """Where the value that begins here ends; -1 where its quotes do not close."""
    if row[at : at + 1] == _QUOTE:
        at = _closed(row, at + 1)
        if at < 0:
            return -1
    return _next_value(row, at, delimiter) - 1


def _next_value(row: bytes, at: int, delimiter: bytes) -> int:
    """Where the value behind the next delimiter begins, or would begin."""
    found = row.find(delimiter, at)
    return len(row) + 1 if found < 0 else found + 1


def _closed(row: bytes, at: int) -> int:
    """Where quotes that are open here have been closed; -1 where they are not. Two in a row are a
    character."""
    while (at := row.find(_QUOTE, at)) >= 0:
        if row[at + 1 : at + 2] != _QUOTE:
            return at + 1
        at += 2
    return -1
