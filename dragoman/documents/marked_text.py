"""A text with a marker in place of each placeholder and code, to its translation: each comes back
exactly once, and placeholders that count by their order in that order or with a number.

Knows strings, lines and tags; what the placeholders are is known to placeholders.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from dragoman.documents.line_breaks import break_lines
from dragoman.documents.placeholders import FIRST_MARKER, MARKER, Placeholder
from dragoman.documents.segments import SpanAt, read_spans, without_added_stop
from dragoman.documents.tags import tag_span
from dragoman.text.markup import rewritten
from dragoman.text.markup_transfer import Ask
from dragoman.text.spans import Span

_TAG_OR_MARKER = re.compile(
    rf"<(/?[a-zA-Z0-9][\w.:-]{{0,80}})(?:[\s/][^<>]{{0,2000}})?>|{MARKER.pattern}"
)
_LINE = re.compile(r"(\r\n|\r|\n)")
_WRAPPED = 40  # characters from which on a line may have been broken for its length


def translate_marked(
    marked: str,
    placeholders: Sequence[Placeholder],
    ask: Ask,
    escape: Callable[[str], str] = str,
    may_number: bool = True,
) -> str:
    """Translate a marked text and put the placeholders in; as it was where that cannot be done.

    `escape` writes the text around the placeholders; with `may_number`, %2$s is understood.
    """
    lines = "".join(_translated_lines(marked, placeholders, without_added_stop(ask)))
    raws = [placeholder.raw for placeholder in placeholders]
    if lines != marked and lines.strip():
        translation = _once_each(lines, placeholders)
        raws = _in_order(translation, placeholders, may_number)
        is_whole = Counter(MARKER.findall(translation)) == Counter(MARKER.findall(marked))
        if raws and is_whole:
            return _filled(escape(translation), raws)
        raws = [placeholder.raw for placeholder in placeholders]
    return _filled(escape(marked), raws)


def _filled(text: str, raws: Sequence[str]) -> str:
    return MARKER.sub(lambda match: raws[ord(match[0]) - FIRST_MARKER], text)


def _once_each(translation: str, placeholders: Sequence[Placeholder]) -> str:
    """Leave only the first of each code that opens and the last of each that closes."""
    places = list(MARKER.finditer(translation))
    if len({place[0] for place in places}) == len(places):
        return translation
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for place in places:
        first.setdefault(place[0], place.start())
        last[place[0]] = place.start()

    def kept(place: re.Match[str]) -> str:
        is_close = placeholders[ord(place[0]) - FIRST_MARKER].kind == "close"
        wanted = last if is_close else first
        return place[0] if wanted[place[0]] == place.start() else ""

    return MARKER.sub(kept, translation)


def _in_order(translation: str, placeholders: Sequence[Placeholder], may_number: bool) -> list[str]:
    """Return the placeholders as they are to be written, or nothing if their order is lost."""
    raws = [placeholder.raw for placeholder in placeholders]
    order = [ord(found) - FIRST_MARKER for found in MARKER.findall(translation)]
    counted = [index for index in order if placeholders[index].format]
    if counted == sorted(counted):
        return raws or [""]
    if not may_number or any("*" in raws[index] for index in counted):
        return []
    for place, index in enumerate(sorted(counted), 1):
        raws[index] = f"%{place}${placeholders[index].format}"
    return raws


def _translated_lines(marked: str, placeholders: Sequence[Placeholder], ask: Ask) -> Iterator[str]:
    """Yield the lines and the breaks between them; lines that were broken for length are one."""
    parts = _LINE.split(marked)
    index = 0
    while index < len(parts):
        end = index + 1
        while end < len(parts) and _goes_on(parts[end - 1], parts[end + 1]):
            end += 2
        lines = parts[index:end:2]
        yield from _translated_line(lines, parts[index + 1 : end : 2], placeholders, ask)
        if end < len(parts):
            yield parts[end]
        index = end + 1


def _goes_on(line: str, following: str) -> bool:
    ends = line.rstrip()[-1:]
    return len(line) >= _WRAPPED and (ends.isalnum() or ends == ",") and following[:1].islower()


def _translated_line(
    lines: Sequence[str], breaks: Sequence[str], placeholders: Sequence[Placeholder], ask: Ask
) -> Iterator[str]:
    text = "\n".join(lines)
    spans = list(read_spans(text, _find_marks(text, placeholders)))
    translation = rewritten(spans, ask, lambda span: span.text)
    if len(lines) == 1:
        yield translation
        return
    translated = lines if translation == text else break_lines(translation, lines)
    for number, line in enumerate(translated):
        if number:
            yield breaks[number - 1]
        yield line


def _find_marks(text: str, placeholders: Sequence[Placeholder]) -> Iterator[SpanAt]:
    for match in _TAG_OR_MARKER.finditer(text):
        raw = match[0]
        if match[1]:
            yield match.start(), tag_span(raw, match[1])
        else:
            own = placeholders[ord(raw) - FIRST_MARKER]
            yield match.start(), Span(own.kind, own.text, raw, name=own.name)
