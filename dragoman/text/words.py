"""Words: what they are in a text of any script, and which of the source belong to which of the
target. Knows strings, pieces and attention as an array; no model."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from dragoman.text.scripts import COMBINING, UNSPACED

if TYPE_CHECKING:
    import numpy

# Pairs of (source word, target word).
Alignment = tuple[tuple[int, int], ...]

_LETTER = rf"[^\W_{UNSPACED}]"
_WORD = rf"{_LETTER}+(?:[{COMBINING}]+{_LETTER}*)*"
# The smallest parts of a text that have a meaning: a word, a character of a script without spaces,
# any other mark by itself.
ATOM = re.compile(rf"{_WORD}|\S")

# A word between spaces without the marks around it (3.5, don't, e-mail), a character of a script
# without spaces, any other mark by itself.
_INNER = rf"[^\s{UNSPACED}]"
_LETTER_OR_DIGIT = rf"[^\W{UNSPACED}]"
_SEPARATE = re.compile(rf"{_LETTER_OR_DIGIT}(?:{_INNER}*{_LETTER_OR_DIGIT})?[{COMBINING}]*|\S")


def separate_words(text: str) -> list[tuple[int, int]]:
    """Return where each word and each mark of a text begins and ends."""
    return [match.span() for match in _SEPARATE.finditer(text)]


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
) -> Alignment:
    """Return the sorted alignment of a sentence.

    The attention is (target + 1, source + 1), with the end last on both sides. Each target word is
    linked to the source word that its pieces look at most, taken together. Each source word is also
    linked to the target word that looks at it most, if that one looks at it at least half as much
    as at its own first choice.
    """
    import numpy  # here, since a glossary also needs words, and `--help` needs no numpy

    assert attention.shape == (len(target_pieces) + 1, len(source_pieces) + 1)
    if not source_pieces or not target_pieces:
        return ()
    source = numpy.array(words_of(source_pieces))
    target = numpy.array(words_of(target_pieces))
    source_count = source.max() + 1
    target_count = target.max() + 1
    mass = numpy.zeros((target_count, source_count))
    cells = (target[:, None], source[None])
    numpy.add.at(mass, cells, attention[:-1, :-1])
    links = set()
    for target_word in range(target_count):
        source_word = int(mass[target_word].argmax())
        links.add((source_word, target_word))
    for source_word in range(source_count):
        target_word = int(mass[:, source_word].argmax())
        first_choice = mass[target_word].max()
        if mass[target_word, source_word] >= 0.5 * first_choice:
            links.add((source_word, target_word))
    return tuple(sorted(links))


def pharaoh(alignment: Sequence[tuple[int, int]]) -> str:
    """Write an alignment as "0-0 1-2": source word, target word."""
    links = [f"{source}-{target}" for source, target in alignment]
    return " ".join(links)


def indices_of(text: str, pieces: Sequence[str], number: int | None = None) -> list[int]:
    """Return the indices of the pieces that `text` is written in, wherever it occurs, or in its
    occurrence of that number, counted from 0, if there are so many.

    The case of the letters does not matter.
    """
    if not text:
        return []
    lengths = [len(piece) for piece in pieces]
    bounds = list(accumulate(lengths, initial=0))
    whole = "".join(pieces)
    whole = whole.replace("▁", " ").lower()
    matches = list(re.finditer(re.escape(text.lower()), whole))
    if number is not None and number < len(matches):
        matches = [matches[number]]
    indices: set[int] = set()
    for match in matches:
        first = bisect_right(bounds, match.start()) - 1
        end = bisect_left(bounds, match.end())
        # Lower case may be longer than upper case, so a match may end behind the last piece.
        end = min(end, len(pieces))
        indices.update(range(first, end))
    return sorted(indices)
