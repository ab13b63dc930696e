"""The signs of notes in a page, such as a raised 1 that is a link: they hang on the word before
them, and no translator reads them. Knows spans and the tags of HTML that are around such signs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from dragoman.documents.segments import join
from dragoman.text.spans import Span

_AROUND = ("sup", "a")
_MOST_SPANS = 12
_LONGEST = 8
_LINK_IN_TEXT = re.compile(r"""\shref\s*=\s*["']?[^"'\s>]*#""", re.IGNORECASE)
_MAY_BE_NOTED = re.compile(r"(?:[^\W\d_]{3}|[^\w\s])$")  # rather than be raised to a power


def join_notes(spans: Iterable[Span], is_inline: Callable[[Span], bool]) -> Iterator[Span]:
    """Yield the spans of a page, the sign of a note with its tags as one that is not read."""
    rows = list(spans)
    before = ""  # the text of the paragraph so far
    index = 0
    while index < len(rows):
        span = rows[index]
        end = index + 1
        if not is_inline(span):
            before = ""
        elif span.kind == "text":
            before = span.text
        elif span.kind == "open" and span.name in _AROUND:
            end = _end_of_note(rows, index, before) or end
        if end > index + 1:
            yield replace(join(rows[index:end]), text="")
        else:
            yield span
        index = end


def _end_of_note(spans: Sequence[Span], start: int, before: str) -> int:
    """Return the index behind a note that starts here, or 0 if this is none."""
    first = spans[start]
    depth = 0
    for index in range(start, min(start + _MOST_SPANS, len(spans))):
        span = spans[index]
        if span.name == first.name:
            depth += (span.kind == "open") - (span.kind == "close")
        if depth == 0:
            inner = spans[start : index + 1]
            return index + 1 if _is_note(inner, before) else 0
    return 0


def _is_note(spans: Sequence[Span], before: str) -> bool:
    sign = "".join(span.text for span in spans).strip()
    if not sign or len(sign) > _LONGEST or any(map(str.isalpha, sign)):
        return False
    links = [span for span in spans if span.kind == "open" and span.name == "a"]
    if not all(_LINK_IN_TEXT.search(link.raw) for link in links):
        return False
    if not any(map(str.isalnum, sign)):
        return True
    hangs_on_word = bool(_MAY_BE_NOTED.search(before))
    return hangs_on_word or (bool(links) and bool(before) and not before[-1].isspace())
