"""Moves the marks of a paragraph to its translation, by the alignment of the words.

A target word gets the marks of the source word that it comes from. Knows strings, spans and
alignments; no file format, no translator.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

from dragoman.text.spans import SPACE, Span
from dragoman.text.word_origins import gap_before, links_of, origins_of
from dragoman.text.word_parts import Part, SourceWords, split_like

# A translation, and its pairs of source word and target word.
Answer = tuple[str, Sequence[tuple[int, int]]]
Ask = Callable[[str], Answer]
_STOP = re.compile(r"(?<=\w)[.!?:;…。！？]+$")
_HELD_PAUSE = re.compile(r"(?<=\w)[,;:]$")
_PAUSE = re.compile(r"[.!?:;,…。！？，、]+(?=\s|$)")
MOST = 500  # spans of a paragraph: the time for each word grows with the marks around it


def transfer(spans: Sequence[Span], ask: Ask) -> list[Span] | None:
    """Return the texts and voids of a paragraph's translation, or None if the text stays the same.

    Empty elements go where they separate the same words as before. A mark whose words vanished
    goes around the nearest unmarked word, or stays empty.
    """
    texts = [span.text for span in spans if span.kind == "text"]
    has_letters = any(map(str.isalpha, "".join(texts)))
    if len(spans) > MOST or not has_letters:
        return None
    source = SourceWords(spans)
    answer, alignment = ask(" ".join(source.words))
    words = answer.split()
    if words == source.words:
        return None
    target = _Target(source, words, alignment)
    target.fill_words()
    target.fill_gaps()
    return target.in_order()


class _Target:
    """The words of a translation and the gaps before, between and behind them, as spans."""

    def __init__(
        self,
        source: SourceWords,
        words: list[str],
        alignment: Sequence[tuple[int, int]],
    ) -> None:
        self._source = source
        self._words = words
        self._links = links_of(alignment, len(source.words), len(words))
        self._origins = origins_of(source, words, self._links)
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
            stop = self._stop(word, origin) if is_last else self._pause(number)
            body = word[: -len(stop.text)] if stop else word
            parts = split_like(body, self._source.parts[origin])
            for part in [*parts, stop] if stop else parts:
                span = part.span
                if span.kind == "text" or not may_be_kept:
                    text = Span("text", part.text, marks=span.marks)
                    filled.append(text)
                elif id(span) not in self._used:
                    filled.append(span)
                    self._used.add(id(span))

    def _stop(self, word: str, origin: int) -> Part | None:
        """Return what ends the last word, which has the marks of what ends the source, if the word
        comes from another than the last one."""
        source = self._source
        found = _STOP.search(word)
        last = source.parts[-1][-1]
        is_same = origin == len(source.words) - 1
        if is_same or not found or last.span.kind != "text" or not _STOP.search(source.text):
            return None
        return Part(found[0], last.span)

    def _pause(self, number: int) -> Part | None:
        """Return a comma that only the translation has behind a marked word, as in "klicken Sie
        <b>hier</b>, um". It has the marks of the next word, if these are fewer."""
        source = self._source
        origin = self._origins[number]
        found = _HELD_PAUSE.search(self._words[number])
        if not found or _HELD_PAUSE.search(source.words[origin]):
            return None
        before = source.parts[origin][-1].span
        after = source.parts[self._origins[number + 1]][0].span
        is_between = after.kind == "text" and len(after.marks) < len(before.marks)
        return Part(found[0], after) if is_between else None

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
            index = gap_before(self._origins, word_number)
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
