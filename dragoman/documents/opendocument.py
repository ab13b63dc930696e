"""OpenDocument (.odt, .odp, .ods): the text of the body, headers, footers, notes, comments, frames
and string cells, the descriptions of pictures and the title; fields, formulas, numbers and deleted
text stay. Knows the files and elements of the format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from dragoman.documents.archives import Archive, Rewriter
from dragoman.documents.code_styles import code_styles, is_code_name
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.drawings import TITLES
from dragoman.documents.xml_markup import Markup
from dragoman.documents.xml_text import check_xml, rewrite_part, rewrite_xml, root_of
from dragoman.text.markup_transfer import Ask

_CONTENT = "content.xml"
_TEXTS = (_CONTENT, "styles.xml")
_PROPERTIES = "meta.xml"
_MANIFEST = "META-INF/manifest.xml"
# In a paragraph, what is in these is its text; all other elements are notes, frames or fields.
_INLINE_TEXT = """
    text:span text:a text:meta text:ruby text:ruby-base text:text-input loext:content-control
"""
_INLINE = frozenset(_INLINE_TEXT.split())
# A cell whose text follows from a number or a formula.
_COMPUTED = re.compile(
    r'<table:(?:covered-)?table-cell\b[^<>]*\s(?:table:formula="|office:value-type="(?!string"))'
)
_DELETED = "<text:tracked-changes"
_MARKUP = Markup(
    paragraphs=frozenset(("text:p", "text:h", "svg:title", "svg:desc")),
    keeps=lambda name: name not in _INLINE,
    breaks=frozenset(("text:s", "text:line-break")),
    tabs=frozenset(("text:tab",)),
    skips=lambda tag: tag.startswith(_DELETED) or bool(_COMPUTED.match(tag)),
)
_STYLE = re.compile(r"<style:style\s[^<>]*>")
_OWN = re.compile(r'\sstyle:name="(?P<value>[^"<>]*)"')
_PARENT = re.compile(r'\sstyle:parent-style-name="(?P<value>[^"<>]*)"')
_STYLE_OF_TEXT = re.compile(r'^<text:(?:p|h|span)\s[^<>]*?text:style-name="(?P<value>[^"<>]*)"')
_TEXT_PROPERTIES = re.compile(r"<style:text-properties\b[^<>]*>")
_LANGUAGE = re.compile(r'\sfo:language="(?P<value>[^"<>]*)"')
_COUNTRY = re.compile(r'\sfo:country="[^"<>]*"')
_COMPLEX_LANGUAGE = re.compile(r'\sstyle:language-complex="[^"<>]*"')
_COMPLEX_COUNTRY = re.compile(r'\sstyle:country-complex="[^"<>]*"')
_DEFAULT_PARAGRAPH = re.compile(
    r"(?P<start><style:default-style\b[^<>]*\sstyle:family=\"(?:paragraph|graphic)\"[^<>]*>\s*"
    r"<style:paragraph-properties)(?P<attributes>[^<>]*?)(?P<end>/?>)"
)
_DIRECTION = re.compile(r'\sstyle:writing-mode="[^"]*"')


def rewrite_opendocument(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate the text of a document."""
    archive = Archive(data)
    _refuse_password(archive)
    if root_of(check_xml(archive.read(_CONTENT))) != "office:document-content":
        raise ValueError(f"its {_CONTENT} is not that of an OpenDocument file")

    markup = replace(_MARKUP, is_code=_code_test(archive))

    def rewrite(source: str) -> str:
        source = rewrite_xml(source, markup, ask)
        return _with_direction(_with_language(source, settings), settings)

    def rewriter_of(name: str) -> Rewriter | None:
        if name in _TEXTS:
            return lambda part: rewrite_part(part, rewrite)
        if name == _PROPERTIES:
            return lambda part: rewrite_part(part, lambda text: rewrite_xml(text, TITLES, ask))
        return None

    return archive.rewritten(rewriter_of)


def _code_test(archive: Archive) -> Callable[[str], bool]:
    """Return what tells whether the tag of a paragraph or a span has a style for code."""
    sources = [check_xml(archive.read(name)) for name in _TEXTS if name in archive.names]
    styles = code_styles(style for source in sources for style in _styles(source))

    def is_code(tag: str) -> bool:
        found = _STYLE_OF_TEXT.search(tag)
        name = found["value"] if found else ""
        return name in styles or is_code_name(name)

    return is_code


def _styles(source: str) -> Iterator[tuple[str, str, str]]:
    for tag in _STYLE.findall(source):
        own = _OWN.search(tag)
        parent = _PARENT.search(tag)
        if own:
            yield own["value"], own["value"], parent["value"] if parent else ""


def _refuse_password(archive: Archive) -> None:
    if _MANIFEST in archive.names and b"encryption-data" in archive.read(_MANIFEST):
        raise ValueError("it has a password")


def _with_language(source: str, settings: DocumentSettings) -> str:
    """Name the target language wherever the source language is named."""
    if not settings.target_language:
        return source
    language, _, country = settings.target_locale.partition("-")

    def named(match: re.Match[str]) -> str:
        tag = match[0]
        found = _LANGUAGE.search(tag)
        if found is None or not settings.is_source(found["value"]):
            return tag
        tag = _LANGUAGE.sub(f' fo:language="{language}"', tag)
        tag = _COUNTRY.sub(f' fo:country="{country or "none"}"', tag)
        if settings.is_right_to_left:
            tag = _COMPLEX_LANGUAGE.sub(f' style:language-complex="{language}"', tag)
            tag = _COMPLEX_COUNTRY.sub(f' style:country-complex="{country or "none"}"', tag)
        return tag

    return _TEXT_PROPERTIES.sub(named, source)


def _with_direction(source: str, settings: DocumentSettings) -> str:
    """Let paragraphs go from right to left by default, if the target language does."""

    def turned(match: re.Match[str]) -> str:
        attributes = _DIRECTION.sub("", match["attributes"])
        return f'{match["start"]}{attributes} style:writing-mode="rl-tb"{match["end"]}'

    return _DEFAULT_PARAGRAPH.sub(turned, source) if settings.is_right_to_left else source
