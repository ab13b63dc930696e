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
    leading_space = raw[: len(raw) - len(raw.lstrip())]
    trailing_space = raw[len(raw.rstrip()) :]
    return leading_space + _written(translated, write).strip() + trailing_space


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
            is_content = span.kind in ("text", "void", "kept")
            inner.append(span if is_content else Span("void", raw=span.raw))
            continue
        start, first = opened[match]
        del opened[match:]
        # Runs of an XML format (their names have a prefix) that look the same are one mark.
        mark_number = 0 if ":" in span.name else number
        mark = Mark(first.text or first.raw, span.text or span.raw, mark_number)
        enclosed = [replace(one, marks=(mark, *one.marks)) for one in inner[start + 1 :]]
        inner[start:] = enclosed or [Span("void", marks=(mark,))]
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
            wanted = padded[index + 1].marks
            span = replace(span, marks=wanted[: _shared(marks, wanted)])
        shared = _shared(marks, span.marks)
        out += [mark.closing for mark in reversed(marks[shared:])]
        out += [mark.opening for mark in span.marks[shared:]]
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
