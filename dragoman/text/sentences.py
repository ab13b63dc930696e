"""A text to its sentences and the white space between them, by the library sentencex. Knows strings
only.

A line break always ends a sentence. A language that the library does not know is split by its rules
for English.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from dragoman.errors import MissingDependencyError

# Characters handed to the library at once. It takes a time that grows with the square of the number
# of sentences, and does not split between two quotation marks, even where they belong to quotations
# far apart.
_WINDOW = 400
# Punctuation of the class "other", as all that ends a sentence is, which ends none in any script.
_INNER = frozenset(",'\"&%/*#@\\،、，")
_SURROGATE = re.compile("[\ud800-\udfff]")


def split(text: str, language: str) -> list[tuple[str, str]]:
    """Return (sentence, white space after it) in order; all strings joined are `text`.

    Only a first sentence may be empty, where the text begins with white space.
    """
    spans = list(_spans(text, language))
    starts = [start for start, _ in spans]
    starts.append(len(text))
    sentences = []
    if starts[0]:
        sentences.append(("", text[: starts[0]]))
    for (start, end), next_start in zip(spans, starts[1:], strict=True):
        sentence = text[start:end]
        space = text[end:next_start]
        sentences.append((sentence, space))
    return sentences


def _spans(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence begins and ends, without the white space around it."""
    position = 0
    for line in text.splitlines(keepends=True):
        lengths = _lengths(line, language) if _may_be_several(line) else [len(line)]
        for length in lengths:
            piece = text[position : position + length]
            sentence = piece.strip()
            if sentence:
                indent = len(piece) - len(piece.lstrip())
                start = position + indent
                yield start, start + len(sentence)
            position += length


def _may_be_several(line: str) -> bool:
    """Whether a mark that could end a sentence stands before the last letter or digit."""
    characters = set(line)
    marks = [character for character in characters if not character.isalnum()]
    body = line.rstrip("".join(marks))
    for character in characters - _INNER:
        if unicodedata.category(character) in ("Po", "Cn") and character in body:
            return True
    return False


def _lengths(line: str, language: str) -> list[int]:
    """Return the lengths of a line's sentences, each with the white space after it.

    The last sentence in a window is looked at again in the next one.
    """
    # The library fails on a lone surrogate, and on white space of several bytes before a full
    # stop.
    plain = _SURROGATE.sub("\ufffd", line)
    plain = re.sub(r"\s", " ", plain)
    language = _SURROGATE.sub("", language).lower()
    language = re.split("[-_]", language)[0]
    all_lengths: list[int] = []
    start = 0
    window = _WINDOW
    while start < len(plain):
        lengths = _segment(plain[start : start + window], language)
        if start + window < len(plain):
            lengths = lengths[:-1]
        all_lengths += lengths
        start += sum(lengths)
        window = _WINDOW if lengths else 2 * window
    return all_lengths


def _segment(text: str, language: str) -> list[int]:
    try:
        import sentencex
    except ImportError:
        raise MissingDependencyError(
            "splitting lines into sentences needs a package: pip install sentencex, "
            "or translate whole lines with --whole-lines"
        ) from None
    try:
        lengths = [len(sentence) for sentence in sentencex.segment(language, text)]
    except BaseException as error:
        # An error inside the library comes as a PanicException, which is not an Exception.
        if type(error).__name__ != "PanicException":
            raise
        lengths = []
    return lengths if sum(lengths) == len(text) else [len(text)]
