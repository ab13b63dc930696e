"""Word documents (.docx): the text of the body, headers, footers and notes; all else is copied.

Knows the zip and the elements of WordprocessingML that hold text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from html import unescape
from io import BytesIO
from xml.parsers import expat
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.segments import join, read_spans, translate_paragraphs
from dragoman.documents.tags import escapes_of, find_tags
from dragoman.text.markup_transfer import Ask
from dragoman.text.spans import Span

MAX_UNPACKED = 50 * 2**20
MAX_FILES = 5_000  # in one document: parts, and a file for each picture

_BODY = "word/document.xml"
_TRANSLATED = re.compile(r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml")
_TEXT = '<w:t xml:space="preserve">'
_BLOCKS = ("w:p", "w:sdt", "w:sdtcontent")
_BUFFER = 2**16


def rewrite_docx(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate the text of a document."""
    out = BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as new:
        for item, content in _unpacked(data):
            if _TRANSLATED.fullmatch(item.filename):
                content = _translate_part(content, ask)
            new.writestr(item, content)
    return out.getvalue()


def _unpacked(data: bytes) -> Iterator[tuple[ZipInfo, bytes]]:
    """Yield the files of a document, which may lie about themselves."""
    with ZipFile(BytesIO(data)) as archive:
        items = archive.infolist()
        if len(items) > MAX_FILES:
            raise ValueError(f"it has {len(items):,} files in it, more than {MAX_FILES:,}")
        if sum(item.file_size for item in items) > MAX_UNPACKED:
            raise ValueError(f"it unpacks to more than {MAX_UNPACKED:,} bytes")
        if _BODY not in archive.namelist():
            raise ValueError(f"it has no {_BODY}")
        for item in items:
            if item.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                # Others are inflated by whole blocks, whatever size they claim.
                raise ValueError("it is compressed as Word never does")
            yield item, _unpack(archive, item)


def _unpack(archive: ZipFile, item: ZipInfo) -> bytes:
    """Read a file in blocks, so that one that is longer than it claims is never unpacked whole."""
    content = bytearray()
    with archive.open(item) as file:
        while block := file.read(_BUFFER):
            content += block
    return bytes(content)


def _translate_part(data: bytes, ask: Ask) -> bytes:
    _check(data)
    source = data.decode("utf-8")
    escapes = escapes_of(source)

    def write(span: Span) -> str:
        text = span.text.translate(escapes)
        opened = [mark.opening for mark in span.marks]
        if _TEXT in opened:
            return text
        text = f"{_TEXT}{text}</w:t>"
        if any(tag.startswith("<w:r") for tag in opened):
            return text
        return f"<w:r>{text}</w:r>"

    spans = _join_fields(_mark_texts(read_spans(source, find_tags(source), unescape)))
    return translate_paragraphs(spans, _is_inline, ask, write).encode("utf-8", "replace")


def _check(data: bytes) -> None:
    """Raise an error for XML that is broken or declares entities."""

    def refuse(*_: object) -> None:
        raise ValueError("it declares entities")

    checker = expat.ParserCreate()
    checker.StartDoctypeDeclHandler = refuse
    checker.Parse(data, True)


def _is_inline(span: Span) -> bool:
    return span.name not in _BLOCKS


def _mark_texts(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans, of which only those directly in w:t are text."""
    opened = ""
    for span in spans:
        if span.kind == "text" and opened != "w:t":
            span = replace(span, kind="void", text="")
        opened = span.name if span.kind == "open" else ""
        yield replace(span, text=_TEXT) if opened == "w:t" else span


def _join_fields(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans, a run's properties with its start, and a field, of several runs, as one."""
    held: list[Span] = []
    depth = 0
    for span in spans:
        held.append(span)
        if span.name == "w:rpr" and len(held) == 2:
            held = [replace(held[0], raw=held[0].raw + span.raw)]
        if span.name == "w:fldchar":
            depth += ('"begin"' in span.raw) - ('"end"' in span.raw)
        starts_run = held[0].name == "w:r" and held[0].kind == "open"
        ends_run = span.name == "w:r" and span.kind == "close"
        is_whole = ends_run or not starts_run
        if span.name == "w:p" or (is_whole and depth <= 0):
            yield from _joined_if_field(held)
            held = []
            depth = 0
    yield from held


def _joined_if_field(spans: list[Span]) -> list[Span]:
    if any(span.name == "w:fldchar" for span in spans):
        return [replace(join(spans), name="")]
    return spans
