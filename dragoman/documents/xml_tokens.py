"""XML as a text with places: tags, their attributes, comments and CDATA, found where they stand so
that the rest can be copied. A file is checked by expat first.

Knows XML; no format that is written in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.parsers import expat

from dragoman.documents.text_bytes import TextFile, read_text

MAX_DEPTH = 200
_WIDEST_MARGIN = 200
_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?\sencoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")
_NAME = r"[^\s<>/=!?\"'][^\s<>/=\"']*+"
_TOKEN = re.compile(
    rf"""
    <!--.*?-->
    |<!\[CDATA\[(?P<cdata>.*?)\]\]>
    |<\?.*?\?>
    |<![^<>]*+>
    |<(?P<closing>/?)(?P<name>{_NAME})(?P<attributes>(?:[^<>"']++|"[^"]*+"|'[^']*+')*+)>
    """,
    re.DOTALL | re.VERBOSE,
)
_ATTRIBUTE = re.compile(rf"({_NAME})(\s*+=\s*+)(\"[^\"]*+\"|'[^']*+')")
_CHARACTER = re.compile(
    r"&(?:\#0*+(?P<decimal>\d{1,7})|\#x0*+(?P<hexadecimal>[0-9a-fA-F]{1,6})|(?P<name>\w+));"
)
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_LINE_END = re.compile("\r\n|\r|\n")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


@dataclass(frozen=True)
class Token:
    """A tag ("open", "close" or "empty"), a "cdata", or something "other", where it stands."""

    kind: str
    start: int
    end: int
    raw: str
    name: str = ""

    def attributes(self) -> dict[str, str]:
        """Return the attributes of a tag, as a reader sees them."""
        return {name: unescape(value[1:-1]) for name, _, value in _ATTRIBUTE.findall(self.raw)}


def read_xml(data: bytes) -> TextFile:
    """Decode a file of XML and check it; raise an error if it is broken or declares entities."""
    declared = _DECLARED.match(data)
    encoding = declared[1].decode().lower() if declared else "utf-8"
    # A file in UTF-16 without a byte order mark does not declare itself in these bytes.
    file = read_text(data, "utf-8" if encoding.startswith("utf-16") else encoding)
    _check(file.text)
    return file


def tokens(text: str) -> Iterator[Token]:
    """Yield all that is not text of a checked file."""
    for match in _TOKEN.finditer(text):
        raw = match[0]
        kind = "other"
        if match["cdata"] is not None:
            kind = "cdata"
        elif match["name"]:
            is_empty = raw.endswith("/>")
            kind = "close" if match["closing"] else "empty" if is_empty else "open"
        yield Token(kind, match.start(), match.end(), raw, match["name"] or "")


def with_attribute(tag: str, name: str, value: str) -> str:
    """Return a tag with an attribute set, in its old place or behind the others."""
    quoted = '"' + escape(value).replace('"', "&quot;") + '"'
    for match in _ATTRIBUTE.finditer(tag):
        if match[1] == name:
            start, end = match.span(3)
            return tag[:start] + quoted + tag[end:]
    end = len(tag) - (2 if tag.endswith("/>") else 1)
    behind = len(tag[:end].rstrip())
    return f"{tag[:behind]} {name}={quoted}{tag[behind:]}"


def unescape(raw: str) -> str:
    """Return the characters that a program reads between two tags: every line ends with \\n, and a
    \\r was written as a reference."""
    return _CHARACTER.sub(_character, _LINE_END.sub("\n", raw))


def escape(text: str) -> str:
    """Write a text between tags."""
    text = _CONTROL.sub("", text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#13;")  # a bare one would be read as the end of a line


def with_line_ends(text: str, raw: str) -> str:
    """Return a written text whose lines end as those of its source do; one that reads as its source
    does is the source."""
    found = _LINE_END.search(raw)
    if found is None:
        return text
    if _LINE_END.sub("\n", raw) == text:
        return raw
    return _LINE_END.sub(found[0], text)


def margin_of(text: str, place: int) -> str:
    """Return the line break and the white space before a place, if nothing else is before it."""
    start = text.rfind("\n", max(0, place - _WIDEST_MARGIN), place)
    margin = text[start:place] if start >= 0 else ""
    return margin if not margin.strip() else ""


def is_whole(content: str) -> bool:
    """Whether a stretch of XML has all its tags in pairs; prefixes of names are not looked up."""
    checker = expat.ParserCreate()
    try:
        checker.Parse(f"<x>{content}</x>", True)
    except expat.ExpatError:
        return False
    return True


def _character(match: re.Match[str]) -> str:
    if match["decimal"]:
        return chr(int(match["decimal"]))
    if match["hexadecimal"]:
        return chr(int(match["hexadecimal"], 16))
    return _NAMED.get(match["name"], match[0])


def _check(text: str) -> None:
    depth = 0

    def refuse(*_: object) -> None:
        raise ValueError("it declares entities")

    def deeper(*_: object) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"its elements are nested more than {MAX_DEPTH} deep")

    def higher(*_: object) -> None:
        nonlocal depth
        depth -= 1

    checker = expat.ParserCreate("utf-8", " ")  # with a separator, prefixes have to be declared
    checker.EntityDeclHandler = refuse
    checker.StartElementHandler = deeper
    checker.EndElementHandler = higher
    checker.Parse(text.encode("utf-8"), True)
