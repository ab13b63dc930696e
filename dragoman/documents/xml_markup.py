"""What a format of XML says about its elements: which of them hold text, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dragoman.text.spans import Span


@dataclass(frozen=True)
class Markup:
    """Which elements of a format hold text.

    Where `text` names an element, a paragraph consists of runs, whose properties come first, and
    only what stands in that element is text.
    """

    paragraphs: frozenset[str]
    keeps: Callable[[str], bool]  # whether an element in a paragraph is no part of its text
    fixed: frozenset[str] = frozenset()  # elements in a paragraph at which it is divided
    breaks: frozenset[str] = frozenset()  # elements that a reader sees as a space
    skips: Callable[[str], bool] = lambda tag: False  # whether nothing in an element is translated
    # Whether the start of a paragraph or a mark, with its properties, says that it is code.
    is_code: Callable[[str], bool] = lambda start: False
    paragraph_properties: str = ""
    run: str = ""
    properties: str = ""
    text: str = ""
    preserve: bool = True  # whether that element must say that its white space counts
    keeps_lines: bool = False  # whether a line break in a text is one that a reader sees
    tabs: frozenset[str] = frozenset()  # elements between texts that have nothing in common
    # What becomes of the spans of a paragraph before it is translated.
    prepare: Callable[[Iterable[Span]], Iterable[Span]] = iter
