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
from itertools import pairwise

from dragoman.text.figures import Style, figures, style_of
from dragoman.text.protected import protected_spans
from dragoman.text.unspellable import Unspellable

MOST = 10  # copy tokens in a vocabulary that has them
TAUGHT = 4  # of them that a model learns to carry over at once
NAMES = tuple(f"<x{number}>" for number in range(1, MOST + 1))
_FIRST = 0xF0000  # the first private character in place of a span
_SPANS = 60_000  # of a line; what is beyond them stays as it is
_CONCEALED = re.compile("[\U000f0000-\U000fea5f]")
_NAME = re.compile("<x(10|[1-9])>")
_NAME_AFTER_WORD = re.compile(r"(?<!\w)(\w{1,9}) (<x(?:10|[1-9])>)")
_CLAUSE_ENDS = ",;:.!?)"
_SPACE = re.compile(r"\s+")
_TAG = re.compile(r"<(/?)([a-z0-9][^\s<>/]*)[^<>]*?(/?)>", re.IGNORECASE)


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
        return _CONCEALED.sub(lambda found: self._copy(found).source, text)

    def named(self, text: str, most: int) -> Named:
        """Return a part of the line with names for its first `most` spans."""
        copies: list[Copy] = []

        def name(found: re.Match[str]) -> str:
            copy = self._copy(found)
            number = len(copies)
            if number == most:
                return copy.source
            copies.append(copy)
            return NAMES[number]

        named = _CONCEALED.sub(name, text)
        return Named(
            text=named,
            original=self.reveal(text),
            copies=tuple(copies),
        )

    def cut(self, text: str, space: str, most: int) -> Iterator[tuple[str, str]]:
        """Yield a part of the line in parts with at most so many spans, each with the white space
        that follows it; `space` follows the last one."""
        spans = list(_CONCEALED.finditer(text))
        begin = 0
        first = 0
        while most and len(spans) - first > most:
            end, following = self._best_cut(text, spans[first : first + most + 1])
            yield text[begin:end], text[end:following]
            begin = following
            while spans[first].start() < following:
                first += 1
        yield text[begin:], space

    def _best_cut(self, text: str, spans: Sequence[re.Match[str]]) -> tuple[int, int]:
        """Return where a part may end, before the last of these spans, and where the next one then
        begins: best outside of all tags, then behind a comma, then behind as many spans as
        possible."""
        gaps = []
        for number, (span, following) in enumerate(pairwise(spans), 1):
            is_outside = not self._inside_tags(spans[:number])
            for gap in _SPACE.finditer(text, span.end(), following.start()):
                ends_clause = text[gap.start() - 1] in _CLAUSE_ENDS
                rank = (is_outside, ends_clause, number, -gap.start())
                gaps.append((rank, gap.span()))
        if not gaps:
            return spans[-1].start(), spans[-1].start()
        return max(gaps)[1]

    def _inside_tags(self, spans: Sequence[re.Match[str]]) -> bool:
        """Whether a tag that opens among these spans is still open behind them."""
        copies = [self._copy(span) for span in spans]
        return _unpaired(range(len(copies)), copies) > 0

    def _copy(self, found: re.Match[str]) -> Copy:
        """What a private character stands for."""
        number = ord(found[0]) - _FIRST
        return self.copies[number]


class Concealer:
    """Finds what is copied between two languages."""

    def __init__(
        self,
        source_language: str,
        target_language: str,
        unspellable: Unspellable | None = None,
    ) -> None:
        self._source: Style | None = style_of(source_language)
        self._target: Style | None = style_of(target_language)
        self._unspellable = unspellable

    def conceal(self, line: str) -> Concealed:
        """Return the line with a private character in place of each span."""
        parts: list[str] = []
        copies: list[Copy] = []
        end = 0
        for start, stop, written in self.spans(line):
            number = len(copies)
            if number == _SPANS:
                break
            character = chr(_FIRST + number)
            parts += [line[end:start], character]
            copies.append(Copy(line[start:stop], written))
            end = stop
        parts.append(line[end:])
        return Concealed("".join(parts), tuple(copies))

    def spans(self, line: str) -> Iterator[tuple[int, int, str]]:
        """Yield beginning, end and target text of each span; those that touch are one, but for
        tags, which have partners."""
        pending: tuple[int, int, str] | None = None
        for span in self._single_spans(line):
            if pending is None:
                pending = span
                continue
            first, middle, before = pending
            start, end, after = span
            has_tag = "<" in (line[first], line[start])
            if start == middle and not has_tag:
                pending = (first, end, before + after)
            else:
                yield pending
                pending = span
        if pending is not None:
            yield pending

    def _single_spans(self, line: str) -> Iterator[tuple[int, int, str]]:
        unchanged = self._unchanged(line)
        written_anew = figures(line, self._source, self._target)
        rewritten = ((figure.start, figure.end, figure.written) for figure in written_anew)
        spans = heapq.merge(unchanged, rewritten, key=_longest_first)
        last = 0
        for span in spans:
            start, end, _ = span
            if start >= last:
                yield span
                last = end

    def _unchanged(self, line: str) -> Iterator[tuple[int, int, str]]:
        """Yield what is copied as it stands."""
        found = protected_spans(line)
        if self._unspellable is not None:
            found = heapq.merge(found, self._unspellable.spans(line), key=_longest_first)
        for start, end in found:
            yield start, end, line[start:end]


