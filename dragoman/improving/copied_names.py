"""Pairs in which the names and numbers that stand on both sides are exchanged for others, so that a
model learns to copy rather than to remember. Knows strings only.

Half of the new names are made of two halves of known ones, so that none is learnt in place of the
next. What becomes of a pair follows from the seed and the pairs before it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence

Pair = tuple[str, str]
_WORD = re.compile(r"[^\W\d_]+")
_NAME_OR_NUMBER = re.compile(r"[^\W\d_]{3,}|\d[\d.,]*\d")


class CopiedNames:
    """Words with a capital that stand in a sentence and in its translation, and never without the
    capital; and numbers."""

    def __init__(self, pairs: Sequence[Pair], seed: int) -> None:
        self._common = _lower_case_words(source for source, _ in pairs)
        known = {word for pair in pairs for word in self.shared(pair) if word[0].isupper()}
        self._known = sorted(known)
        self._draw = random.Random(seed)

    def shared(self, pair: Pair) -> set[str]:
        """The names and numbers that both sides of a pair have."""
        source, target = pair
        of_source = set(_NAME_OR_NUMBER.findall(source))
        of_target = set(_NAME_OR_NUMBER.findall(target))
        both = of_source & of_target
        return {word for word in both if self._is_copied(word)}

    def exchanged(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Each pair that has any, with others in their place."""
        for source, target in pairs:
            shared = self.shared((source, target))
            new = {word: self._another(word) for word in sorted(shared)}
            if new:
                yield _replaced(new, source), _replaced(new, target)

    def _is_copied(self, word: str) -> bool:
        if word[0].isdigit():
            return True
        return word[0].isupper() and word.lower() not in self._common

    def _another(self, word: str) -> str:
        if word[0].isdigit():
            return "".join(self._digit(at, sign) for at, sign in enumerate(word))
        if len(self._known) < 2:
            return word
        one, other = self._draw.sample(self._known, 2)
        if self._draw.random() < 0.5:
            return one
        first_half = one[: len(one) // 2 + 1]
        second_half = other[len(other) // 2 :]
        return first_half + second_half.lower()

    def _digit(self, at: int, sign: str) -> str:
        """Another digit, and none that makes a number begin with 0."""
        if not sign.isdigit():
            return sign
        least = 0 if at else 1
        digit = self._draw.randint(least, 9)
        return str(digit)


def _lower_case_words(texts: Iterable[str]) -> set[str]:
    words: set[str] = set()
    for text in texts:
        words.update(word for word in _WORD.findall(text) if word[0].islower())
    return words


def _replaced(new: dict[str, str], text: str) -> str:
    return _NAME_OR_NUMBER.sub(lambda word: new.get(word[0], word[0]), text)
