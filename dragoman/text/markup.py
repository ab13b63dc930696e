"""Translates a paragraph and puts its marks (tags, emphasis, runs) around the right words.

Knows strings and spans; no file format, no translator. How the marks find their words is in
`markup_transfer`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dragoman.text.markup_transfer import Ask, transfer
from dragoman.text.spans import SPACE, Mark, Span


def rewritten(
    spans: Sequence[Span],
    ask: Ask,
    write: Callable[[Span], str],
) -> str:
    """Return the translated paragraph, or the paragraph unchanged if its text does not change."""
    raw = "".join(span.raw for span in spans)
    translated = transfer(_nested(spans), ask)
    if translated is None:
        return raw
    text = _written(translated, write).strip()
    indent = len(raw) - len(raw.lstrip())
    end = len(raw.rstrip())
    return raw[:indent] + text + raw[end:]


def _nested(spans: Sequence[Span]) -> list[Span]:
    """Turn pairs of spans that open and close into marks of the spans between them.

    The result has texts and voids only: a span that only opens or only closes becomes a void.
    """
    inner: list[Span] = []
    opened: list[tuple[int, Span]] = []  # where each open span stands in `inner`
    for number, span in enumerate(spans):
        match = _opener_of(span, opened)
        if match is None:
            if span.kind in ("open", "turn"):
                opened.append((len(inner), span))
            if span.kind in ("text", "void", "kept"):
                inner.append(span)
            else:
                inner.append(Span("void", raw=span.raw))
            continue
        start, first = opened[match]
        del opened[match:]
        # Runs of an XML format (their names have a prefix) that look the same are one mark.
        mark_number = 0 if ":" in span.name else number
        opening = first.text or first.raw
        closing = span.text or span.raw
        mark = Mark(opening, closing, mark_number)
        enclosed = inner[start + 1 :] or [Span("void")]
        inner[start:] = [replace(one, marks=(mark, *one.marks)) for one in enclosed]
    return inner


def _opener_of(span: Span, opened: Sequence[tuple[int, Span]]) -> int | None:
    """Return the index of the innermost open span that this one closes."""
    if span.kind not in ("close", "turn"):
        return None
    for index in reversed(range(len(opened))):
        if opened[index][1].name == span.name:
            return index
    return None


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
    count = 0
    for mark, other in zip(marks, others, strict=False):
        if mark != other:
            break
        count += 1
    return count
