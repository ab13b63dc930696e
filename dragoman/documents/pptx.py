"""Slides (.pptx): the text of slides, notes, comments, tables and diagrams, the descriptions of
pictures and the title; all else is copied. Knows the files and elements of PresentationML."""

from __future__ import annotations

import re

from dragoman.documents.archives import Archive, Rewriter
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.drawings import DRAWING, rewrite_diagram, rewrite_properties
from dragoman.documents.xml_markup import Markup
from dragoman.documents.xml_text import (
    check_xml,
    rewrite_attributes,
    rewrite_part,
    rewrite_xml,
    root_of,
)
from dragoman.text.markup_transfer import Ask

_MAIN = "ppt/presentation.xml"
_TRANSLATED = re.compile(r"ppt/(?:slides/slide|notesSlides/notesSlide|comments/[^/]*?)\d*\.xml")
# Older comments are plain text.
_COMMENT = Markup(paragraphs=frozenset(("p:text",)), keeps=lambda name: True)
_LANGUAGE = re.compile(
    r'(?P<start><a:(?:rPr|endParaRPr|defRPr)\s(?:[^<>]*?\s)?lang=")(?P<value>[^"<>]*)"'
)
_PARAGRAPH = re.compile(r"<a:p>(?:<a:pPr(?P<attributes>[^<>]*?)(?P<end>/?>))?")
_DIRECTION = re.compile(r'\srtl="[^"]*"')


def rewrite_pptx(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate the text of slides."""
    archive = Archive(data)
    if root_of(check_xml(archive.read(_MAIN))) != "p:presentation":
        raise ValueError(f"its {_MAIN} is not that of slides")

    def rewrite(source: str) -> str:
        source = rewrite_attributes(source, "p:cNvPr", "descr|title", ask)
        source = rewrite_xml(source, DRAWING, ask)
        source = rewrite_xml(source, _COMMENT, ask)
        return _with_direction(_with_language(source, settings), settings)

    def rewriter_of(name: str) -> Rewriter | None:
        if _TRANSLATED.fullmatch(name):
            return lambda part: rewrite_part(part, rewrite)
        return rewrite_diagram(name, ask) or rewrite_properties(name, ask)

    return archive.rewritten(rewriter_of)


def _with_language(source: str, settings: DocumentSettings) -> str:
    def named(match: re.Match[str]) -> str:
        if not settings.is_source(match["value"]):
            return match[0]
        return f'{match["start"]}{settings.target_locale}"'

    return _LANGUAGE.sub(named, source) if settings.target_language else source


def _with_direction(source: str, settings: DocumentSettings) -> str:
    """Let all paragraphs go from right to left, if the target language does."""

    def turned(match: re.Match[str]) -> str:
        attributes = _DIRECTION.sub("", match["attributes"] or "")
        return f'<a:p><a:pPr rtl="1"{attributes}{match["end"] or "/>"}'

    return _PARAGRAPH.sub(turned, source) if settings.is_right_to_left else source
