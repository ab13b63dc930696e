"""Characters that are broken: UTF-8 that was read as windows-1252 or Latin-1 ("fÃ¼r" for "für"),
lost bytes, what tokenisers leave behind, torn words. Knows strings; no language.

A string by itself is called broken only where no language writes what it has. Where there is
another string to compare it with, less is enough: the source of a translation has as much of it if
it is meant. A text of disordered letters looks like a word of some language, and is not found.

All patterns are bounded, so that the time is linear in the length of a line.
"""

from __future__ import annotations

import re
import unicodedata

# What the bytes 80 to BF, which continue a character of UTF-8, are in windows-1252 or Latin-1.
_SYMBOLS = "\u00a1-\u00aa\u00ac-\u00b3\u00b5\u00b6\u00b8-\u00ba\u00bc-\u00bf"  # no quotes, no dots
_CONTROLS = "\u0080-\u009f"
_LETTERS = "€ƒ†‡ˆ‰Š‹ŒŽ˜™š›œžŸ"
_PUNCTUATION = "\u00a0\u00ab\u00b4\u00b7\u00bb‚„…‘’“”•–—"
_ANY = f"{_CONTROLS}{_SYMBOLS}{_LETTERS}{_PUNCTUATION}"
_SURE = f"{_CONTROLS}{_SYMBOLS}{_LETTERS}"
# What no language writes: each alternative is a character of UTF-8 in the guise of two or three.
_MOJIBAKE = re.compile(
    "|".join(
        (
            "\ufffd",  # a character was lost
            f"[Â-ß][{_CONTROLS}]",
            f"[à-ï][{_CONTROLS}][{_ANY}]|[à-ï][{_ANY}][{_CONTROLS}]",
            f"Ã[{_SURE}\u00a0\u00ab\u00b4\u00b7\u00bb]",
            f"(?<![A-ZÀ-Þ])Ã[{_PUNCTUATION}](?=[a-z])",  # Ã–sterreich, but not AMANHÃ”
            "Â[\u00a0-\u00bf]",
            f"â€[{_ANY}]|â‚¬|â„¢|ï»¿|ï¼[{_ANY}]",
            f"[Ä-Ë][{_SYMBOLS}{_LETTERS}](?=[a-zß-ÿÃÄ-Ë])",
            f"(?:[ÎÏÐÑØÙÚÛ×][{_ANY}]){{3}}",  # Greek, Cyrillic, Arabic, Hebrew
            f"(?:[à-ï][{_ANY}][{_ANY}]){{2}}",  # Indic scripts, Chinese, Japanese, Korean
            f"ðŸ[{_ANY}][{_ANY}]",  # emoji
        )
    )
)
# What every alternative but the first begins with; a quick look that clears most lines.
_SUSPECT = re.compile(f"[Â-ð][{_ANY}]|\ufffd")
# The commonest in Latin-1, a single character being enough: Ã¼, Â°, â€œ, Ð¼.
_LIKELY = re.compile("[ÃÂÐÑ][\x80-\xbf]|â[€\x80-\x9f]")
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


def is_mojibake(text: str) -> bool:
    """Whether a text shows bytes of UTF-8 in the guise of other characters, or lost some.

    It has to be asked before the text is normalised, which removes control characters.
    """
    if text.isascii() or _SUSPECT.search(text) is None:
        return False
    return _MOJIBAKE.search(text) is not None


def is_garbled(source: str, target: str) -> bool:
    """Whether the target's characters are broken and the source's are not, or less so."""
    for pattern in _BROKEN:
        if _count(pattern, target) > _count(pattern, source):
            return True
    if _count_likely_mojibake(target) > _count_likely_mojibake(source):
        return True
    mixed = _count(_LATIN_AND_OTHER, target)
    if mixed > _FEW_MIXED + _count(_LATIN_AND_OTHER, source):
        return True
    odd = _odd(target)
    if odd < _FEWEST_ODD or odd < _MOST_ODD * len(target):
        return False
    return odd * max(1, len(source)) > 2 * _odd(source) * len(target)


def _count_likely_mojibake(text: str) -> int:
    """Return how many characters look like bytes of UTF-8, to be compared with another text."""
    if text.isascii():
        return 0
    return len(_LIKELY.findall(text))


def _count(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))


def _odd(text: str) -> int:
    """How many characters are neither letters, digits, white space nor usual punctuation."""
    return sum(char in _ODD or unicodedata.category(char) in ("Sk", "Co", "Cn") for char in text)
