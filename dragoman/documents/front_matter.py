"""The front matter of a Markdown page, in YAML or TOML: title and descriptions on one line are
translated and the language is named; all else stays. Knows the lines that sites have, not the whole
of either language.
"""

from __future__ import annotations

import json
import re

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.segments import translate_text
from dragoman.text.markup_transfer import Ask

_BLOCK = re.compile(
    r"(?:---[ \t]*\r?\n(?:.*?\n)??(?:---|\.\.\.)|\+\+\+[ \t]*\r?\n(?:.*?\n)??\+\+\+)"
    r"[ \t]*(?:\r?\n|\Z)",
    re.DOTALL,
)
_KEYS = "title|subtitle|description|summary|excerpt|abstract|tagline|linkTitle|sidebar_label"
_LANGUAGE_KEYS = "lang|language|locale"
_LINE = re.compile(
    rf"""
    ^(?P<start>(?P<key>{_KEYS}|{_LANGUAGE_KEYS})[ \t]*[:=][ \t]*)
    (?:
        (?P<double>"(?:[^"\\\n]|\\["\\])*")
        |'(?P<single>(?:[^'\n]|'')*)'
        |(?P<plain>\w(?:[ \t]*+(?:[^ \t\n\r#:]|:(?=\S)|(?<=\S)\#))*+)
    )
    (?=[ \t]*(?:[ ]\#[^\n]*)?\r?$(?!\n[ \t]+\S))
    """,
    re.MULTILINE | re.VERBOSE,
)
# A plain text that YAML reads as this text and nothing else.
_PLAIN = re.compile(r"[^\W\d_](?:[^\n:#\"'\\]|:(?=\w))*")
_NO_TEXT = frozenset(["yes", "no", "true", "false", "null", "on", "off", "y", "n"])


def front_matter_of(source: str) -> str:
    """Return the front matter at the start of a page, or nothing."""
    found = _BLOCK.match(source)
    return found[0] if found else ""


def translate_front_matter(source: str, ask: Ask, settings: DocumentSettings) -> str:
    """Translate the lines of a front matter that hold text."""
    is_toml = source.startswith("+++")

    def translated(line: re.Match[str]) -> str:
        has_quotes = line["plain"] is None
        is_other_sign = ("=" in line["start"]) != is_toml
        if is_other_sign or (is_toml and not has_quotes):
            return line[0]
        text = _value(line)
        if line["key"] in _LANGUAGE_KEYS.split("|"):
            is_source = bool(settings.target_language) and settings.is_source(text)
            new = settings.target_language if is_source else text
        else:
            new = translate_text(text, ask)
        return line[0] if new == text else line["start"] + _written(new, line)

    return _LINE.sub(translated, source)


def _value(line: re.Match[str]) -> str:
    if line["double"] is not None:
        return str(json.loads(line["double"]))
    if line["single"] is not None:
        return line["single"].replace("''", "'")
    return str(line["plain"])


def _written(text: str, line: re.Match[str]) -> str:
    text = " ".join(text.split())
    if line["single"] is not None and "'" not in text:
        return f"'{text}'"
    is_plain = bool(_PLAIN.fullmatch(text)) and text.lower() not in _NO_TEXT
    if line["plain"] is not None and is_plain:
        return text
    return json.dumps(text, ensure_ascii=False)
