"""A text with XML tags: each stays around the words that it was around. Which tags end a sentence,
and which hold what is not translated, is said by the settings or seen in the text.

Knows tags and text; no file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import unescape

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.segments import SpanAt, read_spans, translate_paragraphs
from dragoman.documents.tags import escapes_of, find_tags
from dragoman.documents.text_files import of_text
from dragoman.text.markup_transfer import Ask
from dragoman.text.spans import Span


def translate_tagged(source: str, ask: Ask, settings: DocumentSettings) -> str:
    """Translate a text with tags."""
    escapes = escapes_of(source)
    marks = _marks(source, _names(settings.kept_tags))
    spans = list(read_spans(source, marks, unescape))
    blocks = _blocks(spans, settings)

    def is_inline(span: Span) -> bool:
        return span.kind in ("text", "kept") or span.name not in blocks

    return translate_paragraphs(spans, is_inline, ask, lambda span: span.text.translate(escapes))


def _marks(source: str, kept: frozenset[str]) -> Iterator[SpanAt]:
    """Yield the tags of a text; those of `kept` hold what is not translated."""
    for start, span in find_tags(source):
        yield start, replace(span, keep=span.kind == "open" and span.name in kept)


def _blocks(spans: Sequence[Span], settings: DocumentSettings) -> frozenset[str]:
    """Return the names of the tags that end a sentence: those named, and, unless only those count,
    those that never have text beside them."""
    named = _names(settings.block_tags)
    if not settings.finds_blocks:
        return named
    seen: set[str] = set()
    beside_text: set[str] = set()
    for number, span in enumerate(spans):
        if span.kind == "text":
            continue
        seen.add(span.name)
        # Outside of an element is before its first tag, and after its last.
        if span.kind != "close" and _is_text(spans, number - 1):
            beside_text.add(span.name)
        if span.kind != "open" and _is_text(spans, number + 1):
            beside_text.add(span.name)
    inline = beside_text | _names(settings.inline_tags)
    return frozenset(seen - inline) | named


def _is_text(spans: Sequence[Span], number: int) -> bool:
    if not 0 <= number < len(spans):
        return False
    return spans[number].kind == "text" and bool(spans[number].text.strip())


def _names(tags: Sequence[str]) -> frozenset[str]:
    return frozenset(tag.lower() for tag in tags)


rewrite_tagged = of_text(translate_tagged)