def _longest_first(span: tuple[int, int] | tuple[int, int, str]) -> tuple[int, int]:
    """The order of spans: at the same place the longest is first."""
    return span[0], -span[1]


def part_of(named: str, copies: Sequence[Copy]) -> Named:
    """Return a part of a text with names, in which the names count from <x1> again."""
    own: list[Copy] = []

    def rename(found: re.Match[str]) -> str:
        copy = _copy_of(found, copies)
        if copy is None:
            return found[0]
        own.append(copy)
        return NAMES[len(own) - 1]

    def reveal(found: re.Match[str]) -> str:
        copy = _copy_of(found, copies)
        return found[0] if copy is None else copy.source

    text = _NAME.sub(rename, named)
    return Named(
        text=text,
        original=_NAME.sub(reveal, named),
        copies=tuple(own),
    )


def written(named: str, copies: Sequence[Copy]) -> str:
    """Return a translation with each name replaced by what it stands for, and nothing lost."""

    def target(found: re.Match[str]) -> str:
        copy = _copy_of(found, copies)
        return found[0] if copy is None else copy.target

    def once(found: re.Match[str]) -> str:
        """A word that the model wrote and the copy begins with, as in "um" and "um 9 Uhr"."""
        word, name = found.groups()
        copy = _copy_of(_NAME.fullmatch(name), copies)
        first, _, rest = copy.target.partition(" ") if copy else ("", "", "")
        return name if rest and first.lower() == word.lower() else found[0]

    if not is_whole(named, copies):
        named = _mended(named, copies)
    return _NAME.sub(target, _NAME_AFTER_WORD.sub(once, named))


def named_in(text: str, copies: Sequence[Copy]) -> str:
    """Return a text of the target with names for what it has of these copies, each once."""
    for name, copy in zip(NAMES, copies, strict=False):
        text = text.replace(copy.target, name, 1)
    return text


def spelt(pieces: Sequence[str], texts: Sequence[str]) -> list[list[str]]:
    """Return the pieces of each piece: a name's are the words of the text that it stands for."""
    found = []
    for piece in pieces:
        number = NAMES.index(piece) if piece in NAMES else len(texts)
        if number >= len(texts):
            found.append([piece])
            continue
        first, *others = texts[number].split(" ")
        following = [f"▁{word}" for word in others]
        found.append([first, *following])
    return found


def names_in(text: str) -> list[int]:
    """Return the numbers of the names in a text, counted from 0, in order."""
    return [_number(found) for found in _NAME.finditer(text)]


def is_whole(text: str, copies: Sequence[Copy]) -> bool:
    """Whether a translation has each span once, and its tags in pairs as the source has them."""
    order = names_in(text)
    wanted = list(range(len(copies)))
    return sorted(order) == wanted and _are_paired(order, copies)


def _mended(text: str, copies: Sequence[Copy]) -> str:
    """Return a translation in which every name stands once: further ones are removed, missing
    ones are put at the end, and tags in the wrong order change places."""
    seen: set[int] = set()

    def once(found: re.Match[str]) -> str:
        number = _number(found)
        if number in seen or number >= len(copies):
            return ""
        seen.add(number)
        return found[0]

    text = _NAME.sub(once, text)
    missing = [NAMES[number] for number in range(len(copies)) if number not in seen]
    complete = " ".join([text, *missing])
    text = " ".join(complete.split())
    order = names_in(text)
    if _are_paired(order, copies):
        return text
    # The tags stand where they stood, in the order of the source.
    tags = sorted(number for number in order if _TAG.fullmatch(copies[number].source))
    replacements = iter(tags)

    def in_order(found: re.Match[str]) -> str:
        if _number(found) not in tags:
            return found[0]
        return NAMES[next(replacements)]

    return _NAME.sub(in_order, text)


def _number(found: re.Match[str]) -> int:
    """The number of a name, counted from 0."""
    return int(found[1]) - 1


def _copy_of(found: re.Match[str] | None, copies: Sequence[Copy]) -> Copy | None:
    """What a name stands for, if anything."""
    if found is None:
        return None
    number = _number(found)
    return copies[number] if number < len(copies) else None


def _are_paired(order: Sequence[int], copies: Sequence[Copy]) -> bool:
    """Whether tags open and close in this order as they do in the source's order."""
    source_order = range(len(copies))
    return _unpaired(order, copies) == _unpaired(source_order, copies)


def _unpaired(order: Sequence[int], copies: Sequence[Copy]) -> int:
    """How many tags of this order have no partner, or one that is not theirs."""
    open_tags: list[str] = []
    unpaired = 0
    for number in order:
        tag = _TAG.fullmatch(copies[number].source)
        if tag is None:
            continue
        closes, name, is_empty = tag.groups()
        name = name.lower()
        if is_empty:
            continue
        if not closes:
            open_tags.append(name)
        elif open_tags and open_tags[-1] == name:
            open_tags.pop()
        else:
            unpaired += 1
    return unpaired + len(open_tags)
