"""Subtitles of SubRip (.srt): numbers and times stay, the text of the cues is translated by
sentence.

Knows cues, times and the few tags that players know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dragoman.documents.cue_sentences import Cue, CueSyntax, translate_cues
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.plain import LINE_END
from dragoman.documents.segments import SpanAt
from dragoman.documents.tags import tag_span
from dragoman.documents.text_bytes import edited, read_text
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
_TIME = re.compile(r"(?:(\d{1,6}):)?(\d\d):(\d\d)[,.](\d{1,6})")


def rewrite_subtitles(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate the cues of a film."""
    file = read_text(data)
    matches = list(_CUE.finditer(file.text))
    if not matches:
        raise ValueError("it has no cue with times and text")
    cues = [_cue(match) for match in matches]
    syntax = CueSyntax(find_cue_marks, first_line_end(file.text))
    bodies = translate_cues(cues, syntax, ask, settings.source_language)
    edits = []
    for match, cue, body in zip(matches, cues, bodies, strict=True):
        start = match.start("text")
        edits.append((start, start + len(cue.body), body))
    return file.encoded(edited(file.text, edits))


def cue_times(line: str) -> tuple[float, float]:
    """Return the seconds at which a cue begins and ends; zero where a time cannot be read."""
    seconds = []
    for hours, minutes, whole, part in _TIME.findall(line)[:2]:
        seconds.append(int(hours or 0) * 3600 + int(minutes) * 60 + float(f"{whole}.{part}"))
    seconds += [0.0] * (2 - len(seconds))
    return seconds[0], seconds[1]


def first_line_end(text: str) -> str:
    """Return how the first line of a text ends."""
    match = LINE_END.search(text)
    return match[0] if match else "\n"


def find_cue_marks(body: str) -> Iterator[SpanAt]:
    """Yield the tags of a cue and its commands in braces."""
    for match in _MARK.finditer(body):
        raw = match[0]
        if match[1]:
            yield match.start(), tag_span(raw, match[1])
        else:
            yield match.start(), Span("void", "", raw, name=raw[:4])


def _cue(match: re.Match[str]) -> Cue:
    start, end = cue_times(match["times"])
    return Cue(match["text"].rstrip("\r\n"), start, end)
