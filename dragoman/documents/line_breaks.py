"""Breaks a text into lines, each with its share of it, at good places. Knows the marks that must
not be broken, and that Chinese and Japanese have no spaces; no file format.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

_WIDE = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WIDE_END = "，。！？；：、」』）》"
# Small kana and what closes or lengthens must not begin a line.
_WIDE_START = rf"(?![ぁぃぅぇぉっゃゅょァィゥェォッャュョー])[{_WIDE}「『（《]"
_MARK_OR_PLACE = re.compile(
    rf"<[^<>]*>|\{{[^{{}}]*\}}|(?P<place> |(?<=[{_WIDE}{_WIDE_END}])(?={_WIDE_START}))"
)
_PUNCTUATION = ".,;:!?…،؛؟।" + _WIDE_END
_DASHES = ("-", "–", "—")
_BONUS = 6  # characters that a break at punctuation may be further away


def break_lines(text: str, lines: Sequence[str]) -> list[str]:
    """Break a text into as many lines as there were, each with about the same share of it.

    Breaks are at punctuation where possible. There are fewer where words are too few.
    """
    ends = list(accumulate(len(line) for line in lines))
    whole = max(ends[-1], 1)
    wanted = [end / whole * len(text) for end in ends[:-1]]
    return break_at(text, wanted)


def break_at(text: str, wanted: Sequence[float], bonus: int = _BONUS) -> list[str]:
    """Break a text near the places wanted, which are in order.

    `bonus` is by how many characters a break at punctuation may be further away.
    """
    places = _places(text)
    breaks = _Breaks(text, places, bonus)
    chosen = [0]
    first = 0  # of the places that are left
    for number, place in enumerate(wanted, 1):
        if first == len(places):
            break
        # The breaks still to come need a place each.
        to_come = len(wanted) - number
        last = max(first + 1, len(places) - to_come)
        index = breaks.best(place, first, last)
        chosen.append(places[index])
        first = index + 1
    starts_and_ends = zip(chosen, [*chosen[1:], None], strict=True)
    return [text[start:end].strip() for start, end in starts_and_ends]


def _places(text: str) -> list[int]:
    """Return where a text may be broken."""
    matches = _MARK_OR_PLACE.finditer(text)
    return [match.start() for match in matches if match["place"] is not None and match.start()]


class _Breaks:
    """The places at which a text may be broken."""

    def __init__(self, text: str, places: Sequence[int], bonus: int) -> None:
        self._text = text
        self._places = places
        self._bonus = bonus

    def best(self, wanted: float, first: int, last: int) -> int:
        """Return the index of the place near `wanted` to break at, from `first` up to `last`."""
        places = self._places
        # Only those can win that are at most the bonus further away than the nearest.
        after = bisect_left(places, wanted, first, last)
        neighbours = places[max(after - 1, first) : min(after + 1, last)]
        nearest = min(abs(place - wanted) for place in neighbours)
        reach = nearest + self._bonus
        nearby = range(
            bisect_left(places, wanted - reach, first, last),
            bisect_right(places, wanted + reach, first, last),
        )
        return min(nearby, key=lambda index: self._cost(places[index], wanted))

    def _cost(self, place: int, wanted: float) -> float:
        before = self._text[place - 1]
        is_pause = before in _PUNCTUATION or self._text.startswith(_DASHES, place + 1)
        return abs(place - wanted) - self._bonus * is_pause
