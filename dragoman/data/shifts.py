"""Blocks of lines in which one side is shifted against the other: line N of the source belongs to
line N + 1 of the target, say. Knows lengths and a few words of each line; knows no files.

Translations are about as long as their sources and keep numbers and names. For each pair and each
shift it is asked how much better the source fits the shifted target than its own. These gains are
summed up as long as they pay (a CUSUM test, Page 1954): the sum stays near zero in aligned text and
grows in a shifted block. Memory is that of a few lines, and of the blocks that are found.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

SHIFTS = (-1, 1, -2, 2)
_REACH = 2
_FEWEST = 5  # lines of a block
_FOUND = 25.0  # gain of a block over aligned text
_OVER = 12.0  # loss after which a block has ended
_WORST = 4.0  # of a misfit of lengths
_DRIFT = 0.25  # a shift has to be better by this much a line, so that ties never add up
_ANCHOR = 3.0  # gain for a number or name that both lines have
_MOST_ANCHORS = 2
_UNMATCHED = 1.0  # loss for a number that only one line has
_LONGEST_LINE = 4000  # characters that are looked at
_NUMBER = re.compile(r"\d+")
_SIGNS = ".,;:!?()[]\"'"


class Block(NamedTuple):
    """Pairs in a row, by their ordinals, of which each source belongs to target + shift."""

    first: int
    last: int
    shift: int


class _Line(NamedTuple):
    source: int  # characters
    target: int
    source_numbers: frozenset[str]
    target_numbers: frozenset[str]
    source_words: frozenset[str]
    target_words: frozenset[str]


@dataclass
class _Sum:
    """The gain of one shift since it was last at zero."""

    shift: int
    gain: float = 0.0
    first: int = 0
    best: float = 0.0
    best_at: int = 0

    def add(self, gain: float, ordinal: int) -> Block | None:
        """Return a block when it has ended."""
        if self.gain <= 0.0:
            self.gain = 0.0
            self.first = ordinal
            self.best = 0.0
        self.gain += gain - _DRIFT
        if self.gain > self.best:
            self.best = self.gain
            self.best_at = ordinal
        if self.gain > 0.0 and self.gain > self.best - _OVER:
            return None
        return self.end()

    def end(self) -> Block | None:
        """Return the block that has come to its end, if there is one."""
        block = None
        if self.best >= _FOUND and self.best_at - self.first + 1 >= _FEWEST:
            block = Block(self.first, self.best_at, self.shift)
        self.gain = 0.0
        self.best = 0.0
        return block


@dataclass
class Shifts:
    """Looks for shifted blocks while the pairs of a corpus pass by."""

    proportion: float  # usual length of a target for one of its source
    variance: float  # usual square of the misfit, see `misfit`
    ordinal: int = 0  # of the next pair
    _window: deque[_Line] = field(default_factory=deque)
    _sums: list[_Sum] = field(default_factory=lambda: [_Sum(shift) for shift in SHIFTS])

    def add(self, source: str, target: str) -> Iterator[Block]:
        """Take the next pair; yield the blocks that are known to have ended."""
        self._window.append(_line(source[:_LONGEST_LINE], target[:_LONGEST_LINE]))
        self.ordinal += 1
        if len(self._window) > 2 * _REACH:
            yield from self._judge()
            self._window.popleft()

    def finish(self) -> Iterator[Block]:
        """Yield the blocks at the end of the corpus."""
        for one in self._sums:
            block = one.end()
            if block:
                yield block

    def _judge(self) -> Iterator[Block]:
        """Judge the pair in the middle of the window."""
        middle = self._window[_REACH]
        own = self._fit(middle, middle)
        for one in self._sums:
            gain = self._fit(middle, self._window[_REACH + one.shift]) - own
            block = one.add(gain, self.ordinal - 1 - _REACH)
            if block:
                yield block

    def _fit(self, left: _Line, right: _Line) -> float:
        """How well the source of one pair and the target of another go together."""
        square = misfit(left.source, right.target, self.proportion) ** 2
        fit = -min(_WORST, square / self.variance / 2)
        shared = left.source_numbers & right.target_numbers
        unmatched = len(left.source_numbers ^ right.target_numbers)
        names = (left.source_words & right.target_words) if left.source_words else ()
        fit += _ANCHOR * min(_MOST_ANCHORS, len(shared) + len(names))
        return fit - min(_MOST_ANCHORS, unmatched) * _UNMATCHED


def usual(sample: Sequence[tuple[str, str]]) -> tuple[float, float]:
    """Return the proportion of lengths that is usual in a sample, and the usual square misfit."""
    source_length = sum(len(source) for source, _ in sample)
    target_length = sum(len(target) for _, target in sample)
    if not source_length or not target_length:
        return 1.0, 1.0
    proportion = target_length / source_length
    squares = sorted(misfit(len(source), len(target), proportion) ** 2 for source, target in sample)
    # The median of a squared normal variable is 0.455 times its variance.
    return proportion, max(0.5, squares[len(squares) // 2] / 0.455)


def misfit(source: int, target: int, proportion: float) -> float:
    """Return how far two lengths are apart, in units that are alike for short and long lines."""
    expected = source * proportion
    return (target - expected) / ((target + expected) / 2 + 1) ** 0.5


def _line(source: str, target: str) -> _Line:
    return _Line(
        len(source),
        len(target),
        _numbers(source),
        _numbers(target),
        _names(source),
        _names(target),
    )


def _numbers(text: str) -> frozenset[str]:
    return frozenset(_NUMBER.findall(text))


def _names(text: str) -> frozenset[str]:
    """The words of a line that may be names: those with a capital and some more letters."""
    names = [word.strip(_SIGNS) for word in text.split() if word[:1].isupper()]
    return frozenset(name for name in names if len(name) > 3)
