"""Words: what they are in a text of any script, and which of the source belong to which of the
target. Knows strings, pieces and attention as an array; no model."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy

from dragoman.text.scripts import COMBINING, UNSPACED

_LETTER = rf"[^\W_{UNSPACED}]"
# The smallest parts of a text that have a meaning: a word, a character of a script without spaces,
# any other mark by itself.
ATOM = re.compile(rf"{_LETTER}+(?:[{COMBINING}]+{_LETTER}*)*|\S")


def words_of(pieces: Sequence[str]) -> list[int]:
    """Return for each piece the number of its word in `text.split(" ")`.

    A space that no letters follow does not begin a word.
    """
    numbers = []
    number = -1
    begins = True
    for piece in pieces:
        begins = begins or piece.startswith("▁")
        if begins and piece.strip("▁"):
            number += 1
            begins = False
        numbers.append(number + begins)
    last = max(number, 0)
    return [min(word, last) for word in numbers]


def align(
    attention: numpy.ndarray,
    source_pieces: Sequence[str],
    target_pieces: Sequence[str],
) -> tuple[tuple[int, int], ...]:
    """Return sorted (source word, target word) pairs.

    The attention is (target + 1, source + 1), with the end last on both sides. Each target word is
    linked to the source word that its pieces look at most, taken together. Each source word is also
    linked to the target word that looks at it most, if that one looks at it at least half as much
    as at its own first choice.
    """
    assert attention.shape == (len(target_pieces) + 1, len(source_pieces) + 1)
    if not source_pieces or not target_pieces:
        return ()
    source = numpy.array(words_of(source_pieces))
    target = numpy.array(words_of(target_pieces))
    mass = numpy.zeros((target.max() + 1, source.max() + 1))
    numpy.add.at(mass, (target[:, None], source[None]), attention[:-1, :-1])
    links = {(int(best), number) for number, best in enumerate(mass.argmax(axis=1))}
    for number, best in enumerate(mass.argmax(axis=0)):
        if mass[best, number] >= 0.5 * mass[best].max():
            links.add((number, int(best)))
    return tuple(sorted(links))


def pharaoh(alignment: Sequence[tuple[int, int]]) -> str:
    """Write an alignment as "0-0 1-2": source word, target word."""
    return " ".join(f"{source}-{target}" for source, target in alignment)


def places_of(text: str, pieces: Sequence[str]) -> list[int]:
    """Return the indices of the pieces that `text` is written in, wherever it occurs.

    The case of the letters does not matter.
    """
    if not text:
        return []
    bounds = list(accumulate((len(piece) for piece in pieces), initial=0))
    whole = "".join(pieces).replace("▁", " ").lower()
    pattern = re.escape(text.lower())
    indices: set[int] = set()
    for match in re.finditer(pattern, whole):
        first = bisect_right(bounds, match.start()) - 1
        last = bisect_left(bounds, match.end())
        # Lower case may be longer than upper case, so a match may end behind the last piece.
        indices.update(range(first, min(last, len(pieces))))
    return sorted(indices)
