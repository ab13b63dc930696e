"""Bytes of a text file to a string and back: byte order marks, UTF-8, UTF-16, and an older encoding
where a file names one. Also edits a string at places. Knows encodings; no file format.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from dataclasses import dataclass

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
Edit = tuple[int, int, str]  # where a stretch begins and ends, and what is written instead


@dataclass(frozen=True)
class TextFile:
    """A file as a string, with what is needed to write it again."""

    text: str
    encoding: str
    mark: bytes  # the byte order mark

    def encoded(self, text: str, errors: str = "replace") -> bytes:
        """Return another text in the encoding of this file."""
        return self.mark + text.encode(self.encoding, errors)


def read_text(data: bytes, default: str = "utf-8") -> TextFile:
    """Decode a file by its byte order mark, or by `default` where it has none."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            text = data[len(mark) :].decode(encoding)
            return TextFile(text, encoding, mark)
    return TextFile(data.decode(default), default, b"")


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with some stretches replaced; they come in order and do not overlap."""
    out: list[str] = []
    end = 0
    for start, stop, replacement in edits:
        out.append(text[end:start])
        out.append(replacement)
        end = stop
    out.append(text[end:])
    return "".join(out)
