"""Tags as HTML and XML have them: where they are in a source, which of them hold text that is not
translated, and how characters are escaped between them.

Knows tags and entities; no document as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from dragoman.documents.formulas import IN_PAGES, as_one_word
from dragoman.documents.segments import SpanAt
from dragoman.text.spans import Span

# No tags are looked for in these.
RAW_TAGS = frozenset(("script", "style", "textarea"))

_EMPTY = "area base br col embed hr img input link meta source track wbr"
_EMPTY_TAGS = frozenset(_EMPTY.split())
_BREAKS = frozenset(("br", "w:br", "w:cr", "w:tab"))
# What is in these is not translated: HTML's, then Word's.
_KEPT = """
    code kbd math pre samp svg tt var
    w:ppr w:rpr w:del w:drawing w:pict w:object w:fldsimple mc:alternatecontent m:omath m:omathpara
"""
_KEPT_TAGS = frozenset(_KEPT.split())
_NO_TRANSLATION = re.compile(
    r"""
    \s(?:
        translate\s*=\s*["']?no\b
        |class\s*=\s*(?:["'][^"'>]*)?(?<![\w-])(?:notranslate|math|katex|MathJax)(?![\w-])
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
# Possessive throughout, so that a tag that does not end costs one pass. Such a tag is no text
# either: the last alternative takes it, up to the next tag.
_TAG = re.compile(
    rf"""
    (?P<space>&nbsp;)
    |(?P<formula>{IN_PAGES})
    |<!--.*?(?:-->|\Z)
    |<(?P<raw>script|style|textarea)\b.*?(?:</(?P=raw)\s*>|\Z)
    |<(?P<name>/?[a-z][^\s/<>]*+)(?:[^<>"']++|"[^"]*+"|'[^']*+')*+>
    |<[a-z/!?][^<>]*+(?:>|(?=<)|\Z)
    """,
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
_ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|\w+);")
_CONTROL = range(32)


def find_tags(source: str) -> Iterator[SpanAt]:
    """Yield each tag, comment, script and hard space of a source."""
    for match in _TAG.finditer(source):
        yield match.start(), _mark(match)


def tag_span(raw: str, name: str) -> Span:
    """Return the span of a tag, given its source and its name, which may begin with a slash."""
    name = name.lower().lstrip("/")
    if raw[1] == "/":
        kind = "close"
    elif name in _EMPTY_TAGS or raw.endswith("/>"):
        kind = "void"
    else:
        kind = "open"
    protects = name in _KEPT_TAGS or bool(_NO_TRANSLATION.search(raw))
    text = " " if name in _BREAKS else ""
    return Span(kind, text, raw, name=name, keep=kind == "open" and protects)


def escapes_of(source: str) -> dict[int, str | None]:
    """Return how characters are written in this source, for `str.translate`.

    Its own entities come first; control characters are dropped.
    """
    table: dict[int, str | None] = dict.fromkeys(_CONTROL)
    table |= {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}
    for entity in sorted(set(_ENTITY.findall(source))):
        character = unescape(entity)
        if len(character) == 1:
            table[ord(character)] = entity
    return table


def _mark(match: re.Match[str]) -> Span:
    raw = match[0]
    if match["name"]:
        return tag_span(raw, match["name"])
    if match["formula"]:
        return Span("void", as_one_word(raw), raw, name="<!--")
    seen_as_space = match["space"] or raw.endswith("\n")
    name = match["space"] or (match["raw"] or "").lower() or raw[:4]
    return Span("void", " " if seen_as_space else "", raw, name=name)
