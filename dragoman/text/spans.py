"""The stretches of a paragraph: text, the marks around it, and what is copied unchanged.

Knows strings only; no file format and no translator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Mark(NamedTuple):
    """A tag, an emphasis or a run: how it is opened and closed, and a number to tell it apart."""

    opening: str
    closing: str
    number: int


@dataclass(frozen=True)
class Span:
    """A stretch of a paragraph.

    Its kind is "text", a mark that opens, closes or does either ("open", "close", "turn"), or
    something that is copied unchanged ("void", "kept").
    """

    kind: str
    # As the translator reads it; of a mark, what is written where the text around it changes.
    text: str = ""
    raw: str = ""  # as it is in the source
    marks: tuple[Mark, ...] = ()  # outermost first
    name: str = ""
    keep: bool = False  # whether it opens something that is not translated


# The space between two translated words; compared by identity.
SPACE = Span("text", " ")
