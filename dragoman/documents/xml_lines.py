"""Texts in XML whose line breaks a reader sees, as in the cells of a workbook: each line is a
paragraph of its own, and the breaks stay. Knows spans; no format as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape

from dragoman.documents.segments import translate_text
from dragoman.text.markup_transfer import Ask
from dragoman.text.spans import Span

LINE = "line break"  # the name of the span of one
# Excel writes a carriage return as _x000D_.
_BREAKS = re.compile(r"((?:\r|\n|&\#0*1[03];|&\#x0*[aAdD];|_x000[aAdD]_)+)")


def has_lines(spans: Iterable[Span]) -> bool:
    """Whether a text of a paragraph goes over several lines."""
    return any(span.kind == "text" and _BREAKS.search(span.raw) for span in spans)


def translate_lines(raw: str, ask: Ask, escapes: dict[int, str | None]) -> str:
    """Translate each line of a text without marks."""
    pieces = _BREAKS.split(raw)
    for index in range(0, len(pieces), 2):
        line = unescape(pieces[index])
        translation = translate_text(line, ask)
        if translation != line:
            pieces[index] = translation.translate(escapes)
    return "".join(pieces)


def divided(spans: Sequence[Span]) -> list[Span]:
    """Return the spans of a paragraph; a line break has the marks around it for itself."""
    parts: list[Span] = []
    for span in _parts(spans):
        holds_nothing = bool(parts) and (parts[-1].kind, parts[-1].name) == ("open", span.name)
        if span.kind == "close" and holds_nothing:
            parts.pop()
        else:
            parts.append(span)
    return parts


def _parts(spans: Sequence[Span]) -> Iterator[Span]:
    opened: list[Span] = []
    for span in spans:
        if span.kind == "open":
            opened.append(span)
        elif span.kind == "close" and opened:
            opened.pop()
        if span.kind == "text":
            yield from _divided_text(span.raw, opened)
        else:
            yield span


def _divided_text(raw: str, opened: Sequence[Span]) -> Iterator[Span]:
    closing = [Span("close", raw=f"</{one.name}>", name=one.name) for one in reversed(opened)]
    before = "".join(one.text or one.raw for one in opened)
    after = "".join(one.raw for one in closing)
    for number, piece in enumerate(_BREAKS.split(raw)):
        is_break = number % 2 == 1
        if is_break:
            yield from closing
            yield Span("void", raw=before + piece + after, name=LINE)
            yield from opened
        elif piece:
            yield Span("text", unescape(piece), piece)
