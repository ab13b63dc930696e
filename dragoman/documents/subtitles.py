"""Subtitles (.srt): a cue is one text; its translation is broken into as many lines as it had.

Knows cues, times and the few tags that players know.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.plain import LINE_END
from dragoman.documents.segments import SpanAt, read_spans
from dragoman.documents.tags import tag_span
from dragoman.documents.text_files import of_text
from dragoman.text.markup import rewritten
from dragoman.text.markup_transfer import Ask
from dragoman.text.spans import Span

_TIMES = r"[ \t]*\d+:\d\d:\d\d[,.]\d+[ \t]*-->[^\r\n]*(?:\r\n|\r|\n)"
# A cue ends before an empty line, and before the number and the times of the next cue.
_NEXT_CUE = rf"\d++(?:[^\S\r\n]*+[\r\n]++)++{_TIMES}"
_CUE = re.compile(
    rf"^(?P<times>{_TIMES})"
    rf"(?P<text>(?:(?!{_NEXT_CUE})[ \t]*[^\s][^\r\n]*(?:\r\n|\r|\n|\Z))+)",
    re.MULTILINE,
)
_MARK = re.compile(r"<(/?[a-zA-Z]\w*+)[^<>]*+>|\{[^{}]*\}")
_MARK_OR_SPACE = re.compile(r"<[^<>]*>|\{[^{}]*\}| ")
_PUNCTUATION = ".,;:!?…"
_DASHES = ("-", "–")
_BONUS = 6  # characters that a break at punctuation may be further away


def translate_subtitles(source: str, ask: Ask, settings: DocumentSettings) -> str:
    """Translate each cue."""
    if not _CUE.search(source):
        raise ValueError("it has no cue with times and text")
    return _CUE.sub(lambda match: _translate_cue(match, ask), source)


def _translate_cue(match: re.Match[str], ask: Ask) -> str:
    text = match["text"]
    body = text.rstrip("\r\n")
    tail = text[len(body) :]
    marks = _find_marks(body)
    spans = list(read_spans(body, marks))
    translation = rewritten(spans, ask, lambda span: span.text)
    if translation != body:
        first_end = LINE_END.search(match[0])
        line_end = first_end[0] if first_end else "\n"
        lines = LINE_END.split(body)[::2]
        translation = line_end.join(_break_lines(translation, lines))
    return match["times"] + translation + tail


def _find_marks(body: str) -> Iterator[SpanAt]:
    for match in _MARK.finditer(body):
        raw = match[0]
        if match[1]:
            yield match.start(), tag_span(raw, match[1])
        else:
            yield match.start(), Span("void", "", raw, name=raw[:4])


def _break_lines(text: str, lines: Sequence[str]) -> list[str]:
    """Break a text into as many lines as there were, each with about the same share of it.

    Breaks are at punctuation where possible. There are fewer where words are too few.
    """
    marks_and_spaces = _MARK_OR_SPACE.finditer(text)
    spaces = [match.start() for match in marks_and_spaces if match[0] == " " and match.start()]
    ends = list(accumulate(len(line) for line in lines))
    chosen = [0]
    first = 0  # of the spaces that are left
    for number, end in enumerate(ends[:-1], 1):
        if first == len(spaces):
            break
        # The breaks still to come need a space each.
        to_come = len(lines) - 1 - number
        last = max(first + 1, len(spaces) - to_come)
        share = end / ends[-1]
        wanted = share * len(text)
        index = _best_break(text, wanted, spaces, first, last)
        chosen.append(spaces[index])
        first = index + 1
    starts_and_ends = zip(chosen, [*chosen[1:], None], strict=True)
    return [text[start:end].strip() for start, end in starts_and_ends]


def _best_break(text: str, wanted: float, spaces: Sequence[int], first: int, last: int) -> int:
    """Return the index of the space near `wanted` at which to break, from `first` up to `last`."""

    def cost(index: int) -> float:
        space = spaces[index]
        is_pause = text[space - 1] in _PUNCTUATION or text.startswith(_DASHES, space + 1)
        return abs(space - wanted) - _BONUS * is_pause

    # Only those can win that are at most the bonus further away than the nearest.
    after = bisect_left(spaces, wanted, first, last)
    neighbours = spaces[max(after - 1, first) : min(after + 1, last)]
    nearest = min(abs(space - wanted) for space in neighbours)
    reach = nearest + _BONUS
    nearby = range(
        bisect_left(spaces, wanted - reach, first, last),
        bisect_right(spaces, wanted + reach, first, last),
    )
    return min(nearby, key=cost)


rewrite_subtitles = of_text(translate_subtitles)
