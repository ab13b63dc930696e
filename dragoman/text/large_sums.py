"""Sums of millions and more as another language says them: $2.5 billion and 2,5 Milliarden Dollar.

Knows words of languages; what a number looks like is the business of figures.
"""

from __future__ import annotations

# What stands behind a number, in small letters, as a power of ten.
_POWERS = {
    "en": {
        **dict.fromkeys(("million", "mn", "m"), 6),
        **dict.fromkeys(("billion", "bn", "b"), 9),
        **dict.fromkeys(("trillion", "tn"), 12),
    },
    "de": {
        **dict.fromkeys(("million", "millionen", "mio."), 6),
        **dict.fromkeys(("milliarde", "milliarden", "mrd."), 9),
        **dict.fromkeys(("billion", "billionen", "bio."), 12),
    },
}
# How it is written out, of one and of several.
_WORDS = {
    "en": {6: ("million", "million"), 9: ("billion", "billion"), 12: ("trillion", "trillion")},
    "de": {
        6: ("Million", "Millionen"),
        9: ("Milliarde", "Milliarden"),
        12: ("Billion", "Billionen"),
    },
}
_CURRENCIES = {
    "de": {"$": "Dollar", "US$": "US-Dollar", "€": "Euro", "£": "Pfund", "¥": "Yen"},
}
# Of all languages, the longest first.
SCALES = sorted({word for words in _POWERS.values() for word in words}, key=len, reverse=True)


def in_words(
    number: str, scale: str, sign: str, languages: tuple[str, str], sign_first: bool
) -> str | None:
    """Return a sum in the second language: `number` is written as it is there, `scale` is the word
    of the first. None where the word is not known there, or the languages are not."""
    source, target = languages
    power = _POWERS.get(source, {}).get(scale.lower())
    if power is None or target not in _WORDS:
        return None
    one, several = _WORDS[target][power]
    word = one if number == "1" else several
    if sign_first:
        return f"{sign}{number} {word}"
    currency = _CURRENCIES.get(target, {}).get(sign, sign)
    return f"{number} {word} {currency}"
