"""Translates a paragraph and puts its marks (tags, emphasis, runs) around the right words.

Knows strings and spans; no file format, no translator. How the marks find their words is in
`markup_transfer`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from dragoman.text.markup_transfer import MOST, Ask, transfer
from dragoman.text.spans import SPACE, Mark, Span

_MOST_SPANS = 4 * MOST  # those that open and close counted


def rewritten(
    spans: Sequence[Span],
    ask: Ask,
    write: Callable[[Span], str],
) -> str:
    """Return the translated paragraph, or the paragraph unchanged if its text does not change.

    A paragraph of very many spans stays as it is.
    """
    raw = "".join(span.raw for span in spans)
    if len(spans) > _MOST_SPANS:
        return raw
    translated = transfer(_nested(spans), ask)
    if translated is None:
        return raw
    text = _written(translated, write).strip()
    indent = len(raw) - len(raw.lstrip())
    end = len(raw.rstrip())
    return raw[:indent] + text + raw[end:]


def _nested(spans: Sequence[Span]) -> list[Span]:
    """Turn pairs of spans that open and close into marks of the spans between them.

    The result has texts and voids only: a span that only opens or only closes becomes a void. A
    pair with nothing between it becomes a void that has its mark.
    """
    closers = _pairs(spans)
    ends = set(closers.values())
    inner: list[Span] = []
    opened: list[tuple[Mark, ...]] = [()]  # the marks around each place, innermost last
    filled = 0  # how many spans there were when the last mark was opened
    for number, span in enumerate(spans):
        around = opened[-1]
        if number in closers:
            closer = closers[number]
            mark = _mark(span, spans[closer], closer)
            opened.append((*around, mark))
            filled = len(inner)
        elif number in ends:
            if len(inner) == filled:
                inner.append(Span("void", marks=around))
            opened.pop()
        elif span.kind in ("text", "void", "kept"):
            inner.append(replace(span, marks=(*around, *span.marks)))
        else:
            inner.append(Span("void", raw=span.raw, marks=around))
    return inner


def _pairs(spans: Sequence[Span]) -> dict[int, int]:
    """Return the number of the span that closes each span that opens something.

    A span closes the innermost one of its name that is open; what was opened in between stays
    open for good.
    """
    closers: dict[int, int] = {}
    opened: list[tuple[int, str]] = []  # number and name
    counts: Counter[str] = Counter()
    for number, span in enumerate(spans):
        if span.kind in ("close", "turn") and counts[span.name]:
            while True:
                first, name = opened.pop()
                counts[name] -= 1
                if name == span.name:
                    break
            closers[first] = number
        elif span.kind in ("open", "turn"):
            opened.append((number, span.name))
            counts[span.name] += 1
    return closers


def _mark(first: Span, last: Span, number: int) -> Mark:
    # Runs of an XML format (their names have a prefix) that look the same are one mark.
    own_number = 0 if ":" in last.name else number
    return Mark(first.text or first.raw, last.text or last.raw, own_number)


def _written(spans: Sequence[Span], write: Callable[[Span], str]) -> str:
    """Write all spans with their marks; a space gets the marks that both its neighbours have."""
    out: list[str] = []
    marks: tuple[Mark, ...] = ()  # those that are open
    end = Span("void")
    padded = [*spans, end, end]
    for index in range(len(spans) + 1):
        span = padded[index]
        if span is SPACE:
            next_marks = padded[index + 1].marks
            shared = _shared(marks, next_marks)
            if shared:
                span = replace(span, marks=next_marks[:shared])
        shared = _shared(marks, span.marks)
        closed = marks[shared:]
        opened = span.marks[shared:]
        out += [mark.closing for mark in reversed(closed)]
        out += [mark.opening for mark in opened]
        out.append(write(span) if span.kind == "text" else span.raw)
        marks = span.marks
    return "".join(out)


def _shared(marks: Sequence[Mark], others: Sequence[Mark]) -> int:
    """Return how many of the outermost marks are the same."""
    if marks is others:
        return len(marks)
    count = 0
    for mark, other in zip(marks, others, strict=False):
        if mark != other:
            break
        count += 1
    return count
