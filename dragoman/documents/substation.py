"""Subtitles of SubStation Alpha (.ass, .ssa): the text of Dialogue lines is translated by sentence;
styles, times, override tags and drawings stay.

Knows the sections and fields of a script. Lines with karaoke times are left as they are: a song's
syllables have no counterpart in a translation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dragoman.documents.cue_sentences import Cue, CueSyntax, translate_cues
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.segments import SpanAt
from dragoman.documents.text_bytes import edited, read_text
from dragoman.text.markup_transfer import Ask
from dragoman.text.spans import Span

_LINE = re.compile(r"([^\r\n]*+)(?:\r\n|\r|\n|\Z)")
_SECTION = re.compile(r"\s*\[([^\[\]]{1,80})\]\s*")
_FIELDS = ("Start", "End", "Style", "Name", "Actor")
_DEFAULT_FORMAT = "Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text"
_TIME = re.compile(r"\s*(\d{1,6}):(\d{1,2}):(\d{1,2}(?:\.\d{1,6})?)")
_TOGGLE = re.compile(r"\{\\([ibus])([01])\}")
# A drawing, and the times of syllables; lines that have either are left as they are.
_OTHER = re.compile(r"\\p\s{0,9}[1-9]|\\[kK][fo]?\d")
_MARK = re.compile(r"\{[^{}]*+\}|\\n|\\h")


@dataclass(frozen=True)
class _Dialogue:
    """Where the text of a line begins, and its cue."""

    start: int
    cue: Cue


def rewrite_substation(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate the dialogue of a script."""
    file = read_text(data)
    lines = list(_dialogue(file.text))
    if not lines:
        raise ValueError("it has no line of dialogue in a section called [Events]")
    syntax = CueSyntax(_find_marks, "\\N", write=_written)
    cues = [line.cue for line in lines]
    bodies = translate_cues(cues, syntax, ask, settings.source_language)
    edits = []
    for line, body in zip(lines, bodies, strict=True):
        edits.append((line.start, line.start + len(line.cue.body), body))
    return file.encoded(edited(file.text, edits))


def _dialogue(text: str) -> Iterator[_Dialogue]:
    section = ""
    fields = _names(_DEFAULT_FORMAT)
    for match in _LINE.finditer(text):
        line = match[1]
        header = _SECTION.fullmatch(line)
        if header:
            section = header[1].lower()
        elif section != "events":
            continue
        elif line.startswith("Format:"):
            fields = _names(line.removeprefix("Format:"))
        elif line.startswith("Dialogue:"):
            found = _read_line(line, fields)
            if found:
                place, cue = found
                yield _Dialogue(match.start() + place, cue)


def _names(line: str) -> list[str]:
    return [name.strip() for name in line.split(",")]


def _read_line(line: str, fields: list[str]) -> tuple[int, Cue] | None:
    """Return where the text of a line begins and its cue, or None if it is not translated."""
    values = line.removeprefix("Dialogue:").split(",", len(fields) - 1)
    if len(values) < len(fields) or fields[-1] != "Text":
        return None
    body = values[-1].rstrip()
    if not body or _OTHER.search(body):
        return None
    known = dict(zip(fields, values, strict=True))
    start, end, *speaker = (known.get(name, "") for name in _FIELDS)
    cue = Cue(body, _seconds(start), _seconds(end), ",".join(speaker))
    return len(line) - len(values[-1]), cue


def _seconds(time: str) -> float:
    match = _TIME.match(time)
    if not match:
        return 0.0
    hours, minutes, seconds = match.groups()
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _find_marks(body: str) -> Iterator[SpanAt]:
    for match in _MARK.finditer(body):
        yield match.start(), _mark(match[0])


def _mark(raw: str) -> Span:
    toggle = _TOGGLE.fullmatch(raw)
    if toggle:
        kind = "open" if toggle[2] == "1" else "close"
        return Span(kind, raw=raw, name=toggle[1])
    text = "" if raw.startswith("{") else " "
    return Span("void", text, raw, name=raw[:4])


def _written(span: Span) -> str:
    """Write a text without what would begin an override or a line break."""
    return span.text.replace("{", "(").replace("}", ")").replace("\\", "/")
