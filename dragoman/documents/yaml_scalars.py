"""Texts in YAML (.yaml, .yml): the scalars that are values are translated where they stand; keys,
anchors, comments, order and indentation stay.

PyYAML says where the scalars are. Knows how scalars are written; what is in a message is known to
messages.py. A file whose only top-level key is the source language, as Rails has it, gets the
target language as that key.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dragoman.documents.code_like import looks_like_code
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.messages import MessageStyle, translate_message
from dragoman.documents.text_bytes import Edit, edited, read_text
from dragoman.text.languages import same_language
from dragoman.text.markup_transfer import Ask

MAX_DEPTH = 300
_NESTING = re.compile(r"[\[\]{}]")
_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*\s+)*+")
_BLOCK_HEADER = re.compile(r"[|>]([-+\d]{0,2})[ \t]*(?:#[^\r\n]*)?(\r\n|\r|\n)")
# What is surely read as a plain scalar again.
_PLAIN = re.compile(r"[^\W_](?:[^\n:#,\[\]{}\x00-\x1f\ufeff]|:(?=\S))*")
_FLOW_SIGNS = re.compile(r":[,\[\]{}]")
_STRING_TAG = "tag:yaml.org,2002:str"
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
_NARROWEST = 40  # characters of a line of a folded block


@dataclass(frozen=True)
class _Scalar:
    """A value, where it stands, and how it is written."""

    start: int
    end: int
    text: str
    style: str
    is_top_key: bool = False


def rewrite_yaml(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate the values of a file."""
    file = read_text(data)
    source = file.text
    _check_depth(source)
    scalars = list(_scalars(source))
    top_keys = [scalar for scalar in scalars if scalar.is_top_key]
    style = MessageStyle(settings.target_language)
    edits: list[Edit] = []
    for scalar in scalars:
        if scalar.is_top_key:
            edits += _renamed(scalar, len(top_keys), settings)
            continue
        raw = source[scalar.start : scalar.end]
        if scalar.style in ("|", ">"):
            written = _translated_block(raw, scalar.style, ask, style)
        elif looks_like_code(scalar.text):
            continue
        else:
            translation = translate_message(scalar.text, ask, style)
            if translation == scalar.text:
                continue
            written = _written(translation, scalar.style)
        edits.append((scalar.start, scalar.end, written))
    return file.encoded(edited(source, edits))


def _check_depth(source: str) -> None:
    """Refuse what is nested too deeply: the time that PyYAML takes grows with the square of it."""
    depth = 0
    for match in _NESTING.finditer(source):
        depth = max(0, depth + (1 if match[0] in "[{" else -1))
        if depth > MAX_DEPTH:
            raise ValueError(f"it has more than {MAX_DEPTH} brackets that are not closed")


def _renamed(scalar: _Scalar, count: int, settings: DocumentSettings) -> list[Edit]:
    """Rename the one key at the top that is the source language."""
    source = settings.source_language
    target = settings.target_language
    is_language = bool(source and target) and same_language(scalar.text, source)
    if count != 1 or not is_language or not re.fullmatch(r"[a-zA-Z]{2,3}([-_]\w+)*", scalar.text):
        return []
    return [(scalar.start, scalar.end, _written(target, scalar.style))]


