"""Text in which everything that must be copied is a token of its own, and the way back.

Knows strings; no tokeniser and no model. A line is first concealed: one private character for each
span, so that it can be split into sentences without cutting one. Then each sentence names its spans
<x1>, <x2> and so on, which a model that has learnt these tokens carries over; see `augment.py` for
how it learns them.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.text.figures import Style, figures, style_of
from dragoman.text.protected import protected_spans

MOST = 10  # copy tokens in a vocabulary that has them
NAMES = tuple(f"<x{number}>" for number in range(1, MOST + 1))
_FIRST = 0xF0000  # the first private character in place of a span
_SPANS = 60_000  # of a line; what is beyond them stays as it is
_CONCEALED = re.compile("[\U000f0000-\U000fea5f]")
_NAME = re.compile("<x(10|[1-9])>")
_TAG = re.compile(r"<(/?)([a-z][^\s<>/]*)[^<>]*?(/?)>", re.IGNORECASE)


@dataclass(frozen=True)
class Copy:
    """A span that is copied: as the source has it, and as it is written in the target."""

    source: str
    target: str


@dataclass(frozen=True)
class Named:
    """A stretch of text with names for what is copied."""

    text: str  # with names
    original: str
    copies: tuple[Copy, ...]  # what the names stand for


@dataclass(frozen=True)
class Concealed:
    """A line with a private character in place of each span."""

    text: str
    copies: tuple[Copy, ...]  # in their order in the line

    def reveal(self, text: str) -> str:
        """Return a part of the line as it was."""
        return _CONCEALED.sub(lambda found: self.copies[ord(found[0]) - _FIRST].source, text)

    def named(self, text: str, most: int) -> Named:
        """Return a part of the line with names for its first `most` spans."""
        copies: list[Copy] = []

        def name(found: re.Match[str]) -> str:
            copy = self.copies[ord(found[0]) - _FIRST]
            if len(copies) == most:
                return copy.source
            copies.append(copy)
            return NAMES[len(copies) - 1]

        named = _CONCEALED.sub(name, text)
        return Named(named, self.reveal(text), tuple(copies))


class Concealer:
    """Finds what is copied between two languages."""

    def __init__(self, source_language: str, target_language: str) -> None:
        self._source: Style | None = style_of(source_language)
        self._target: Style | None = style_of(target_language)

    def conceal(self, line: str) -> Concealed:
        """Return the line with a private character in place of each span."""
        parts: list[str] = []
        copies: list[Copy] = []
        end = 0
        for start, stop, written in self.spans(line):
            if len(copies) == _SPANS:
                break
            parts += [line[end:start], chr(_FIRST + len(copies))]
            copies.append(Copy(line[start:stop], written))
            end = stop
        return Concealed("".join(parts) + line[end:], tuple(copies))

    def spans(self, line: str) -> Iterator[tuple[int, int, str]]:
        """Yield beginning, end and target text of each span; those that touch are one, but for
        tags, which have partners."""
        pending: tuple[int, int, str] | None = None
        for span in self._single_spans(line):
            if pending is None:
                pending = span
            elif pending[1] == span[0] and "<" not in (line[pending[0]], line[span[0]]):
                pending = (pending[0], span[1], pending[2] + span[2])
            else:
                yield pending
                pending = span
        if pending is not None:
            yield pending

    def _single_spans(self, line: str) -> Iterator[tuple[int, int, str]]:
        unchanged = ((start, end, line[start:end]) for start, end in protected_spans(line))
        rewritten = (
            (figure.start, figure.end, figure.written)
            for figure in figures(line, self._source, self._target)
        )
        end = 0
        # At the same place the longer span comes first.
        for span in heapq.merge(unchanged, rewritten, key=lambda span: (span[0], -span[1])):
            if span[0] >= end:
                yield span
                end = span[1]


def part_of(named: str, copies: Sequence[Copy]) -> Named:
    """Return a part of a text with names, in which the names count from <x1> again."""
    own: list[Copy] = []

    def rename(found: re.Match[str]) -> str:
        number = int(found[1]) - 1
        if number >= len(copies):
            return found[0]
        own.append(copies[number])
        return NAMES[len(own) - 1]

    def reveal(found: re.Match[str]) -> str:
        number = int(found[1]) - 1
        return copies[number].source if number < len(copies) else found[0]

    return Named(_NAME.sub(rename, named), _NAME.sub(reveal, named), tuple(own))


def written(named: str, copies: Sequence[Copy]) -> str:
    """Return a translation with each name replaced by what it stands for, and nothing lost."""
    if not is_whole(named, copies):
        named = _mended(named, copies)
    return _NAME.sub(lambda found: _target(found, copies), named)


def spelt(pieces: Sequence[str], texts: Sequence[str]) -> list[list[str]]:
    """Return the pieces of each piece: a name's are the words of the text that it stands for."""
    found = []
    for piece in pieces:
        number = NAMES.index(piece) if piece in NAMES else len(texts)
        if number < len(texts):
            first, *others = texts[number].split(" ")
            found.append([first, *(f"▁{word}" for word in others)])
        else:
            found.append([piece])
    return found


def names_in(text: str) -> list[int]:
    """Return the numbers of the names in a text, counted from 0, in order."""
    return [int(found[1]) - 1 for found in _NAME.finditer(text)]


def is_whole(text: str, copies: Sequence[Copy]) -> bool:
    """Whether a translation has each span once, and its tags in pairs as the source has them."""
    order = names_in(text)
    return sorted(order) == list(range(len(copies))) and _are_paired(order, copies)


def _mended(text: str, copies: Sequence[Copy]) -> str:
    """Return a translation in which every name stands once: further ones are removed, missing
    ones are put at the end, and tags in the wrong order change places."""
    seen: set[int] = set()

    def once(found: re.Match[str]) -> str:
        number = int(found[1]) - 1
        if number in seen or number >= len(copies):
            return ""
        seen.add(number)
        return found[0]

    text = _NAME.sub(once, text)
    missing = [NAMES[number] for number in range(len(copies)) if number not in seen]
    text = " ".join(" ".join([text, *missing]).split())
    order = names_in(text)
    if _are_paired(order, copies):
        return text
    # The tags stand where they stood, in the order of the source.
    tags = sorted(number for number in order if _TAG.fullmatch(copies[number].source))
    replacements = iter(tags)

    def in_order(found: re.Match[str]) -> str:
        number = int(found[1]) - 1
        return NAMES[next(replacements)] if number in tags else found[0]

    return _NAME.sub(in_order, text)


def _target(found: re.Match[str], copies: Sequence[Copy]) -> str:
    number = int(found[1]) - 1
    return copies[number].target if number < len(copies) else found[0]


def _are_paired(order: Sequence[int], copies: Sequence[Copy]) -> bool:
    """Whether tags open and close in this order as they do in the source's order."""
    return _unpaired(order, copies) == _unpaired(range(len(copies)), copies)


def _unpaired(order: Sequence[int], copies: Sequence[Copy]) -> int:
    """How many tags of this order have no partner, or one that is not theirs."""
    open_tags: list[str] = []
    unpaired = 0
    for number in order:
        tag = _TAG.fullmatch(copies[number].source)
        if tag is None or tag[3]:
            continue
        if not tag[1]:
            open_tags.append(tag[2].lower())
        elif open_tags and open_tags[-1] == tag[2].lower():
            open_tags.pop()
        else:
            unpaired += 1
    return unpaired + len(open_tags)
