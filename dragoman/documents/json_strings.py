"""Texts in JSON (.json, .arb): the strings that are values are translated where they stand; keys,
numbers, order, indentation and escapes stay.

Knows JSON, the metadata of Flutter's .arb and the messages.json of browser extensions; what is in a
message is known to messages.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dragoman.documents.code_like import looks_like_code
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.messages import MessageStyle, translate_message
from dragoman.documents.text_bytes import Edit, edited, read_text
from dragoman.text.markup_transfer import Ask

MAX_DEPTH = 100
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}:,]', re.DOTALL)
_LOCALE = "@@locale"
_TRANSLATED_FIELD = "message"


@dataclass(frozen=True)
class _Value:
    """A string that is a value: where it stands, and the keys that lead to it."""

    start: int
    end: int
    keys: tuple[str, ...]


def rewrite_json(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate the values of a file."""
    file = read_text(data)
    text = file.text
    _check_depth(text)
    root = json.loads(text)
    is_chrome = _is_chrome(root)
    is_arb = isinstance(root, dict) and any(key.startswith("@") for key in root)
    is_ascii = text.isascii() and "\\u" in text
    style = MessageStyle(settings.target_language)
    edits: list[Edit] = []
    for value in _values(text):
        raw = text[value.start : value.end]
        own = json.loads(raw)
        if is_arb and value.keys[:1] == (_LOCALE,) and settings.target_language:
            translation = settings.target_language.replace("-", "_")
        elif (
            (is_arb and any(key.startswith("@") for key in value.keys))
            or (is_chrome and value.keys[1:] != (_TRANSLATED_FIELD,))
            or looks_like_code(own)
        ):
            continue
        else:
            translation = translate_message(own, ask, style)
        if translation != own:
            edits.append((value.start, value.end, _written(translation, raw, is_ascii)))
    return file.encoded(edited(text, edits))


def _check_depth(text: str) -> None:
    depth = 0
    for match in _TOKEN.finditer(text):
        sign = match[0]
        depth += (sign in ("{", "[")) - (sign in ("}", "]"))
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} deep")


def _is_chrome(root: object) -> bool:
    """Whether this is the messages.json of a browser extension."""
    if not isinstance(root, dict) or not root:
        return False
    entries = list(root.values())
    return all(
        isinstance(entry, dict) and isinstance(entry.get(_TRANSLATED_FIELD), str)
        for entry in entries
    )


def _values(text: str) -> Iterator[_Value]:
    """Yield the strings of a checked file that are no keys."""
    held: re.Match[str] | None = None  # a string of which is not known yet whether it is a key
    keys: list[str] = []  # of the objects around a place; empty for an array
    for match in _TOKEN.finditer(text):
        sign = match[0]
        if sign[0] == '"':
            held = match
            continue
        if sign == ":" and held:
            keys[-1] = json.loads(held[0])
            held = None
            continue
        if held:
            yield _Value(held.start(), held.end(), tuple(key for key in keys if key))
            held = None
        if sign in ("{", "["):
            keys.append("")
        elif sign in ("}", "]"):
            keys.pop()
    if held:
        yield _Value(held.start(), held.end(), ())


def _written(text: str, raw: str, is_ascii: bool) -> str:
    written = json.dumps(text, ensure_ascii=is_ascii)
    return written.replace("/", "\\/") if "\\/" in raw else written
