"""A text to its sentences and the white space between them, by the library sentencex. Knows strings
only.

A line break always ends a sentence. A language that the library does not know is cut by its rules
for English.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from dragoman.errors import MissingDependencyError

# Characters handed to the library at once. It takes a time that grows with the square of the number
# of sentences, and does not cut between two quotation marks, even where they belong to quotations
# far apart.
_WINDOW = 400
# Punctuation of the class "other", as all that ends a sentence is, which ends none in any script.
_INNER = frozenset(",'\"&%/*#@\\،、，")
_SURROGATE = re.compile("[\ud800-\udfff]")


def split(text: str, language: str) -> list[tuple[str, str]]:
    """(sentence, white space after it) in order; all strings joined are `text`. Only a first
    sentence may be empty, where the text begins with white space."""
    spans = list(_spans(text, language))
    starts = [start for start, _ in spans] + [len(text)]
    first = [("", text[: starts[0]])] if starts[0] else []
    return first + [
        (text[a:b], text[b:after]) for (a, b), after in zip(spans, starts[1:], strict=True)
    ]


def _spans(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Where each sentence begins and ends, without the white space around it."""
    position = 0
    for line in text.splitlines(keepends=True):
        for length in _lengths(line, language) if _may_be_several(line) else [len(line)]:
            piece = text[position : position + length]
            if sentence := piece.strip():
                start = position + len(piece) - len(piece.lstrip())
                yield start, start + len(sentence)
            position += length


def _may_be_several(line: str) -> bool:
    """Whether a mark that could end a sentence stands before the last letter or digit."""
    characters = set(line)
    body = line.rstrip("".join(character for character in characters if not character.isalnum()))
    ends = (c for c in characters - _INNER if unicodedata.category(c) in ("Po", "Cn"))
    return any(character in body for character in ends)


def _lengths(line: str, language: str) -> list[int]:
    """Of each sentence of a line, the white space after it included; the last one in a window is
    looked at again."""
    # The library breaks on a lone surrogate, and on white space of several bytes before a full
    # stop.
    plain = re.sub(r"\s", " ", _SURROGATE.sub("\ufffd", line))
    language = re.split("[-_]", _SURROGATE.sub("", language))[0].lower()
    found: list[int] = []
    start, window = 0, _WINDOW
    while start < len(plain):
        lengths = _segment(plain[start : start + window], language)
        if start + window < len(plain):
            lengths = lengths[:-1]
        found += lengths
        start += sum(lengths)
        window = _WINDOW if lengths else 2 * window
    return found


def _segment(text: str, language: str) -> list[int]:
    try:
        import sentencex
    except ImportError:
        raise MissingDependencyError(
            "cutting lines into sentences needs a package: pip install sentencex, or translate whole lines with --whole-lines"
        ) from None
    try:
        lengths = [len(sentence) for sentence in sentencex.segment(language, text)]
    except BaseException as error:
        if (
            type(error).__name__ != "PanicException"
        ):  # how an error inside the library comes; it is no Exception
            raise
        lengths = []
    return lengths if sum(lengths) == len(text) else [len(text)]
