"""Whether the characters of a translation are broken in ways that its source's are not: lost bytes,
text decoded twice, what tokenisers leave behind, torn words. Knows no language.

A text of disordered letters looks like a word of some language, and is not found.
"""

from __future__ import annotations

import re
import unicodedata

from dragoman.text.mojibake import count_likely_mojibake

# Each is a sign where the target has it and the source has not, or less of it.
_BROKEN = (
    # Bytes that spell no character, and control characters.
    re.compile("\ufffd|[\x00-\x08\x0e-\x1f\x7f-\x9f]"),
    # What joins and replaces pieces in tokenisers.
    re.compile(r"[▁⁇]|@@(?:\s|$)|(?:^|\s)##\w|<(?:unk|s|/s|pad|0x[0-9A-F]{2})>"),
    # Six letters in a row that stand alone.
    re.compile(r"(?<!\S)(?:[A-Za-zÀ-ɏͰ-ӿ]\s){6}"),
)
_LATIN_AND_OTHER = re.compile(r"[A-Za-zÀ-ɏ][Ͱ-ӿ]|[Ͱ-ӿ][A-Za-zÀ-ɏ]")
_FEW_MIXED = 1  # words of two scripts that may be meant: a unit, a symbol
_ODD = frozenset("#*^|{}~\\_@=+<>$%&")
_MOST_ODD = 0.12  # share of the characters
_FEWEST_ODD = 6


def is_garbled(source: str, target: str) -> bool:
    """Whether the target's characters are broken and the source's are not, or less so."""
    for pattern in _BROKEN:
        if _count(pattern, target) > _count(pattern, source):
            return True
    if count_likely_mojibake(target) > count_likely_mojibake(source):
        return True
    mixed = _count(_LATIN_AND_OTHER, target)
    if mixed > _FEW_MIXED + _count(_LATIN_AND_OTHER, source):
        return True
    odd = _odd(target)
    if odd < _FEWEST_ODD or odd < _MOST_ODD * len(target):
        return False
    return odd * max(1, len(source)) > 2 * _odd(source) * len(target)


def _count(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))


def _odd(text: str) -> int:
    """How many characters are neither letters, digits, white space nor usual punctuation."""
    return sum(char in _ODD or unicodedata.category(char) in ("Sk", "Co", "Cn") for char in text)
