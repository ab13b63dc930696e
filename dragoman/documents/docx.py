"""Word documents (.docx): the text of the body, headers, footers, notes, comments, text boxes and
diagrams, the descriptions of pictures and the title; all else is copied.

Knows the elements of WordprocessingML; the zip and XML are known to others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from dragoman.documents.archives import Archive, Rewriter
from dragoman.documents.code_styles import code_styles
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.drawings import rewrite_diagram, rewrite_properties
from dragoman.documents.segments import join
from dragoman.documents.word_language import set_direction, set_languages
from dragoman.documents.xml_markup import Markup
from dragoman.documents.xml_text import (
    check_xml,
    rewrite_attributes,
    rewrite_part,
    rewrite_xml,
    root_of,
)
from dragoman.text.markup_transfer import Ask
from dragoman.text.spans import Span

_BODY = "word/document.xml"
_STYLES = "word/styles.xml"
_TRANSLATED = re.compile(r"word/(?:document|header|footer|footnotes|endnotes|comments)\d*\.xml")
_PARAGRAPH_STYLE = re.compile(r'<w:pStyle\s[^<>]*?w:val="(?P<style>[^"<>]*)"')
_RUN_STYLE = re.compile(r'<w:rStyle\s[^<>]*?w:val="(?P<style>[^"<>]*)"')
_OWN = re.compile(r'w:styleId="(?P<value>[^"<>]*)"')
_NAME = re.compile(r'<w:name\s[^<>]*?w:val="(?P<value>[^"<>]*)"')
_PARENT = re.compile(r'<w:basedOn\s[^<>]*?w:val="(?P<value>[^"<>]*)"')
_KEPT = """
    w:pPr w:rPr w:sdtPr w:del w:moveFrom w:drawing w:pict w:object w:fldSimple mc:AlternateContent
    m:oMath m:oMathPara
"""
_WORD = Markup(
    paragraphs=frozenset(("w:p",)),
    keeps=frozenset(_KEPT.split()).__contains__,
    fixed=frozenset(("w:p", "w:pPr", "w:sdt", "w:sdtPr", "w:sdtContent")),
    breaks=frozenset(("w:br", "w:cr")),
    paragraph_properties="w:pPr",
    tabs=frozenset(("w:tab", "w:ptab")),
    run="w:r",
    properties="w:rPr",
    text="w:t",
    prepare=lambda spans: _join_fields(spans),
)


def rewrite_docx(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate the text of a document."""
    archive = Archive(data)
    markup = replace(_WORD, is_code=_code_test(archive))
    if root_of(check_xml(archive.read(_BODY))) != "w:document":
        raise ValueError(f"its {_BODY} is not that of a Word document")

    def rewrite(source: str) -> str:
        source = rewrite_attributes(source, "wp:docPr|pic:cNvPr", "descr|title", ask)
        rewritten = rewrite_xml(source, markup, ask)
        return set_direction(set_languages(rewritten, settings), settings)

    def rewriter_of(name: str) -> Rewriter | None:
        if _TRANSLATED.fullmatch(name):
            return lambda part: rewrite_part(part, rewrite)
        if name == _STYLES:
            return lambda part: rewrite_part(part, lambda text: set_languages(text, settings))
        return rewrite_diagram(name, ask) or rewrite_properties(name, ask)

    return archive.rewritten(rewriter_of)


def _code_test(archive: Archive) -> Callable[[str], bool]:
    """Return what tells whether the start of a paragraph or a run has a style for code."""
    source = check_xml(archive.read(_STYLES)) if _STYLES in archive.names else ""
    styles = code_styles(_styles(source))

    def is_code(start: str) -> bool:
        pattern = _PARAGRAPH_STYLE if start.startswith("<w:p") else _RUN_STYLE
        found = pattern.search(start)
        return found is not None and found["style"] in styles

    return is_code


def _styles(source: str) -> Iterator[tuple[str, str, str]]:
    for part in source.split("<w:style ")[1:]:
        own, name, parent = (pattern.search(part) for pattern in (_OWN, _NAME, _PARENT))
        if own and name:
            yield own["value"], name["value"], parent["value"] if parent else ""


def _join_fields(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans, a field, of several runs, as one; no field goes beyond its paragraph."""
    held: list[Span] = []
    depth = 0
    for span in spans:
        held.append(span)
        if span.name == "w:fldChar":
            depth += ('"begin"' in span.raw) - ('"end"' in span.raw)
        starts_run = held[0].name == "w:r" and held[0].kind == "open"
        ends_run = span.name == "w:r" and span.kind == "close"
        is_whole = ends_run or not starts_run
        if is_whole and depth <= 0:
            yield from _joined_if_field(held)
            held = []
            depth = 0
    yield from _joined_if_field(held)


def _joined_if_field(spans: list[Span]) -> list[Span]:
    if any(span.name == "w:fldChar" for span in spans):
        return [replace(join(spans), name="")]
    return spans
