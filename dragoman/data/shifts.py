"""Blocks of lines in which one side is shifted against the other: line N of the source belongs to
line N + 1 of the target, say. Knows the length and the numbers of each line; knows no files.

Translations are about as long as their sources and keep their numbers. For each pair and each
shift it is asked how much better the source fits the shifted target than its own. These gains are
summed up as long as they pay (a CUSUM test, Page 1954): the sum stays near zero in aligned text and
grows in a shifted block. Memory is that of some thousand lengths, and of the blocks found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

SHIFTS = (-1, 1, -2, 2)
_REACH = 2
_FEWEST = 5  # lines of a block
_FOUND = 25.0  # gain of a block over aligned text
_OVER = 12.0  # loss after which a block has ended
_WORST = 4.0  # of a misfit of lengths
_DRIFT = 0.25  # a shift has to be better by this much a line, so that ties never add up
_ANCHOR = 3.0  # gain for a number that both lines have
_MOST_ANCHORS = 2
_UNMATCHED = 1.0  # loss for a number that only one line has
_LONGEST_LINE = 4000  # characters that are looked at
_AT_ONCE = 4096  # lines
_NUMBER = re.compile(r"\d+")
_NONE: frozenset[str] = frozenset()
Numbers = frozenset[str]
Gains = NDArray[np.float64]
Length = TypeVar("Length", float, Gains)


class Block(NamedTuple):
    """Pairs in a row, by their ordinals, of which each source belongs to target + shift."""

    first: int
    last: int
    shift: int
    gain: float


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

    def add_all(self, gains: Gains, ordinal: int) -> Iterator[Block]:
        """Yield the blocks that end among the pairs from this ordinal on."""
        sums = self.gain + np.cumsum(gains - _DRIFT)
        bounded = np.minimum(sums, 0.0)
        lowest = np.minimum.accumulate(bounded)
        heights = sums - lowest
        # Far from a block, as nearly always: only the sum is carried on.
        if self.best < _FOUND and heights.max(initial=0.0) < _FOUND:
            self._carry_on(sums, ordinal)
            return
        for number, gain in enumerate(gains.tolist(), ordinal):
            block = self.add(gain, number)
            if block:
                yield block

    def _carry_on(self, sums: Gains, ordinal: int) -> None:
        """Take the sums from this ordinal on, among which no block begins or ends."""
        if len(sums):
            backwards = sums[::-1]
            last = len(sums) - 1 - int(np.argmin(backwards))  # the last place of the lowest sum
            lowest = sums[last]
            if lowest <= 0.0:
                self.first = ordinal + last + 1
                self.best = 0.0
                sums = sums[last + 1 :] - lowest
                ordinal = self.first
        if not len(sums):
            self.gain = 0.0
            return
        self.gain = float(sums[-1])
        top = int(np.argmax(sums))
        highest = float(sums[top])
        if highest > self.best:
            self.best = highest
            self.best_at = ordinal + top

    def end(self) -> Block | None:
        """Return the block that has come to its end, if there is one."""
        block = None
        n_lines = self.best_at - self.first + 1
        if self.best >= _FOUND and n_lines >= _FEWEST:
            block = Block(
                first=self.first,
                last=self.best_at,
                shift=self.shift,
                gain=self.best,
            )
        self.gain = 0.0
        self.best = 0.0
        return block


class Shifts:
    """Looks for shifted blocks while the pairs of a corpus pass by, some thousands at a time."""

    def __init__(self, proportion: float, variance: float) -> None:
        self._proportion = proportion  # usual length of a target for one of its source
        self._variance = variance  # usual square of the misfit, see `misfit`
        self._first = 0  # ordinal of the first line that is held
        self._lengths: tuple[list[int], list[int]] = ([], [])
        self._numbers: tuple[dict[int, Numbers], dict[int, Numbers]] = ({}, {})
        self._sums = [_Sum(shift) for shift in SHIFTS]

    def add(self, source: str, target: str) -> Iterator[Block]:
        """Take the next pair; yield the blocks that are known to have ended."""
        place = len(self._lengths[0])
        for side, text in enumerate((source, target)):
            looked_at = text[:_LONGEST_LINE]
            self._lengths[side].append(len(looked_at))
            found = _NUMBER.findall(looked_at)
            if found:
                self._numbers[side][place] = frozenset(found)
        if place + 1 == _AT_ONCE:
            yield from self._judge()

    def finish(self) -> Iterator[Block]:
        """Yield the blocks at the end of the corpus."""
        yield from self._judge()
        for one in self._sums:
            block = one.end()
            if block:
                yield block

    def _judge(self) -> Iterator[Block]:
        """Judge the pairs that are held, all but those whose neighbours are not known yet; these
        and their neighbours before them stay."""
        count = len(self._lengths[0])
        start = _REACH if self._first == 0 else 2 * _REACH
        if count < start + _REACH:
            return
        own = self._fits(0)
        for one in self._sums:
            gains = self._fits(one.shift) - own
            yield from one.add_all(gains[_REACH:-_REACH], self._first + _REACH)
        kept = count - 2 * _REACH
        self._first += kept
        for side in (0, 1):
            del self._lengths[side][:kept]
            numbers = self._numbers[side]
            shifted = {place - kept: found for place, found in numbers.items() if place >= kept}
            numbers.clear()
            numbers.update(shifted)

    def _fits(self, shift: int) -> Gains:
        """How well each source and the target that stands `shift` lines later go together."""
        source_lengths, target_lengths = self._lengths
        sources = np.array(source_lengths, dtype=np.float64)
        targets = np.array(target_lengths, dtype=np.float64)
        shifted = np.roll(targets, -shift)
        squares = misfit(sources, shifted, self._proportion) ** 2
        fits: Gains = -np.minimum(_WORST, squares / self._variance / 2)
        source_numbers, target_numbers = self._numbers
        places = source_numbers.keys() | {place - shift for place in target_numbers}
        for place in places:
            if 0 <= place < len(fits):
                left = source_numbers.get(place, _NONE)
                right = target_numbers.get(place + shift, _NONE)
                in_both = min(_MOST_ANCHORS, len(left & right))
                in_one = min(_MOST_ANCHORS, len(left ^ right))
                fits[place] += _ANCHOR * in_both
                fits[place] -= _UNMATCHED * in_one
        return fits


def apart(blocks: Sequence[Block]) -> list[Block]:
    """Return blocks that do not overlap, in order: of those that do, the one that gains most.

    Where a source does not fit its own target, every shift fits a little better.
    """
    chosen: list[Block] = []
    for block in sorted(blocks):
        before = chosen[-1] if chosen else None
        if before is None or block.first > before.last:
            chosen.append(block)
        elif block.gain > before.gain:
            chosen[-1] = block
    return chosen


def usual(sample: Sequence[tuple[str, str]]) -> tuple[float, float]:
    """Return the proportion of lengths that is usual in a sample, and the usual square misfit."""
    source_length = sum(len(source) for source, _ in sample)
    target_length = sum(len(target) for _, target in sample)
    if not source_length or not target_length:
        return 1.0, 1.0
    proportion = target_length / source_length
    squares = []
    for source, target in sample:
        distance = misfit(len(source), len(target), proportion)
        squares.append(distance**2)
    squares.sort()
    median = squares[len(squares) // 2]
    # The median of a squared normal variable is 0.455 times its variance.
    return proportion, max(0.5, median / 0.455)


def misfit(source: Length, target: Length, proportion: float) -> Length:
    """Return how far two lengths are apart, in units that are alike for short and long lines."""
    expected = source * proportion
    mean = (target + expected) / 2
    return (target - expected) / (mean + 1) ** 0.5
