"""PDF: the text of a file as a page of HTML, translated. The layout is not kept.

pypdf reads the text; lines are joined to paragraphs again, and words that a line end divides to
words. Knows pages and lines; encrypted files are refused.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from html import escape

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.segments import translate_text
from dragoman.text.markup_transfer import Ask

MAX_PAGES = 2_000
_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl"}
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")
_BULLET = re.compile(r"(?:[•◦▪‣–*-]|\(?\d{1,3}[.)]|\(?[a-z]\))\s")
_ENDS = '.!?:…。！？”"'
_SHORT = 0.75  # of the longest line's length: a line that is shorter may be the last of its text


def rewrite_pdf(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Return a page of HTML with the translated text of a PDF."""
    title, pages = _read(data)
    paragraphs = _paragraphs(pages)
    if not paragraphs:
        raise ValueError("it has no text; a scanned page is a picture")
    body = "".join(f"<p>{escape(_translated(text, ask))}</p>\n" for text in paragraphs)
    language = escape(settings.target_language)
    attributes = f' lang="{language}"' if language else ""
    if settings.is_right_to_left:
        attributes += ' dir="rtl"'
    head = f'<meta charset="utf-8">\n<title>{escape(_translated(title, ask))}</title>'
    page = f"<!DOCTYPE html>\n<html{attributes}>\n<head>\n{head}\n</head>\n<body>\n"
    return f"{page}{body}</body>\n</html>\n".encode()


def _translated(text: str, ask: Ask) -> str:
    return _CONTROL.sub("", translate_text(text, ask))


def _read(data: bytes) -> tuple[str, list[str]]:
    """Return the title of a file and the text of its pages."""
    import logging

    from pypdf import PdfReader

    if b"%PDF-" not in data[:1024]:
        raise ValueError("it does not begin as a PDF does")
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # of what it can put right itself
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted:
            raise ValueError("it is encrypted; save it without a password")
        if len(reader.pages) > MAX_PAGES:
            raise ValueError(f"it has more than {MAX_PAGES:,} pages")
        title = reader.metadata.title if reader.metadata else None
        return str(title or ""), [page.extract_text() for page in reader.pages]
    except (ValueError, MemoryError, TimeoutError):
        raise
    except Exception as error:  # a damaged file may lead pypdf to any
        raise ValueError(f"it is damaged: {error or type(error).__name__}") from None


def _paragraphs(pages: Sequence[str]) -> list[str]:
    """Return the paragraphs of all pages; one that a page ends goes on on the next."""
    paragraphs: list[str] = []
    for page in pages:
        own = list(_page_paragraphs(page))
        if paragraphs and own and _goes_on(paragraphs[-1], own[0]):
            paragraphs[-1] = _joined(paragraphs[-1], own.pop(0))
        paragraphs += own
    return paragraphs


def _page_paragraphs(page: str) -> Iterator[str]:
    text = _CONTROL.sub("", page.translate(_LIGATURES))
    lines = [line.strip() for line in text.splitlines()]
    longest = max(map(len, lines), default=0)
    held: list[str] = []
    for line in lines:
        if held and (not line or _begins(held[-1], line, longest)):
            yield _unbroken(held)
            held = []
        if line:
            held.append(line)
    if held:
        yield _unbroken(held)


def _begins(before: str, line: str, longest: int) -> bool:
    """Whether a line begins a paragraph."""
    if _BULLET.match(line):
        return True
    if len(before) >= _SHORT * longest:
        return False
    # A short line is the last of a paragraph, or a heading.
    return before[-1] in _ENDS or not line[0].islower()


def _goes_on(before: str, after: str) -> bool:
    return before[-1:] not in _ENDS and after[:1].islower()


def _unbroken(lines: Sequence[str]) -> str:
    out = lines[0]
    parts = [out]
    for line in lines[1:]:
        last = parts.pop()
        joined = _joined(last[-50:], line)
        parts.append(last[:-50])
        parts.append(joined)
    return "".join(parts)


def _joined(before: str, line: str) -> str:
    """Return two lines as one: a word that is divided at the line end is one word."""
    if before.endswith("\u00ad"):
        return before[:-1] + line
    is_divided = before.endswith(("-", "‐")) and before[-2:-1].isalpha() and line[:1].islower()
    return before[:-1] + line if is_divided else f"{before} {line}"
