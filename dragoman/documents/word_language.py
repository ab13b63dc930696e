"""The language and the direction that a Word document claims for its text. Knows the elements and
attributes for that, and their order; nothing of what is translated."""

from __future__ import annotations

import re

from dragoman.documents.document_settings import DocumentSettings

_LANGUAGE = re.compile(r'(?P<start><w:lang\s[^<>]*?w:val=")(?P<value>[^"<>]*)"')
_COMPLEX = re.compile(r'(?P<start><w:lang\s[^<>]*?w:bidi=")(?P<value>[^"<>]*)"')
_PARAGRAPH = re.compile(r"(?P<start><w:p(?:\s[^<>]*)?(?<!/)>)(?P<properties><w:pPr>)?")
_RUN = re.compile(r"(?P<start><w:r(?:\s[^<>]*)?(?<!/)>)(?P<properties><w:rPr>)?")
# What must come before the direction, if it is there: the schema has an order.
_BEFORE_BIDI = """
    pStyle keepNext keepLines pageBreakBefore framePr widowControl numPr suppressLineNumbers pBdr
    shd tabs suppressAutoHyphens kinsoku wordWrap overflowPunct topLinePunct autoSpaceDE autoSpaceDN
"""
_BEFORE_RTL = """
    rStyle rFonts b bCs i iCs caps smallCaps strike dstrike outline shadow emboss imprint noProof
    snapToGrid vanish webHidden color spacing w kern position sz szCs highlight u effect bdr shd
    fitText vertAlign
"""


def set_languages(source: str, settings: DocumentSettings) -> str:
    """Name the target language wherever the source language is named."""
    if not settings.target_language:
        return source

    def named(match: re.Match[str]) -> str:
        if not settings.is_source(match["value"]):
            return match[0]
        return f'{match["start"]}{settings.target_locale}"'

    source = _LANGUAGE.sub(named, source)
    if settings.is_right_to_left:
        source = _COMPLEX.sub(rf'\g<start>{settings.target_locale}"', source)
    return source


def set_direction(source: str, settings: DocumentSettings) -> str:
    """Let all paragraphs and runs go from right to left, if the target language does."""
    if not settings.is_right_to_left:
        return source
    source = _with_element(source, _PARAGRAPH, ("w:pPr", "w:bidi", _BEFORE_BIDI))
    return _with_element(source, _RUN, ("w:rPr", "w:rtl", _BEFORE_RTL))


def _with_element(source: str, pattern: re.Pattern[str], names: tuple[str, str, str]) -> str:
    """Put an empty element into the properties that follow what a pattern finds."""
    properties, element, names_before = names
    before = "|".join(f"w:{name}" for name in names_before.split())
    first = re.compile(
        rf"(?:<(?:{before})(?:\s[^<>]*)?/>|<(?P<name>{before})(?:\s[^<>]*)?>.*?</(?P=name)>)*+",
        re.DOTALL,
    )
    out: list[str] = []
    done = 0
    for match in pattern.finditer(source):
        out.append(source[done : match.end()])
        done = match.end()
        if not match["properties"]:
            out.append(f"<{properties}><{element}/></{properties}>")
            continue
        found = first.match(source, done)
        end = found.end() if found else done
        out.append(source[done:end])
        if not source.startswith(f"<{element}/>", end):
            out.append(f"<{element}/>")
        done = end
    out.append(source[done:])
    return "".join(out)
