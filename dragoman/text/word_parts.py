"""The words of a paragraph with marks: each in the parts that belong to one span of it, and how a
word of the translation is divided like the one it comes from. Knows strings and spans.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from dragoman.text.spans import Span

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
        owners = [span for span in spans for _ in span.text]  # of each character
        self._owners = owners
        # What is no text, by the places where it starts and ends.
        self.first_at: dict[int, Span] = {}
        self.last_at: dict[int, Span] = {}
        end = 0
        for span in spans:
            start = end
            end = start + len(span.text)
            if span.kind != "text":
                self.first_at.setdefault(start, span)
                self.last_at[end] = span
        matches = list(re.finditer(r"\S+", self.text))
        self.words = [match[0] for match in matches]
        self.starts = [match.start() for match in matches]
        self.parts: list[list[Part]] = []
        for match in matches:
            start, end = match.span()
            self.parts.append(parts_of(match[0], owners[start:end]))
        # The words that must stay as they are, such as a placeholder, by their text.
        self.kept: dict[str, int] = {}
        for number, word in enumerate(self.words):
            core = core_of(self.parts[number])
            if core.span.kind != "text":
                self.kept[word] = number

    def is_space(self, place: int) -> bool:
        """Whether a text, and not an element that is read as a space, has a space in a place."""
        if not 0 <= place < len(self.text):
            return False
        return self.text[place].isspace() and self._owners[place].kind == "text"


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
        ends = list(accumulate((len(part.text) for part in parts), initial=0))
        return [Part(word[ends[i] : ends[i + 1]], part.span) for i, part in enumerate(parts)]
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


def _split_around(word: str, core: Part, parts: list[Part]) -> list[Part]:
    """Split a target word that has what is kept in it, as the French l' has a placeholder."""
    before, _, after = word.partition(core.text)
    around = replace(core.span, kind="text", text="", raw="")
    first = parts[0].span if parts[0].span.kind == "text" else around
    last = parts[-1].span if parts[-1].span.kind == "text" else around
    split = [Part(before, first), core, Part(after, last)]
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
