"""Messages of programs: a string with placeholders, tags and line breaks, or an ICU message, to its
translation. Knows strings; the file formats that hold messages are elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.documents.icu_messages import IcuError, may_be_icu, read_icu, write_icu
from dragoman.documents.marked_text import translate_marked
from dragoman.documents.placeholders import (
    MARKER,
    Placeholder,
    mark_placeholders,
    marker,
    told_apart,
    with_number,
)
from dragoman.text.markup_transfer import Ask

_QUOTE_BEFORE = re.compile(f"'(?={MARKER.pattern})")


@dataclass(frozen=True)
class MessageStyle:
    """What the program that shows a message can do."""

    language: str = ""  # of the translation, for its plurals
    may_number: bool = True  # whether %2$s is understood
    number: str = ""  # what the translator reads for the count


def translate_message(text: str, ask: Ask, style: MessageStyle) -> str:
    """Return a message's translation, or the message where it cannot be kept whole."""
    if MARKER.search(text):
        return text
    if may_be_icu(text):
        try:
            return _translate_icu(text, ask, style)
        except IcuError:
            return text
    found: list[Placeholder] = []
    marked = mark_placeholders(text, found)
    if style.number:
        found = with_number(found, style.number)
    return translate_marked(marked, told_apart(found), ask, may_number=style.may_number)


def _translate_icu(text: str, ask: Ask, style: MessageStyle) -> str:
    def translate_leaf(leaf: Sequence[tuple[str, str]]) -> str:
        found: list[Placeholder] = []
        marked = []
        for raw, read in leaf:
            if read:
                marked.append(marker(len(found)))
                found.append(Placeholder(raw, read))
            else:
                marked.append(raw)
        return translate_marked("".join(marked), told_apart(found), ask, _icu_escaped)

    message = read_icu(text)
    return write_icu(message, translate_leaf, style.language)


def _icu_escaped(text: str) -> str:
    """Write a translation so that it is no syntax: no braces, and no quote before an argument."""
    without = text.replace("{", "(").replace("}", ")")
    return _QUOTE_BEFORE.sub("''", without)
