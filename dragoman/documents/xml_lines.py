"""Texts in XML whose line breaks a reader sees, as in the cells of a workbook, and those with tabs:
what stands between these is a paragraph of its own. Knows spans; no format as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from html import unescape

from dragoman.documents.segments import translate_text
from dragoman.text.markup_transfer import Ask
from dragoman.text.spans import Span

LINE = "line break"  # the name of the span of a line break or a tab
_TAB = r"\t|&\#0*9;|&\#x0*9;"
NEVER = re.compile("((?!))")
TABS = re.compile(rf"((?:{_TAB})+)")
# Excel writes a carriage return as _x000D_.
LINES = re.compile(rf"((?:{_TAB}|\r|\n|&\#0*1[03];|&\#x0*[aAdD];|_x000[aAdD]_)+)")


def is_divided(spans: Iterable[Span], breaks: re.Pattern[str], elements: Collection[str]) -> bool:
    """Whether a text of a paragraph has breaks in it, or elements that are one between texts."""
    return any(
        span.name in elements or (span.kind == "text" and breaks.search(span.raw)) for span in spans
    )


def translate_lines(
    raw: str, breaks: re.Pattern[str], ask: Ask, escapes: dict[int, str | None]
) -> str:
    """Translate each line of a text without marks."""
    pieces = breaks.split(raw)
    for index in range(0, len(pieces), 2):
        line = unescape(pieces[index])
        translation = translate_text(line, ask)
        if translation != line:
            pieces[index] = translation.translate(escapes)
    return "".join(pieces)


def divided(
    spans: Sequence[Span], breaks: re.Pattern[str], elements: Collection[str]
) -> list[Span]:
    """Return the spans of a paragraph; a break has the marks around it for itself."""
    parts: list[Span] = []
    for span in _parts(spans, breaks, elements):
        holds_nothing = bool(parts) and (parts[-1].kind, parts[-1].name) == ("open", span.name)
        if span.kind == "close" and holds_nothing:
            parts.pop()
        else:
            parts.append(span)
    return parts


def _parts(
    spans: Sequence[Span], breaks: re.Pattern[str], elements: Collection[str]
) -> Iterator[Span]:
    opened: list[Span] = []
    for span in spans:
        if span.kind == "open":
            opened.append(span)
        elif span.kind == "close" and opened:
            opened.pop()
        if span.kind == "text":
            yield from _divided_text(breaks.split(span.raw), opened)
        elif span.name in elements:
            yield from _break(span.raw, opened)
        else:
            yield span


def _divided_text(pieces: Sequence[str], opened: Sequence[Span]) -> Iterator[Span]:
    for number, piece in enumerate(pieces):
        is_break = number % 2 == 1
        if is_break:
            yield from _break(piece, opened)
        elif piece:
            yield Span("text", unescape(piece), piece)


def _break(raw: str, opened: Sequence[Span]) -> Iterator[Span]:
    """Yield a break in marks of its own; those around it end before it and begin again behind."""
    closing = [Span("close", raw=f"</{one.name}>", name=one.name) for one in reversed(opened)]
    before = "".join(one.text or one.raw for one in opened)
    after = "".join(one.raw for one in closing)
    yield from closing
    yield Span("void", raw=before + raw + after, name=LINE)
    yield from opened
