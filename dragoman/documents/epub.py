"""Books (.epub): the text of the pages, the table of contents, the title and the description; the
language is named. Knows the files of a book; pages are known to html.py."""

from __future__ import annotations

import re

from dragoman.documents.archives import Archive, Rewriter
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.html import translate_html
from dragoman.documents.xml_markup import Markup
from dragoman.documents.xml_text import check_xml, rewrite_part, rewrite_xml, root_of
from dragoman.text.markup_transfer import Ask

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_RIGHTS = "META-INF/rights.xml"
# Fonts are scrambled by these, which hides no text.
_OF_FONTS = (b"http://www.idpf.org/2008/embedding", b"http://ns.adobe.com/pdf/enc#RC")
_ALGORITHM = re.compile(rb'EncryptionMethod[^<>]*\sAlgorithm="([^"<>]*)"')
_PAGES = (".xhtml", ".html", ".htm")
_BOOK = Markup(paragraphs=frozenset(("dc:title", "dc:description")), keeps=lambda name: True)
_CONTENTS = Markup(paragraphs=frozenset(("text", "ncx:text")), keeps=lambda name: True)
_LANGUAGE = re.compile(r"(?P<start><dc:language\b[^<>]*>)(?P<value>[^<>]*)(?=</dc:language>)")


def rewrite_epub(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate the text of a book."""
    archive = Archive(data)
    if root_of(check_xml(archive.read(_CONTAINER))) != "container":
        raise ValueError(f"its {_CONTAINER} is not that of a book")
    _refuse_protected(archive)

    def rewriter_of(name: str) -> Rewriter | None:
        lower = name.lower()
        if lower.endswith(_PAGES):
            return lambda part: rewrite_part(part, lambda text: translate_html(text, ask, settings))
        if lower.endswith(".opf"):
            return lambda part: rewrite_part(part, lambda text: _book(text, ask, settings))
        if lower.endswith(".ncx"):
            return lambda part: rewrite_part(part, lambda text: rewrite_xml(text, _CONTENTS, ask))
        return None

    return archive.rewritten(rewriter_of)


def _book(source: str, ask: Ask, settings: DocumentSettings) -> str:
    def named(match: re.Match[str]) -> str:
        if not settings.is_source(match["value"].strip()):
            return match[0]
        return match["start"] + settings.target_language

    source = rewrite_xml(source, _BOOK, ask)
    return _LANGUAGE.sub(named, source) if settings.target_language else source


def _refuse_protected(archive: Archive) -> None:
    """Raise an error for a book that is encrypted, its fonts aside."""
    protected = _RIGHTS in archive.names
    if _ENCRYPTION in archive.names:
        algorithms = _ALGORITHM.findall(archive.read(_ENCRYPTION))
        protected |= any(algorithm not in _OF_FONTS for algorithm in algorithms)
    if protected:
        raise ValueError("it is protected against copying (DRM)")
