"""German that names several genders in one word, read as a dictionary has it: "Lehrer*innen",
"Lehrer_innen", "Lehrer:innen", "Lehrer/-innen" and "LehrerInnen" are "Lehrer".

Models learn from books and debates, which do not write so, and take the mark for the end of a word.
Knows strings.
"""

from __future__ import annotations

import re

_MARK = r"(?:[*:_·]|/-?)"
# Of words like these, one is called Kollege and several are called Kollegen.
_WITH_E = ("kolleg", "kund", "expert", "log", "genoss", "zeug", "gatt", "nachkomm", "insass")
# What has an umlaut before "innen" and none in the word for one.
_UMLAUTS = {"Ärzt": "Arzt", "ärzt": "arzt", "wält": "walt"}
# How people are called, so that "LinkedIn" and "Achtung:in" stay.
_PEOPLE = ("er", "ent", "ant", "ist", "or", "eur", "är", "nom", "graf", "soph", "ärzt", "wält")
_STEM = r"(?<![\w*])([A-ZÄÖÜ][^\W\d_]{1,40}[a-zäöüß])"
_SEVERAL = re.compile(rf"{_STEM}(?:{_MARK}innen|Innen)(?!\w)")
_ONE = re.compile(rf"{_STEM}(?:{_MARK}in|In)(?!\w)")
# jede*r, eine*n, ein*e
_ENDING = re.compile(r"(?<!\w)([^\W\d_]{2,10}e)[*:_·]([rnms])(?!\w)")
_NO_ENDING = re.compile(r"(?<!\w)((?:k|m|d|s)?ein|ihr|unser|euer)[*:_·]e(?!\w)", re.IGNORECASE)
# der*die, die*den
_ARTICLES = re.compile(r"(?<!\w)(?:die[*:_·/](de[rnm])|(de[rnm])[*:_·/]die|(des)[*:_·/]der)(?!\w)")


def without_gender_forms(text: str) -> str:
    """Return the text with such words as dictionaries have them."""
    text = _SEVERAL.sub(lambda found: _several(found[1]), text)
    text = _ONE.sub(_one, text)
    text = _ENDING.sub(r"\1\2", text)
    text = _NO_ENDING.sub(r"\1", text)
    return _ARTICLES.sub(lambda found: next(filter(None, found.groups())), text)


def _several(stem: str) -> str:
    """The word for several, from the stem that stands before the mark."""
    if stem.endswith(("er", "el")):
        return stem
    if stem.endswith((*_UMLAUTS, "eur", "är")):
        return f"{stem}e"
    return f"{stem}en"


def _one(found: re.Match[str]) -> str:
    """The word for one, if it is one for people."""
    stem = found[1]
    if stem.lower().endswith(_WITH_E):
        return f"{stem}e"
    if not stem.lower().endswith(_PEOPLE):
        return found[0]
    for plural, singular in _UMLAUTS.items():
        if stem.endswith(plural):
            return stem.removesuffix(plural) + singular
    return stem
