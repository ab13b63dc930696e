"""Subtitles of the web (.vtt): the text of the cues is translated by sentence; the header, notes,
style sheets, regions, names of cues and their settings stay.

Knows the blocks of WebVTT.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from dragoman.documents.cue_sentences import Cue, CueSyntax, translate_cues
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.segments import SpanAt
from dragoman.documents.subtitles import cue_times, first_line_end
from dragoman.documents.tags import escapes_of, tag_span
from dragoman.documents.text_bytes import edited, read_text
from dragoman.text.markup_transfer import Ask
from dragoman.text.spans import Span

_LINE = re.compile(r"([^\r\n]*+)(\r\n|\r|\n|\Z)")
_MARK = re.compile(r"<(/?[a-zA-Z]\w*+)[^<>]*+>|<[\d:.]+>|</?>")
_OTHER_BLOCKS = ("NOTE", "STYLE", "REGION", "WEBVTT")


def rewrite_webvtt(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate the cues of a film."""
    file = read_text(data)
    text = file.text
    if not re.match(r"WEBVTT(?![^\s])", text):
        raise ValueError("it does not begin with WEBVTT")
    places = list(_cues(text))
    if not places:
        raise ValueError("it has no cue with times and text")
    escapes = escapes_of(text)
    syntax = CueSyntax(
        _find_marks,
        first_line_end(text),
        unescape,
        lambda span: span.text.translate(escapes),
    )
    cues = [cue for _, cue in places]
    bodies = translate_cues(cues, syntax, ask, settings.source_language)
    edits = []
    for (start, cue), body in zip(places, bodies, strict=True):
        edits.append((start, start + len(cue.body), body))
    return file.encoded(edited(text, edits))


def _cues(text: str) -> Iterator[tuple[int, Cue]]:
    """Yield where the text of each cue begins, and the cue."""
    for block in _blocks(text):
        first = text[slice(*block[0])]
        if first.startswith(_OTHER_BLOCKS) and "-->" not in first:
            continue
        timed = [number for number, line in enumerate(block[:2]) if "-->" in text[slice(*line)]]
        if not timed or timed[0] + 1 == len(block):
            continue
        times = block[timed[0]]
        start = block[timed[0] + 1][0]
        end = block[-1][1]
        begin, stop = cue_times(text[slice(*times)])
        yield start, Cue(text[start:end], begin, stop)


def _blocks(text: str) -> Iterator[list[tuple[int, int]]]:
    """Yield the lines of each block, as where they begin and end; empty lines are between."""
    block: list[tuple[int, int]] = []
    for match in _LINE.finditer(text):
        start, end = match.span(1)
        if text[start:end].strip():
            block.append((start, end))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _find_marks(body: str) -> Iterator[SpanAt]:
    for match in _MARK.finditer(body):
        raw = match[0]
        if match[1]:
            yield match.start(), tag_span(raw, match[1])
        else:
            yield match.start(), Span("void", "", raw, name=raw[:4])
