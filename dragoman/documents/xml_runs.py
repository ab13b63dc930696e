"""The runs of a paragraph in XML, stretches of text that look the same: properties, runs of code,
and the spaces between them. Knows what a format says about its elements; no format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from dragoman.documents.formulas import as_one_word
from dragoman.documents.segments import written
from dragoman.documents.xml_markup import Markup
from dragoman.text.spans import Span


def with_properties(spans: Iterable[Span], markup: Markup) -> Iterator[Span]:
    """Yield the spans, the properties of a run with its start; an indent may stand between."""
    start: Span | None = None  # of a run whose properties may follow
    for span in spans:
        if start is None:
            is_start = bool(markup.run) and (span.name, span.kind) == (markup.run, "open")
            if is_start:
                start = span
            else:
                yield span
            continue
        if span.raw.isspace() and span.kind == "void":
            start = replace(start, raw=start.raw + span.raw)
            continue
        if span.name == markup.properties:
            yield replace(start, raw=start.raw + span.raw)
        else:
            yield start
            yield span
        start = None
    if start is not None:
        yield start


def with_code(spans: Sequence[Span], markup: Markup) -> Iterator[Span]:
    """Yield the spans, those of a mark that is for code as one that stays."""
    held: list[Span] = []
    depth = 0
    for span in spans:
        if not held and not (span.kind == "open" and markup.is_code(span.raw)):
            yield span
            continue
        held.append(span)
        if span.name == held[0].name:
            depth += (span.kind == "open") - (span.kind == "close")
        if depth == 0:
            yield _code(held)
            held = []
    yield from held


def _code(spans: Sequence[Span]) -> Span:
    text = "".join(span.text for span in spans if span.kind == "text")
    return Span("kept", as_one_word(text), written(spans))


def with_spaces_in_runs(text: str, markup: Markup, opening: str) -> str:
    """Put a space that has a run of its own, without properties, into the run before it or
    behind it, whose size and font it then has: rather into the one with fewer properties, so
    that a line under a word does not go on under the space."""
    run = markup.run
    if not run:
        return text
    run_start = _run_start(markup)
    end = f"</{markup.text}></{run}>"
    before, *others = text.split(f"{end}<{run}>{opening} {end}")
    out = [before]
    for after in others:
        start = max(before.rfind(f"<{run}>"), before.rfind(f"<{run} "))
        last = run_start.match(before, max(start, 0))
        first = run_start.match(after)
        if last and first and len(first["properties"]) < len(last["properties"]):
            out += [end, first[0], " ", after[first.end() :]]
        else:
            out += [" ", end, after]
        before = after
    return "".join(out)


@lru_cache
def _run_start(markup: Markup) -> re.Pattern[str]:
    """Return the pattern of the start of a run, up to its text."""
    run, properties, text = map(re.escape, (markup.run, markup.properties, markup.text))
    return re.compile(
        rf"<{run}(?:\s[^<>]*+)?>\s*+"
        rf"(?P<properties>(?:<{properties}(?:\s[^<>/]*+)?(?:/>|>.*?</{properties}>))?)\s*+"
        rf"<{text}(?:\s[^<>]*+)?>",
        re.DOTALL,
    )
