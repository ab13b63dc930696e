"""Workbooks (.xlsx): the text of cells, comments and text boxes, and the title; formulas, numbers,
names of sheets and headers of tables stay, since others refer to them. Knows the files and elements
of SpreadsheetML."""

from __future__ import annotations

import re
from html import unescape

from dragoman.documents.archives import Archive, Rewriter
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.drawings import DRAWING, rewrite_diagram, rewrite_properties
from dragoman.documents.segments import translate_text
from dragoman.documents.tags import escapes_of
from dragoman.documents.xml_markup import Markup
from dragoman.documents.xml_text import (
    check_xml,
    rewrite_attributes,
    rewrite_part,
    rewrite_xml,
    root_of,
)
from dragoman.text.markup_transfer import Answer, Ask

_MAIN = "xl/workbook.xml"
_CELLS = re.compile(r"xl/(?:sharedStrings|worksheets/[^/]+)\.xml")
_COMMENTS = re.compile(r"xl/(?:comments[^/]*|comments/[^/]+|threadedComments/[^/]+)\.xml")
_TEXT = re.compile(r"<(?:\w+:)?t(?:\s[^<>]*)?>(?P<text>[^<>]*)</")
# A cell of a formula whose last result was a text; programs show it until they compute it anew.
_RESULT = re.compile(
    r"""
    (?P<start><(?:\w+:)?c\s[^<>]*?\bt="str"[^<>]*>\s*
        <(?:\w+:)?f\b(?:[^<>]*/>|[^<>]*>[^<>]*</(?:\w+:)?f>)\s*<(?:\w+:)?v>)
    (?P<text>[^<>]*)(?=</)
    """,
    re.VERBOSE,
)
_DRAWING = re.compile(r"xl/drawings/drawing\d+\.xml")
_TABLE = re.compile(r"xl/tables/[^/]+\.xml")
_COLUMN = re.compile(r'<(?:\w+:)?tableColumn\s(?:[^<>]*?\s)?name="(?P<name>[^"<>]*)"')
_VIEW = re.compile(r"<(?P<name>(?:\w+:)?sheetView)\b(?P<attributes>[^<>]*?)(?P<end>/?>)")
_DIRECTION = re.compile(r'\srightToLeft="[^"]*"')


def rewrite_xlsx(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate the text of a workbook."""
    archive = Archive(data)
    root = root_of(check_xml(archive.read(_MAIN)))
    if not root.endswith("workbook"):
        raise ValueError(f"its {_MAIN} is not that of a workbook")
    prefix = root.removesuffix("workbook")
    cells = _markup(prefix, "si", "is")
    comments = _markup(prefix, "text")
    ask_cell = _asking(ask, _headers(archive))
    texts = _texts(archive)

    def rewrite_cells(source: str) -> str:
        source = _with_results(rewrite_xml(source, cells, ask_cell), texts, ask_cell)
        return _with_direction(source, settings)

    def rewrite_drawing(source: str) -> str:
        source = rewrite_attributes(source, "xdr:cNvPr", "descr|title", ask)
        return rewrite_xml(source, DRAWING, ask)

    def rewriter_of(name: str) -> Rewriter | None:
        if _CELLS.fullmatch(name):
            return lambda part: rewrite_part(part, rewrite_cells)
        if _COMMENTS.fullmatch(name):
            return lambda part: rewrite_part(part, lambda text: _comment(text, comments, ask))
        if _DRAWING.fullmatch(name):
            return lambda part: rewrite_part(part, rewrite_drawing)
        return rewrite_diagram(name, ask) or rewrite_properties(name, ask)

    return archive.rewritten(rewriter_of)


def _markup(prefix: str, *paragraphs: str) -> Markup:
    kept = {f"{prefix}{name}" for name in ("rPr", "rPh", "phoneticPr")}
    return Markup(
        paragraphs=frozenset(f"{prefix}{name}" for name in paragraphs),
        keeps=kept.__contains__,
        fixed=frozenset((f"{prefix}rPh", f"{prefix}phoneticPr")),
        run=f"{prefix}r",
        properties=f"{prefix}rPr",
        text=f"{prefix}t",
        keeps_lines=True,
    )


def _comment(source: str, markup: Markup, ask: Ask) -> str:
    """Rewrite comments: those of a thread are plain text, without runs."""
    if root_of(source).endswith("ThreadedComments"):
        plain = Markup(markup.paragraphs, keeps=lambda name: True, keeps_lines=True)
        return rewrite_xml(source, plain, ask)
    return rewrite_xml(source, markup, ask)


def _headers(archive: Archive) -> set[str]:
    """Return the names of the columns of tables, by which formulas call them; a cell that says
    something else makes a workbook damaged."""
    names: set[str] = set()
    for name in sorted(filter(_TABLE.fullmatch, archive.names)):
        source = check_xml(archive.read(name))
        names |= {" ".join(unescape(found).split()) for found in _COLUMN.findall(source)}
    return names


def _texts(archive: Archive) -> set[str]:
    """Return the texts of all cells."""
    sources = [check_xml(archive.read(name)) for name in filter(_CELLS.fullmatch, archive.names)]
    return {unescape(text) for source in sources for text in _TEXT.findall(source)}


def _with_results(source: str, texts: set[str], ask: Ask) -> str:
    """Translate the results of formulas that are texts of cells, as one that refers to a cell."""
    escapes = escapes_of(source)

    def translated(match: re.Match[str]) -> str:
        text = unescape(match["text"])
        if text not in texts:
            return match[0]
        new = translate_text(text, ask)
        return match[0] if new == text else match["start"] + new.translate(escapes)

    return _RESULT.sub(translated, source)


def _asking(ask: Ask, kept: set[str]) -> Ask:
    def asked(text: str) -> Answer:
        return (text, ()) if text in kept else ask(text)

    return asked


def _with_direction(source: str, settings: DocumentSettings) -> str:
    """Let sheets begin on the right, if the target language does."""

    def turned(match: re.Match[str]) -> str:
        attributes = _DIRECTION.sub("", match["attributes"])
        return f'<{match["name"]} rightToLeft="1"{attributes}{match["end"]}'

    return _VIEW.sub(turned, source) if settings.is_right_to_left else source
