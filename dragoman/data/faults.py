"""What can be wrong with one pair by itself. Knows normalised strings; knows no files and no other
pairs."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from dragoman.data.data_options import DataOptions
from dragoman.data.markup_left import has_markup
from dragoman.data.swapped import Sides
from dragoman.text.broken_characters import is_mojibake
from dragoman.text.scripts import outside, scripts_of

_SMOOTH = 10  # characters added to both lengths, so that short sentences may differ more
_LONGEST_PIECE = 16  # characters; SentencePiece learns none longer
_RATIO = 3.0  # what counts as suspicious when data.max_ratio is 0


class Faults:
    """The tests of a pair.

    They know what is usual in this text: the scripts of the two sides and the proportion of their
    lengths.
    """

    def __init__(
        self,
        data: DataOptions,
        sample: Sequence[tuple[str, str]],
        evaluated: Container[bytes],
    ) -> None:
        self._evaluated = evaluated
        self._compares = not data.any_text
        self._max_length = data.max_length
        self._high = data.max_ratio or _RATIO
        self._low = 1 / self._high
        sources = [source for source, _ in sample]
        targets = [target for _, target in sample]
        source_length = sum(map(len, sources))
        target_length = sum(map(len, targets))
        is_known = source_length and target_length
        self._usual = target_length / source_length if is_known else 1.0
        self._sides = Sides(sample)
        self._source_outside = outside(scripts_of(sources))
        self._target_outside = outside(scripts_of(targets))

    def __call__(
        self,
        source: str,
        target: str,
        source_key: bytes,
    ) -> Iterator[str]:
        """Yield the kinds of finding (see check_report.py) for a pair."""
        if not source or not target:
            yield "empty"
            return
        if self._too_long(source) or self._too_long(target):
            yield "long"
        if self._compares:
            yield from self._of_both(source, target)
        if source_key in self._evaluated:
            yield "overlap"

    def _of_both(self, source: str, target: str) -> Iterator[str]:
        """Yield what is suspicious where one side translates the other."""
        if has_markup(source, target):
            yield "markup"
        if self._sides.are_swapped(source, target):
            yield "swapped"
        expected_length = len(target) / self._usual
        ratio = (expected_length + _SMOOTH) / (len(source) + _SMOOTH)
        if not self._low < ratio < self._high:
            yield "ratio"
        if source == target:
            yield "copy"
        if self._source_outside(source) or self._target_outside(target):
            yield "script"

    def _too_long(self, text: str) -> bool:
        """Whether a text certainly has too many tokens.

        A word is a piece or more, and the end is one; the rest shows when text becomes tokens.
        """
        limit = self._max_length
        if len(text) <= 2 * limit - 4:
            return False
        return text.count(" ") + 2 > limit or len(text) > _LONGEST_PIECE * limit


def raw_faults(source: str, target: str) -> Iterator[str]:
    """Yield the kinds of finding that can be seen only before a pair is normalised."""
    if "\t" in source or "\t" in target:
        yield "tab"
    if is_mojibake(source) or is_mojibake(target):
        yield "garbled"
