"""Web pages: the text between block tags is a paragraph; `alt` and `title` are translated too.

Knows HTML's inline tags and attributes; where tags are is known to tags.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.segments import read_spans, translate_paragraphs, translate_text
from dragoman.documents.tags import RAW_TAGS, escapes_of, find_tags
from dragoman.documents.text_files import of_text
from dragoman.text.markup_transfer import Ask
from dragoman.text.spans import Span

_INLINE = """
    <!-- &nbsp; a abbr b bdi bdo big br cite code data del dfn em font i img ins kbd mark q s samp
    small span strike strong sub sup time tt u var wbr
"""
_INLINE_TAGS = frozenset(_INLINE.split())
_TRANSLATED_ATTRIBUTES = ("alt", "title")
# A name is only tried from its first character, or a long one without a value would be tried again
# from each of its characters.
_ATTRIBUTE = re.compile(
    r"""
    (?<![^\s"'<>/=])(?P<name>[^\s"'<>/=]++)
    (?P<equals>\s*+=\s*+)
    (?:(?P<quote>["'])(?P<value>.*?)(?P=quote)|[^\s"'>]+)
    """,
    re.DOTALL | re.VERBOSE,
)


def translate_html(source: str, ask: Ask, settings: DocumentSettings) -> str:
    """Translate the text of a page, or of a part of one."""
    escapes = escapes_of(source)
    spans = _with_attributes(source, escapes, ask)
    return translate_paragraphs(spans, _is_inline, ask, lambda span: span.text.translate(escapes))


def _is_inline(span: Span) -> bool:
    return span.kind == "text" or span.name in _INLINE_TAGS


def _with_attributes(source: str, escapes: dict[int, str | None], ask: Ask) -> Iterator[Span]:
    """Yield the spans of a page, those of its attributes that are text already translated."""
    quoted = escapes | {ord('"'): "&quot;"}

    def attribute(match: re.Match[str]) -> str:
        if match["name"].lower() not in _TRANSLATED_ATTRIBUTES:
            return match[0]
        text = unescape(match["value"] or "")
        translation = translate_text(text, ask)
        if translation == text:
            return match[0]
        return f'{match["name"]}{match["equals"]}"{translation.translate(quoted)}"'

    for span in read_spans(source, find_tags(source), unescape):
        has_attributes = span.kind in ("open", "void") and span.raw[1:2].isalpha()
        if has_attributes and span.name not in RAW_TAGS:
            yield replace(span, raw=_ATTRIBUTE.sub(attribute, span.raw))
        else:
            yield span


rewrite_html = of_text(translate_html)
