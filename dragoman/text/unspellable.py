"""Words that a vocabulary cannot spell, such as a name in another script: they are carried over.

Knows strings and the pieces of a vocabulary; no tokeniser and no model. What a model has to spell
in bytes that it has seldom read comes out as other words, or as half a character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from dragoman.text.protected import PRIVATE
from dragoman.text.scripts import COMBINING, UNSPACED, ranges_outside, scripts_of

# Characters up to here are in so much text that their bytes are learnt.
_COMMON = "\u0000-\u00ff"
# Spaces, quotation marks, dashes and dots, of which each language has its own; what is removed
# from a text, or belongs to the sign before it.
_LEFT_ALONE = (
    "\u2000-\u201f\u2026-\u202f\u2032-\u2037\u2039\u203a\u2060-\u206f\u3000-\u3002\ud800-\udfff"
    f"\ufe00-\ufe0f\ufeff\ufffd{PRIVATE}"
)
_WORD = re.compile(rf"(?:[^\W{UNSPACED}]|[{COMBINING}])+|\S")


class Unspellable:
    """Finds what a vocabulary cannot spell, given its pieces."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._pieces = pieces

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where each such word or run of signs begins and ends; words side by side are
        one."""
        if text.isascii() or self._strange.search(text) is None:
            return
        first = 0
        last = 0
        was_word = False
        for match in _WORD.finditer(text):
            if self._strange.search(match[0]) is None:
                continue
            start, end = match.span()
            is_word = match[0][0].isalnum()
            between = text[last:start]
            is_next = not between or (between == " " and is_word and was_word)
            if not (last and is_next):
                if last:
                    yield first, last
                first = start
            last = end
            was_word = is_word
        if last:
            yield first, last

    @cached_property
    def _strange(self) -> re.Pattern[str]:
        """A character that is in no piece, or a letter of a script that the pieces are not in."""
        words = (piece for piece in self._pieces if len(piece) > 2)
        foreign = ranges_outside(scripts_of(words))
        known = re.escape("".join(sorted(set("".join(self._pieces)))))
        unknown = f"[^{_COMMON}{_LEFT_ALONE}{known}]"
        return re.compile(f"[{foreign}]|{unknown}" if foreign else unknown)