def _scalars(source: str) -> Iterator[_Scalar]:
    """Yield the values of all documents, and the keys at the top of each."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    # For each collection around a place: of a mapping whether a key comes next, else None.
    around: list[bool | None] = []
    try:
        for event in yaml.parse(source, Loader=loader):
            is_key = bool(around) and around[-1] is True
            is_node = isinstance(event, yaml.NodeEvent)
            if isinstance(event, yaml.ScalarEvent):
                is_top_key = is_key and len(around) == 1
                if (is_top_key or not is_key) and _is_text(event):
                    yield _scalar(source, event, is_top_key)
            if is_node and around and around[-1] is not None:
                around[-1] = not around[-1]
            if isinstance(event, yaml.MappingStartEvent):
                around.append(True)
            elif isinstance(event, yaml.SequenceStartEvent):
                around.append(None)
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                around.pop()
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or str(error)
        raise ValueError(str(problem)) from None


def _is_text(event: Any) -> bool:
    """Whether a scalar is a string; a tag of its own means that a program reads it."""
    if event.tag not in (None, "!", _STRING_TAG):
        return False
    if event.style or event.tag:
        return True
    return _resolved(event.value) == _STRING_TAG


def _scalar(source: str, event: Any, is_top_key: bool) -> _Scalar:
    start = event.start_mark.index
    properties = _PROPERTIES.match(source, start)
    start = properties.end() if properties else start
    style = event.style or ""
    end = event.end_mark.index
    return _Scalar(start, end, event.value, style, is_top_key)


def _written(text: str, style: str) -> str:
    """Write a text as a scalar of one line, in its style if that can be."""
    text = _CONTROL.sub("", text)
    if style == "'" and "\n" not in text:
        return "'" + text.replace("'", "''") + "'"
    if not style and _is_plain(text):
        return text
    return '"' + "".join(_ESCAPES.get(character, character) for character in text) + '"'


def _is_plain(text: str) -> bool:
    """Whether a text is read as itself when it has no quotes."""
    if not _PLAIN.fullmatch(text) or text != text.strip() or _FLOW_SIGNS.search(text):
        return False
    return _resolved(text) == _STRING_TAG


def _resolved(text: str) -> str:
    """Return the tag of what is written without quotes, such as that of a number."""
    from yaml import ScalarNode

    return str(_resolver().resolve(ScalarNode, text, (True, False)))


@lru_cache(maxsize=1)
def _resolver() -> Any:
    from yaml import SafeLoader

    return SafeLoader("")


def _translated_block(raw: str, sign: str, ask: Ask, style: MessageStyle) -> str:
    """Translate a block: each line of a literal one, each paragraph of a folded one."""
    header = _BLOCK_HEADER.match(raw)
    if header is None or any(character.isdigit() for character in header[1]):
        return raw  # its margin is given, and may be more than what looks like it
    body = raw[header.end() :]
    margin = _margin(body)
    if not margin:
        return raw
    lines = body.splitlines(keepends=True)
    out = [header[0]]
    group: list[str] = []
    for line in [*lines, ""]:
        text = line.removeprefix(margin)
        is_text = bool(text.strip()) and line.startswith(margin) and not text[0].isspace()
        if is_text and sign == ">":
            group.append(line)
            continue
        if group:
            out.append(_folded(group, margin, ask, style))
            group = []
        out.append(_literal(line, margin, ask, style) if sign == "|" and is_text else line)
    return "".join(out)


def _margin(body: str) -> str:
    first = re.search(r"^( +)\S", body, re.MULTILINE)
    return first[1] if first else ""


def _literal(line: str, margin: str, ask: Ask, style: MessageStyle) -> str:
    text = line.removeprefix(margin).rstrip()
    end = line[len(margin) + len(text) :]  # white space at the end of a line counts
    return margin + _one_line(translate_message(text, ask, style), text) + end


def _folded(lines: list[str], margin: str, ask: Ask, style: MessageStyle) -> str:
    """Translate a paragraph and fold it as wide as it was."""
    texts = [line.removeprefix(margin).rstrip("\r\n") for line in lines]
    last_end = lines[-1][len(lines[-1].rstrip("\r\n")) :]
    line_end = lines[0][len(lines[0].rstrip("\r\n")) :] or "\n"
    source = " ".join(text.rstrip() for text in texts)
    translation = translate_message(source, ask, style)
    if translation == source:
        return "".join(lines)
    words = _one_line(translation, source)
    widest = max(map(len, texts))
    width = max(widest, _NARROWEST) if len(texts) > 1 else len(words) + 1
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    folded = wrapper.wrap(words)
    return line_end.join(margin + line for line in folded) + last_end


def _one_line(text: str, source: str) -> str:
    """Return a text that stands in a block as one line, or the source if it is none."""
    line = " ".join(_CONTROL.sub("", text).splitlines()).strip()
    return line or source
