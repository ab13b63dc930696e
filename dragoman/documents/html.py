"""Web pages: the text between block tags is a paragraph; attributes that are read (`alt`, `title`,
`placeholder` and others) and descriptions for search engines are translated too.

Knows HTML's inline tags and attributes; where tags are is known to tags.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import unescape

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.note_signs import join_notes
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
_READ_ATTRIBUTES = frozenset(
    ("alt", "title", "placeholder", "aria-label", "aria-description", "aria-roledescription")
)
# Tags that hold text for people in an attribute, if another attribute says so.
_META = re.compile(
    r"""
    \s(?:name|property|itemprop)\s*=\s*["']?
    (?:description|keywords|(?:og|twitter):(?:title|description|image:alt|site_name))\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_BUTTON = re.compile(r"""\stype\s*=\s*["']?(?:button|submit|reset)\b""", re.IGNORECASE)
_LANGUAGE_ATTRIBUTES = frozenset(("lang", "xml:lang"))
_DIRECTION = re.compile(r"""\sdir\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+)""", re.IGNORECASE)
# A name is only tried from its first character, or a long one without a value would be tried again
# from each of its characters.
_ATTRIBUTE = re.compile(
    r"""
    (?<![^\s"'<>/=])(?P<name>[^\s"'<>/=]++)
    (?P<equals>\s*+=\s*+)
    (?:(?P<quote>["'])(?P<value>.*?)(?P=quote)|(?P<bare>[^\s"'>]+))
    """,
    re.DOTALL | re.VERBOSE,
)


def translate_html(source: str, ask: Ask, settings: DocumentSettings) -> str:
    """Translate the text of a page, or of a part of one."""
    escapes = escapes_of(source)
    spans = join_notes(_with_attributes(source, _Attributes(ask, settings, escapes)), _is_inline)
    return translate_paragraphs(spans, _is_inline, ask, lambda span: span.text.translate(escapes))


def _is_inline(span: Span) -> bool:
    return span.kind == "text" or span.name in _INLINE_TAGS


def _with_attributes(source: str, attributes: _Attributes) -> Iterator[Span]:
    """Yield the spans of a page, those of its attributes that are text already translated."""
    for span in read_spans(source, find_tags(source), unescape):
        has_attributes = span.kind in ("open", "void") and span.raw[1:2].isalpha()
        if has_attributes and span.name not in RAW_TAGS:
            yield replace(span, raw=attributes.rewritten(span))
        else:
            yield span


@dataclass(frozen=True)
class _Attributes:
    """The attributes of tags: some are translated, others name the language."""

    ask: Ask
    settings: DocumentSettings
    escapes: dict[int, str | None]

    def rewritten(self, span: Span) -> str:
        """Return a tag with its attributes as the translation has them."""
        read = _READ_ATTRIBUTES
        if span.name == "meta" and _META.search(span.raw):
            read |= {"content"}
        if span.name == "input" and _BUTTON.search(span.raw):
            read |= {"value"}
        raw = _ATTRIBUTE.sub(lambda match: self._attribute(match, read), span.raw)
        if span.name == "html" and self.settings.is_right_to_left:
            raw = _DIRECTION.sub("", raw)
            raw = f'{raw[:5]} dir="rtl"{raw[5:]}'
        return raw

    def _attribute(self, match: re.Match[str], read: frozenset[str]) -> str:
        name = match["name"].lower()
        text = unescape(match["value"] or match["bare"] or "")
        if name in read and match["quote"]:
            new = translate_text(text, self.ask)
        elif name in _LANGUAGE_ATTRIBUTES and self._is_source(text):
            new = self.settings.target_language
        else:
            return match[0]
        if new == text:
            return match[0]
        quoted = new.translate(self.escapes | {ord('"'): "&quot;"})
        return f'{match["name"]}{match["equals"]}"{quoted}"'

    def _is_source(self, language: str) -> bool:
        return bool(self.settings.target_language) and self.settings.is_source(language)


rewrite_html = of_text(translate_html)
