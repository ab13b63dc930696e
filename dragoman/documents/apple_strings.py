"""Texts of Apple's programs (.strings, .stringsdict): values are translated; keys, comments and the
layout stay.

Knows the escapes of a .strings file, in UTF-8 or UTF-16, and the plural rules of a .stringsdict,
which get the categories of the target language; what is in a message is known to messages.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from dragoman.documents.code_like import looks_like_code
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.messages import MessageStyle, translate_message
from dragoman.documents.plural_forms import CATEGORIES, plural_rule
from dragoman.documents.text_bytes import Edit, edited, read_text
from dragoman.documents.xml_tokens import (
    Token,
    escape,
    margin_of,
    read_xml,
    tokens,
    unescape,
    with_line_ends,
)
from dragoman.text.markup_transfer import Ask

_STRING = r'"(?:[^"\\]|\\.)*+"'
_TOKEN = re.compile(
    rf"(?P<space>\s++|/\*.*?\*/|//[^\r\n]*+)|(?P<string>{_STRING})|(?P<sign>[=;{{}}])"
    r"|(?P<word>[\w.$/:-]++)",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:U([0-9a-fA-F]{4})|([0-7]{3})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}
_WRITTEN = {10: "\\n", 9: "\\t", 13: "\\r", 34: '\\"', 92: "\\\\"}
_FORMAT_KEY = "NSStringLocalizedFormatKey"


def rewrite_strings(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate the values of a .strings file."""
    default = "utf-8"
    if data[:2].count(b"\x00") == 1:  # UTF-16 without a byte order mark
        default = "utf-16-be" if data[:1] == b"\x00" else "utf-16-le"
    file = read_text(data, default)
    style = MessageStyle(settings.target_language)
    edits: list[Edit] = []
    for start, end in _values(file.text):
        own = _ESCAPE.sub(_character, file.text[start + 1 : end - 1])
        if looks_like_code(own):
            continue
        translation = translate_message(own, ask, style)
        if translation != own:
            edits.append((start, end, f'"{translation.translate(_WRITTEN)}"'))
    return file.encoded(edited(file.text, edits))


def _values(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the value of each pair begins and ends."""
    position = 0
    row: list[re.Match[str]] = []
    count = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"it has no key, value or comment at {text[position : position + 30]}")
        position = match.end()
        if match["space"]:
            continue
        row.append(match)
        if match[0] != ";":
            continue
        signs = [one["sign"] for one in row]
        if signs != [None, "=", None, ";"] or not row[2]["string"]:
            raise ValueError('a line is not of the form "key" = "value";')
        yield row[2].span()
        count += 1
        row = []
    if row or not count:
        raise ValueError("it ends in the middle of a line" if row else "it has no key with a value")


def _character(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    if match[2]:
        return chr(int(match[2], 8))
    return _LETTERS.get(match[3], match[3])


@dataclass
class _Variable:
    """The texts of one number in a .stringsdict, by category: key, string, and where they stand."""

    rows: dict[str, tuple[int, int, str]] = field(default_factory=dict)


def rewrite_stringsdict(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate the formats and plural texts of a .stringsdict file."""
    file = read_xml(data)
    text = file.text
    root = next((token for token in tokens(text) if token.kind in ("open", "empty")), None)
    if root is None or root.name != "plist":
        raise ValueError("it is no property list: it has no element called plist")
    edits: list[Edit] = []
    for found in _rules(text):
        edits += _translated_rules(text, found, ask, settings)
    edits.sort()
    return file.encoded(edited(text, edits), "xmlcharrefreplace")


def _rules(text: str) -> Iterator[_Variable]:
    """Yield the texts of each dictionary."""
    stack: list[_Variable] = []
    opened: Token | None = None
    key: tuple[int, str] | None = None  # of the string that comes next
    for token in tokens(text):
        is_markup = token.kind in ("open", "close", "empty")
        has_comment = token.kind == "other" and opened is not None  # which has to stay
        if has_comment or (is_markup and token.name not in ("key", "string")):
            key = None
        if token.name == "dict" and token.kind == "open":
            stack.append(_Variable())
        elif token.name == "dict" and token.kind == "close" and stack:
            yield stack.pop()
        elif token.name in ("key", "string") and token.kind == "open":
            opened = token
        elif token.name in ("key", "string") and token.kind == "close" and opened:
            content = _read(text[opened.end : token.start])
            if token.name == "key":
                key = (opened.start, content)
            elif stack and key:
                stack[-1].rows[key[1]] = (key[0], token.end, content)
                key = None
            opened = None


def _translated_rules(
    text: str, variable: _Variable, ask: Ask, settings: DocumentSettings
) -> list[Edit]:
    language = settings.target_language
    edits: list[Edit] = []
    whole = variable.rows.get(_FORMAT_KEY)
    if whole:
        translation = translate_message(whole[2], ask, MessageStyle(language))
        edits.append(_row(_FORMAT_KEY, translation, text, whole))
    if "other" not in variable.rows:
        return edits
    given = {name: row for name, row in variable.rows.items() if name in CATEGORIES}
    numbers = plural_rule(language).categories if language else dict.fromkeys(given, "")
    rows = []
    for name in CATEGORIES:
        if name in numbers:
            source = given.get(name, given["other"])
            style = MessageStyle(language, number=numbers[name])
            rows.append((name, translate_message(source[2], ask, style)))
    places = sorted(given.values())
    for number, place in enumerate(places):
        is_last = number == len(places) - 1
        own = rows[number:] if is_last else rows[number : number + 1]
        written = [_row(name, translation, text, place)[2] for name, translation in own]
        margin = margin_of(text, place[0])
        edits.append((place[0], place[1], margin.join(written)))
    return edits


def _row(name: str, translation: str, text: str, place: tuple[int, int, str]) -> Edit:
    """Return a key and its string, with the space between them as the source has it."""
    start, end, _ = place
    raw = text[start:end]
    string = raw.rindex("<string>")
    between = raw[raw.index("</key>") + len("</key>") : string]
    content = raw[string + len("<string>") : -len("</string>")]
    if translation != _read(content):
        content = with_line_ends(escape(translation), content)
    written = f"<key>{name}</key>{between}<string>{content}</string>"
    return start, end, written


def _read(raw: str) -> str:
    """Return what a program reads between two tags."""
    parts: list[str] = []
    end = 0
    for token in tokens(raw):
        parts.append(unescape(raw[end : token.start]))
        end = token.end
        if token.kind == "cdata":
            parts.append(token.raw[len("<![CDATA[") : -len("]]>")])
    return "".join((*parts, unescape(raw[end:])))
