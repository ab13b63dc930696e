"""Moves the marks of a paragraph to its translation, by the alignment of the words.

A target word gets the marks of the source word that it comes from. Knows strings, spans and
alignments; no file format, no translator.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain

from dragoman.text.spans import SPACE, Span

# A translation, and its pairs of source word and target word.
Answer = tuple[str, Sequence[tuple[int, int]]]
Ask = Callable[[str], Answer]
_PUNCTUATION = re.compile(r"\W")
_STOP = re.compile(r"(?<=\w)[.!?:;…。！？]+$")
_PAUSE = re.compile(r"[.!?:;,…。！？，、]+(?=\s|$)")
_NEAR = 2  # words that may lie between a word and the one that took its place in the alignment
MOST = 500  # spans of a paragraph: the time for each word grows with the marks around it


@dataclass(frozen=True)
class _Part:
    """A stretch of one word that belongs to one span."""

    text: str
    span: Span

    @property
    def letters(self) -> int:
        return sum(character.isalnum() for character in self.text)


def transfer(spans: Sequence[Span], ask: Ask) -> list[Span] | None:
    """Return the texts and voids of a paragraph's translation, or None if the text stays the same.

    Empty elements go where they separate the same words as before. A mark whose words vanished
    goes around the nearest unmarked word, or stays empty.
    """
    texts = [span.text for span in spans if span.kind == "text"]
    has_letters = any(map(str.isalpha, "".join(texts)))
    if len(spans) > MOST or not has_letters:
        return None
    source = _Source(spans)
    answer, alignment = ask(" ".join(source.words))
    words = answer.split()
    if words == source.words:
        return None
    target = _Target(source, words, alignment)
    target.fill_words()
    target.fill_gaps()
    return target.in_order()


class _Source:
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
        self.parts: list[list[_Part]] = []
        for match in matches:
            start, end = match.span()
            self.parts.append(_parts(match[0], owners[start:end]))
        # The words that must stay as they are, such as a placeholder, by their text.
        self.kept: dict[str, int] = {}
        for number, word in enumerate(self.words):
            core = _core(self.parts[number])
            if core.span.kind != "text":
                self.kept[word] = number

    def is_space(self, place: int) -> bool:
        """Whether a text, and not an element that is read as a space, has a space in a place."""
        if not 0 <= place < len(self.text):
            return False
        return self.text[place].isspace() and self._owners[place].kind == "text"


class _Target:
    """The words of a translation and the gaps before, between and behind them, as spans."""

    def __init__(
        self,
        source: _Source,
        words: list[str],
        alignment: Sequence[tuple[int, int]],
    ) -> None:
        self._source = source
        self._words = words
        self._links = _links(alignment, len(source.words), len(words))
        self._origins = _origins(source, words, self._links)
        self._filled: list[list[Span]] = [[] for _ in words]
        self._gaps: list[list[Span]] = [[] for _ in range(len(words) + 1)]
        self._used: set[int] = set()  # ids of the spans that stand in a word

    def fill_words(self) -> None:
        """Give each word the spans of the source word that it comes from."""
        for number, origin in enumerate(self._origins):
            word = self._words[number]
            filled = self._filled[number]
            may_be_kept = number in self._links or word in self._source.kept
            is_last = number == len(self._words) - 1
            stop = self._stop(word, origin) if is_last else None
            body = word[: -len(stop.text)] if stop else word
            parts = _split_like(body, self._source.parts[origin])
            for part in [*parts, stop] if stop else parts:
                span = part.span
                if span.kind == "text" or not may_be_kept:
                    text = Span("text", part.text, marks=span.marks)
                    filled.append(text)
                elif id(span) not in self._used:
                    filled.append(span)
                    self._used.add(id(span))

    def _stop(self, word: str, origin: int) -> _Part | None:
        """Return what ends the last word, which has the marks of what ends the source, if the word
        comes from another than the last one."""
        source = self._source
        found = _STOP.search(word)
        last = source.parts[-1][-1]
        is_same = origin == len(source.words) - 1
        if is_same or not found or last.span.kind != "text" or not _STOP.search(source.text):
            return None
        return _Part(found[0], last.span)

    def fill_gaps(self) -> None:
        """Find a place for the spans and the marks that no word has taken."""
        # Many words share their marks, which are one object then.
        shared = {id(span.marks): span.marks for word in self._filled for span in word}
        present = set(chain.from_iterable(shared.values()))
        source = self._source
        end = 0
        for span in source.spans:
            start = end
            end = start + len(span.text)
            is_text = span.kind == "text"
            if id(span) in self._used:
                continue
            if is_text and present.issuperset(span.marks):
                continue
            word_number = bisect_left(source.starts, start)
            index = _gap(self._origins, word_number)
            if not is_text:
                if not self._is_hung(span, index, end):
                    self._gaps[index] += self._spaced(span, start, end)
            elif self._is_unmarked(index) and any(map(str.isalpha, span.text)):
                marked = [replace(part, marks=span.marks) for part in self._filled[index]]
                self._filled[index] = marked
            else:
                void = Span("void", marks=span.marks)
                self._gaps[index].append(void)
            present.update(span.marks)

    def in_order(self) -> list[Span]:
        """Return words and gaps in a row, with spaces between the words."""
        row = list(self._gaps[0])
        for number, word in enumerate(self._filled):
            gap = self._gaps[number]
            if number:
                row += gap
                is_spaced = any(span.text.isspace() for span in gap)
                if word and not is_spaced:
                    row.append(SPACE)
            row += word
        if self._filled:
            row += self._gaps[-1]
        return row

    def _is_hung(self, span: Span, index: int, end: int) -> bool:
        """Put a sign that stands right before a comma or a stop there again, if the word before the
        gap ends with the same."""
        mark = _PAUSE.match(self._source.text, end)
        word = self._filled[index - 1] if index else []
        is_joined = end > 0 and not self._source.text[end - 1].isspace()
        if not mark or not is_joined or span.text or not word:
            return False
        last = word[-1]
        body = last.text.removesuffix(mark[0])
        if last.kind != "text" or body == last.text:
            return False
        before = [replace(last, text=body)] if body else []
        word[-1:] = [*before, span, replace(last, text=mark[0])]
        return True

    def _spaced(
        self,
        span: Span,
        start: int,
        end: int,
    ) -> list[Span]:
        """Return a span with a space on either side where the source has one.

        Of several spans in one place, the first has the space before and the last that behind.
        """
        source = self._source
        is_word = bool(span.text.strip())
        spaced = [span]
        if is_word or (source.is_space(start - 1) and source.first_at[start] is span):
            spaced.insert(0, SPACE)
        if is_word or (source.is_space(end) and source.last_at[end] is span):
            spaced.append(SPACE)
        return spaced

    def _is_unmarked(self, number: int) -> bool:
        """Whether there is a word of this number, which is text without any marks."""
        if number >= len(self._filled):
            return False
        word = self._filled[number]
        return bool(word) and all(span.kind == "text" and not span.marks for span in word)


def _parts(word: str, owners: Sequence[Span]) -> list[_Part]:
    """Return the stretches of a word whose characters have the same owner."""
    if owners[0] is owners[-1]:  # a span is one stretch of the text
        return [_Part(word, owners[0])]
    parts = []
    size = len(word)
    start = 0
    for end in range(1, size + 1):
        owner = owners[start]
        if end == size or owners[end] is not owner:
            parts.append(_Part(word[start:end], owner))
            start = end
    return parts


def _core(parts: Sequence[_Part]) -> _Part:
    """Return the part that has most of a word's letters and digits."""
    if len(parts) == 1:
        return parts[0]
    return max(parts, key=lambda part: part.letters)


