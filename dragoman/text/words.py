"""Words: what they are in a text of any script, and which of the source belong to which of the
target. Knows strings, pieces and attention as an array; no model."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy

# Scripts written without spaces: Thai, Lao, Tibetan, Myanmar, Khmer, kana, Bopomofo and Han.
_UNSPACED = (
    "\u0e00-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u31a0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
# What stands on or between the letters of a word without being one: accents, vowel signs, joiners.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c2\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0711-\u074a\u07eb-\u07f3"
    "\u0900-\u0963\u0970-\u0df3\u135d-\u135f\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f"
)
# The smallest parts of a text that have a meaning: a word, a character of an unspaced script, any
# other mark by itself.
ATOM = re.compile(rf"[^\W_{_UNSPACED}]+(?:[{_MARKS}]+[^\W_{_UNSPACED}]*)*|\S")


def words_of(pieces: Sequence[str]) -> list[int]:
    """For each piece the number of its word in `text.split(" ")`; a space that no letters follow
    begins no word."""
    numbers, number, begins = [], -1, True
    for piece in pieces:
        begins = begins or piece.startswith("▁")
        if begins and piece.strip("▁"):
            number, begins = number + 1, False
        numbers.append(number + begins)
    return [min(place, max(number, 0)) for place in numbers]


def align(
    attention: numpy.ndarray, source_pieces: Sequence[str], target_pieces: Sequence[str]
) -> tuple[tuple[int, int], ...]:
    """Sorted (source word, target word) from attention of (target + 1, source + 1), the end last on
    both sides.

    Each target word is linked to the source word that its pieces look at most, taken together. Each
    source word is also linked to the target word that looks at it most, if that one looks at it at
    least half as much as at its own first choice.
    """
    assert attention.shape == (len(target_pieces) + 1, len(source_pieces) + 1)
    if not source_pieces or not target_pieces:
        return ()
    source, target = words_of(source_pieces), words_of(target_pieces)
    mass = numpy.zeros((max(target) + 1, max(source) + 1))
    numpy.add.at(
        mass, (numpy.array(target)[:, None], numpy.array(source)[None]), attention[:-1, :-1]
    )
    links = {(int(place), number) for number, place in enumerate(mass.argmax(axis=1))}
    for number, place in enumerate(mass.argmax(axis=0)):
        if mass[place, number] >= 0.5 * mass[place].max():
            links.add((number, int(place)))
    return tuple(sorted(links))


def pharaoh(alignment: Sequence[tuple[int, int]]) -> str:
    """As "0-0 1-2": source word, target word."""
    return " ".join(f"{source}-{target}" for source, target in alignment)


def places_of(text: str, pieces: Sequence[str]) -> list[int]:
    """The pieces that `text` is written in wherever it occurs among them, in any case of its
    letters."""
    starts = [0]
    for piece in pieces:
        starts.append(starts[-1] + len(piece))
    whole, wanted = "".join(pieces).replace("▁", " ").lower(), text.lower()
    found = [match.span() for match in re.finditer(re.escape(wanted), whole)] if wanted else []
    return [
        i
        for i in range(len(pieces))
        if any(starts[i] < end and start < starts[i + 1] for start, end in found)
    ]
