"""Bounds what a SentencePiece file can be made to do, before the library that runs it sees the
file: how many pieces it has, and how long a text its normalisation writes for a character.

Knows the few fields of the file that matter; no text and no model.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy

from dragoman.errors import ModelFolderError

MOST_PIECES = 2**20
_MOST_GROWTH = 100  # bytes that the longest replacement may have
# Numbers of fields: of the whole file, and of what it says of normalisation.
_PIECE = 1
_NORMALISATIONS = (3, 5)
_TABLE = 2
_SHORT_PIECE = 8 * _PIECE + 2  # the first byte of a piece, and of most fields of a file
# The kinds of fields: a number, eight bytes, a stretch of bytes, four bytes.
_NUMBER = 0
_EIGHT = 1
_STRETCH = 2
_FOUR = 5
_LEAF = numpy.uint32(2**31)  # the bit of a trie's cell that says where a replacement starts


def check_pieces(content: bytes) -> None:
    """Raise an error for a file that has too many pieces or could make very much of a text."""
    count, position = _short_pieces(content)
    for number, stretch in _fields(content, position):
        count += number == _PIECE
        if count > MOST_PIECES:
            raise ModelFolderError(f"a SentencePiece file has more than {MOST_PIECES:,} pieces")
        if number not in _NORMALISATIONS:
            continue
        for inner, table in _fields(content[stretch]):
            if inner == _TABLE:
                longest = longest_replacement(content[stretch][table])
                if longest > _MOST_GROWTH:
                    raise ModelFolderError(
                        f"a SentencePiece file makes {longest:,} bytes of one character; "
                        "fetch the folder again"
                    )


def longest_replacement(table: bytes) -> int:
    """Return the bytes of the longest text that a table of normalisation writes for another one.

    It has the length of a trie, the trie, and the texts, each ended by a zero byte. A trie that
    leads out of itself, which would be followed anywhere in memory, is refused.
    """
    if not table:
        return 0
    length = int.from_bytes(table[:4], "little")
    texts = table[4 + length :]
    if length % 4 or not length or not texts.endswith(b"\0"):
        raise _damaged()
    cells = numpy.frombuffer(table, "<u4", length // 4, 4)
    is_leaf = cells >= _LEAF
    starts = cells[is_leaf] - _LEAF
    if len(starts) and int(starts.max()) >= len(texts):
        raise _damaged()
    # From a cell, any of the 256 beside its offset may be looked at.
    offsets = (cells >> 10) << ((cells & 512) >> 6)
    reached = numpy.arange(len(cells), dtype="<u4") ^ offsets | 255
    if int(reached[~is_leaf].max(initial=0)) >= len(cells):
        raise _damaged()
    return max(map(len, texts.split(b"\0")))


def _short_pieces(content: bytes) -> tuple[int, int]:
    """Return how many short pieces a file begins with, and where they end: most of it, quickly."""
    count = 0
    position = 0
    last = len(content) - 1
    while position < last and content[position] == _SHORT_PIECE and content[position + 1] < 128:
        position += 2 + content[position + 1]
        count += 1
    return count, position


def _fields(content: bytes, position: int = 0) -> Iterator[tuple[int, slice]]:
    """Yield the number and the place of each field that is a stretch of bytes."""
    while position < len(content):
        head, position = _number(content, position)
        kind = head & 7
        if kind == _NUMBER:
            _, position = _number(content, position)
        elif kind == _STRETCH:
            length, position = _number(content, position)
            yield head >> 3, slice(position, position + length)
            position += length
        elif kind in (_EIGHT, _FOUR):
            position += 8 if kind == _EIGHT else 4
        else:
            raise _damaged()
    if position > len(content):
        raise _damaged()


def _number(content: bytes, position: int) -> tuple[int, int]:
    """Return the number that stands at a position, seven bits a byte, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(content):
            break
        byte = content[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise _damaged()


def _damaged() -> ModelFolderError:
    return ModelFolderError("a SentencePiece file is damaged; fetch the folder again")