def _split_like(word: str, parts: list[_Part]) -> list[_Part]:
    """Split a target word as its source word is split.

    Punctuation at the ends goes to the outer parts, as far as they had some; the rest is the core.
    """
    is_plain = len(parts) == 1 and parts[0].span.kind == "text"
    if is_plain:
        return [_Part(word, parts[0].span)]
    whole = "".join(part.text for part in parts)
    if word == whole:
        return parts
    if word.casefold() == whole.casefold() and len(word) == len(whole):
        ends = list(accumulate((len(part.text) for part in parts), initial=0))
        return [_Part(word[ends[i] : ends[i + 1]], part.span) for i, part in enumerate(parts)]
    core = _core(parts)
    if core.span.kind != "text" and core.text in word:
        return _split_around(word, core, parts)
    core_index = parts.index(core)
    before = _length(parts[:core_index])
    after = _length(parts[core_index + 1 :])
    start = _count_punctuation(word, before)
    backwards = word[start:][::-1]
    end = len(word) - _count_punctuation(backwards, after)
    first = _Part(word[:start], parts[0].span)
    middle = _Part(word[start:end], core.span)
    last = _Part(word[end:], parts[-1].span)
    return [part for part in (first, middle, last) if part.text]


def _split_around(word: str, core: _Part, parts: list[_Part]) -> list[_Part]:
    """Split a target word that has what is kept in it, as the French l' has a placeholder."""
    before, _, after = word.partition(core.text)
    around = replace(core.span, kind="text", text="", raw="")
    first = parts[0].span if parts[0].span.kind == "text" else around
    last = parts[-1].span if parts[-1].span.kind == "text" else around
    split = [_Part(before, first), core, _Part(after, last)]
    return [part for part in split if part.text]


