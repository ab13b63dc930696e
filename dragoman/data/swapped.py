"""Whether the two sides of a pair stand in each other's place. Knows strings; knows no languages by
name: what each side looks like is learnt from the text itself.

A word speaks for the side on which it is much more frequent. A pair is swapped if its source looks
like the targets and its target like the sources; a name, a number or a quotation speaks for
neither side.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from dragoman.text.scripts import UNSPACED

_FEWEST = 3  # sightings of a word, below which it says nothing
_LEAST = 1.5  # log of how many times more frequent
_MOST = 4.0  # so that no single word decides
_EVIDENCE = 6.0  # for each side: at least two words
_CLEAR = 20  # lines, from which on a text can be told to be of the other side
_TIMES = 9  # as many as of the own side
_UNSPACED = re.compile(f"[{UNSPACED}]")


class Sides:
    """What the words of a corpus say about the side on which they stand."""

    def __init__(self, sample: Sequence[tuple[str, str]]) -> None:
        sources = _count(source for source, _ in sample)
        targets = _count(target for _, target in sample)
        self._weights: dict[str, float] = {}
        source_total = sources.total() + 1
        target_total = targets.total() + 1
        for word in sources.keys() | targets.keys():
            if sources[word] + targets[word] < _FEWEST:
                continue
            source_share = (sources[word] + 0.5) / source_total
            target_share = (targets[word] + 0.5) / target_total
            weight = math.log(source_share / target_share)
            if abs(weight) >= _LEAST:
                self._weights[word] = max(-_MOST, min(_MOST, weight))

    def are_swapped(self, source: str, target: str) -> bool:
        """Whether each side looks like the other."""
        return self._score(source) <= -_EVIDENCE and self._score(target) >= _EVIDENCE

    def resemble_targets(self, lines: Sequence[str]) -> bool:
        """Whether most lines that tell their side look like targets, and hardly any like
        sources."""
        scores = [self._score(line) for line in lines]
        like_targets = sum(score <= -_EVIDENCE for score in scores)
        like_sources = sum(score >= _EVIDENCE for score in scores)
        return like_targets >= _CLEAR and like_targets > _TIMES * like_sources

    def is_foreign(self, source: str, target: str) -> bool:
        """Whether one side alone looks like the other: both are then in one language."""
        return self._score(source) <= -_EVIDENCE or self._score(target) >= _EVIDENCE

    def _score(self, text: str) -> float:
        """Above 0 for a source, below 0 for a target."""
        known = self._weights.keys() & _words(text)
        return sum(map(self._weights.__getitem__, known))


def _count(texts: Iterable[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(_words(text))
    return counts


def _words(text: str) -> set[str]:
    """The words of a text, or its characters where words are not spaced."""
    words = set(text.lower().split())
    if not text.isascii() and _UNSPACED.search(text):
        words |= set(_UNSPACED.findall(text))
    return words
