"""The words of a paragraph with marks: each in the parts that belong to one span of it, and how a
word of the translation is divided like the one it comes from. Knows strings and spans.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.text.spans import Span

_WORD = re.compile(r"\S+")
_PUNCTUATION = re.compile(r"\W")


@dataclass(frozen=True)
class Part:
    """A stretch of one word that belongs to one span."""

    text: str
    span: Span

    @property
    def letters(self) -> int:
        return sum(character.isalnum() for character in self.text)


class SourceWords:
    """The words of a paragraph, each in parts that belong to one span."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.spans = spans
        self.text = "".join(span.text for span in spans)
        self._owners = [span for span in spans for _ in span.text]  # of each character
        # What is no text, by the places where it starts and ends.
        self.first_at: dict[int, Span] = {}
        self.last_at: dict[int, Span] = {}
        self._find_others()
        self.words: list[str] = []
        self.starts: list[int] = []
        self.parts: list[list[Part]] = []
        # The words that must stay as they are, such as a placeholder, by their text.
        self.kept: dict[str, int] = {}
        for match in _WORD.finditer(self.text):
            self._add(match)

    def _find_others(self) -> None:
        end = 0
        for span in self.spans:
            start = end
            end = start + len(span.text)
            if span.kind != "text":
                self.first_at.setdefault(start, span)
                self.last_at[end] = span

    def _add(self, match: re.Match[str]) -> None:
        word = match[0]
        start, end = match.span()
        parts = parts_of(word, self._owners[start:end])
        core = core_of(parts)
        if core.span.kind != "text":
            self.kept[word] = len(self.words)
        self.words.append(word)
        self.starts.append(start)
        self.parts.append(parts)

    def is_space(self, place: int) -> bool:
        """Whether a text, and not an element that is read as a space, has a space in a place."""
        if not 0 <= place < len(self.text):
            return False
        owner = self._owners[place]
        character = self.text[place]
        return owner.kind == "text" and character.isspace()


def parts_of(word: str, owners: Sequence[Span]) -> list[Part]:
    """Return the stretches of a word whose characters have the same owner."""
    if owners[0] is owners[-1]:  # a span is one stretch of the text
        return [Part(word, owners[0])]
    parts = []
    size = len(word)
    start = 0
    for end in range(1, size + 1):
        owner = owners[start]
        if end == size or owners[end] is not owner:
            parts.append(Part(word[start:end], owner))
            start = end
    return parts


def core_of(parts: Sequence[Part]) -> Part:
    """Return the part that has most of a word's letters and digits."""
    if len(parts) == 1:
        return parts[0]
    return max(parts, key=lambda part: part.letters)


def split_like(word: str, parts: list[Part]) -> list[Part]:
    """Split a target word as its source word is split.

    Punctuation at the ends goes to the outer parts, as far as they had some; the rest is the core.
    """
    is_plain = len(parts) == 1 and parts[0].span.kind == "text"
    if is_plain:
        return [Part(word, parts[0].span)]
    whole = "".join(part.text for part in parts)
    if word == whole:
        return parts
    if word.casefold() == whole.casefold() and len(word) == len(whole):
        return _split_alike(word, parts)
    core = core_of(parts)
    if core.span.kind != "text" and core.text in word:
        return _split_around(word, core, parts)
    core_index = parts.index(core)
    before = _length(parts[:core_index])
    after = _length(parts[core_index + 1 :])
    start = _count_punctuation(word, before)
    backwards = word[start:][::-1]
    end = len(word) - _count_punctuation(backwards, after)
    first = Part(word[:start], parts[0].span)
    middle = Part(word[start:end], core.span)
    last = Part(word[end:], parts[-1].span)
    return [part for part in (first, middle, last) if part.text]


def _split_alike(word: str, parts: list[Part]) -> list[Part]:
    """Split a target word that differs from its source word in capitals alone."""
    split = []
    start = 0
    for part in parts:
        end = start + len(part.text)
        split.append(Part(word[start:end], part.span))
        start = end
    return split


def _split_around(word: str, core: Part, parts: list[Part]) -> list[Part]:
    """Split a target word that has what is kept in it, as the French l' has a placeholder."""
    before, _, after = word.partition(core.text)
    around = replace(core.span, kind="text", text="", raw="")
    first = parts[0].span
    last = parts[-1].span
    split = [
        Part(before, first if first.kind == "text" else around),
        core,
        Part(after, last if last.kind == "text" else around),
    ]
    return [part for part in split if part.text]


def _count_punctuation(word: str, most: int) -> int:
    """Return how many characters of a word's start are neither letters nor digits."""
    count = 0
    most = min(most, len(word))
    while count < most and _PUNCTUATION.match(word, count):
        count += 1
    return count


def _length(parts: Sequence[Part]) -> int:
    return sum(len(part.text) for part in parts)