def _count_punctuation(word: str, most: int) -> int:
    """Return how many characters of a word's start are neither letters nor digits."""
    count = 0
    most = min(most, len(word))
    while count < most and _PUNCTUATION.match(word, count):
        count += 1
    return count


def _length(parts: Sequence[_Part]) -> int:
    return sum(len(part.text) for part in parts)


def _links(
    alignment: Sequence[tuple[int, int]],
    source_count: int,
    target_count: int,
) -> dict[int, list[int]]:
    """Return the source words of each target word that is aligned."""
    links: dict[int, list[int]] = {}
    for source, target in alignment:
        if source < source_count and target < target_count:
            links.setdefault(target, []).append(source)
    return links


def _origins(
    source: _Source,
    target: list[str],
    links: dict[int, list[int]],
) -> list[int]:
    """Return for each target word the source word that it comes from.

    A word without a link belongs to the origin of the word before it.
    """
    links = _without_copied(source, target, links)
    first = next(iter(links.values()), [])
    shares = Counter(chain.from_iterable(links.values()))
    origins: list[int] = []
    for number, word in enumerate(target):
        diagonal = number * len(source.words) // len(target)
        if number in links:
            candidates = links[number]
        elif word in source.kept:
            candidates = [source.kept[word]]
        elif links:
            candidates = origins[-1:] or first
        else:
            candidates = [diagonal]
        rank = _Rank(word, diagonal, source, shares)
        origins.append(min(candidates, key=rank))
    return _settled(origins, len(source.words))


def _without_copied(
    source: _Source,
    target: list[str],
    links: dict[int, list[int]],
) -> dict[int, list[int]]:
    """Return the links without those of other words to a source word that stands in the target as
    it is: a copy is aligned with its original alone."""
    copies: dict[int, set[int]] = {}
    for number, candidates in links.items():
        for candidate in candidates:
            core = _core(source.parts[candidate])
            is_kept = core.span.kind != "text" and bool(core.text) and core.text in target[number]
            if is_kept or target[number] == source.words[candidate]:
                copies.setdefault(candidate, set()).add(number)
    left: dict[int, list[int]] = {}
    for number, candidates in links.items():
        own = [one for one in candidates if number in copies.get(one, {number})]
        if own:
            left[number] = own
    return left


def _settled(origins: list[int], source_count: int) -> list[int]:
    """Return the origins, some of the words that share one given to a source word that has none.

    It stands beside the origin of the word before or after, as an article does that the alignment
    gave to its noun. Of words in a row only the first one moves.
    """
    settled = list(origins)
    counts = Counter(origins)
    for number, origin in enumerate(origins):
        goes_on = number > 0 and settled[number - 1] == origin
        if goes_on or counts[origin] < 2:
            continue
        beside = []
        if number:
            beside.append(settled[number - 1] + 1)
        if number + 1 < len(settled):
            beside.append(settled[number + 1] - 1)
        near = [place for place in beside if abs(place - origin) <= _NEAR]
        free = [place for place in near if 0 <= place < source_count and not counts[place]]
        if free:
            settled[number] = free[0]
            counts[origin] -= 1
            counts[free[0]] += 1
    return settled


@dataclass(frozen=True)
class _Rank:
    """The order of the source words that a target word may come from: rather an equal one, then one
    that is translated, then one with few other words, then a near one."""

    word: str
    diagonal: int
    source: _Source
    shares: Counter[int]

    def __call__(self, number: int) -> tuple[bool, bool, int, int]:
        candidate = self.source.words[number]
        is_other = candidate != self.word
        is_kept = candidate in self.source.kept
        distance = abs(number - self.diagonal)
        return is_other, is_kept, self.shares[number], distance


def _gap(origins: Sequence[int], number: int) -> int:
    """Return the gap for what stood before source word `number`: the fewest words change sides.

    It never decreases as `number` grows, so spans without words keep their order.
    """
    steps = (1 if origin >= number else -1 for origin in origins)
    costs = list(accumulate(steps, initial=0))
    return costs.index(min(costs))
