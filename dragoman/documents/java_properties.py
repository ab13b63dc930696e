"""Texts of Java programs (.properties): values are translated; keys, comments, separators and the
order stay.

Knows the escapes and the continued lines of a file of properties, which is UTF-8 or, as before
Java 9, ISO 8859-1; what is in a message is known to messages.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dragoman.documents.code_like import looks_like_code
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.messages import MessageStyle, translate_message
from dragoman.documents.text_bytes import Edit, TextFile, edited, read_text
from dragoman.text.markup_transfer import Ask

# A comment, an empty line, or a key and its separator.
_COMMENT = re.compile(r"[ \t\f]*+(?:[#!][^\r\n]*+)?(?:\r\n|\r|\n|\Z)")
_KEY = re.compile(
    r"[ \t\f]*+(?:[^\\\s=:]|\\(?:\r\n|.))(?:[^\\\s=:]|\\(?:\r\n[ \t\f]*+|[\r\n][ \t\f]*+|.))*+"
    r"(?:[ \t\f]|\\(?:\r\n|\r|\n))*+[=:]?+(?:[ \t\f]|\\(?:\r\n|\r|\n))*+",
    re.DOTALL,
)
_NO_KEY = re.compile(r"[ \t\f]*+[=:][ \t\f]*+")
_VALUE = re.compile(r"(?:[^\\\r\n]|\\(?:\r\n|.))*+", re.DOTALL)
_LINE_END = re.compile(r"\r\n|\r|\n|\Z")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(?:\r\n|\r|\n)[ \t\f]*|(.))", re.DOTALL)
_CONTINUED = re.compile(r"\\((?:\r\n|\r|\n)[ \t\f]*)")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_WRITTEN = {ord(value): f"\\{key}" for key, value in _LETTERS.items()} | {92: "\\\\"}
_ARGUMENT = re.compile(r"\{\d{1,3}\s{0,9}[,}]")
_LATIN = "iso-8859-1"


def rewrite_properties(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate the values of a file."""
    file = _read(data)
    text = file.text
    style = MessageStyle(settings.target_language)
    edits: list[Edit] = []
    count = 0
    for start, end in _values(text):
        count += 1
        raw = text[start:end]
        value = _unescaped(raw)
        has_arguments = bool(_ARGUMENT.search(value))
        own = value.replace("''", "'") if has_arguments else value
        if looks_like_code(own):
            continue
        translation = translate_message(own, ask, style)
        if translation == own:
            continue
        if has_arguments:  # MessageFormat reads a single quote as the start of a quotation
            translation = translation.replace("'", "''")
        edits.append((start, end, _written(translation, raw, file)))
    if not count:
        raise ValueError("it has no key with a value")
    return file.encoded(edited(text, edits))


def _read(data: bytes) -> TextFile:
    if b"\x00" in data:
        raise ValueError("it has nul bytes, which no text has")
    try:
        return read_text(data)
    except UnicodeDecodeError:
        return read_text(data, _LATIN)


def _values(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each value begins and ends."""
    position = 0
    while position < len(text):
        comment = _COMMENT.match(text, position)
        if comment:
            position = comment.end()
            continue
        key = _KEY.match(text, position) or _NO_KEY.match(text, position)
        start = key.end() if key else position
        value = _VALUE.match(text, start)
        end = value.end() if value else start
        if end > start:
            yield start, end
        line_end = _LINE_END.search(text, end)
        after = line_end.end() if line_end else len(text)
        position = max(after, position + 1)


def _unescaped(raw: str) -> str:
    def character(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return _LETTERS.get(match[2], match[2]) if match[2] else ""

    text = _ESCAPE.sub(character, raw)
    # Characters beyond the first plane are written as two.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _written(text: str, raw: str, file: TextFile) -> str:
    """Write a value: what the file's encoding may lack as an escape, line breaks as it did."""
    escaped = text.translate(_WRITTEN)
    continued = _CONTINUED.search(raw)
    if continued:
        head, separator, tail = escaped.rpartition("\\n")
        broken = head.replace("\\n", f"\\n\\{continued[1]}")
        escaped = (
            f"{broken}\\n\\{continued[1]}{tail}"
            if separator and tail
            else broken + separator + tail
        )
    if escaped[:1] == " ":
        escaped = f"\\{escaped}"
    if file.encoding == _LATIN or file.text.isascii():
        limit = 0x100 if file.encoding == _LATIN else 0x80
        return "".join(_code(character, limit) for character in escaped)
    return escaped


def _code(character: str, limit: int) -> str:
    if ord(character) < limit:
        return character
    units = character.encode("utf-16-be", "replace")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
