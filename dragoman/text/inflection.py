"""Whether a word of a text is a noun of a glossary in its plural or in one of its cases. Knows the
endings of some languages; in others a word is only itself, in any case of its letters.

Deliberately light: a word and its ending, no dictionary. "banking" is not "bank".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

_LEAST = 2  # letters that stay of a word


@dataclass(frozen=True)
class _Endings:
    """How a language forms plurals and cases."""

    added: str  # endings that are added to a noun
    dropped: str = ""  # last letters of a noun that give way to an ending
    changed: str = ""  # pairs such as y/ies: what a noun ends in, and in its plural

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """(what is taken away, what is put in its place)."""
        found = [("", ending) for ending in self.added.split()]
        for letter in self.dropped:
            found.append((letter, ""))
            found += [(letter, ending) for ending in self.added.split()]
        for pair in self.changed.split():
            old, new = pair.split("/")
            found.append((old, new))
        return found

    @cached_property
    def letters(self) -> str:
        """All letters of endings."""
        return "".join({letter for pair in self.pairs for letter in "".join(pair)})


_NORDIC = "en et er ar or erna arna orna ene erne ens ets ers s n e"
_LANGUAGES = {
    "en": _Endings("s es", changed="y/ies e/es"),
    "de": _Endings("e en er ern es s n ens"),
    "fr": _Endings("s x", changed="al/aux"),
    "es": _Endings("s es", changed="z/ces e/es"),
    "pt": _Endings("s es", changed="e/es ão/ões ão/ães m/ns l/is"),
    "it": _Endings("a e i o", "aeio", "ca/che ga/ghe co/chi go/ghi"),
    "nl": _Endings("en s n"),
    "sv": _Endings(_NORDIC, "ae"),
    "da": _Endings(_NORDIC, "e"),
    "no": _Endings(_NORDIC, "e"),
    "pl": _Endings("a e i o u y ą ę ie em iem om ów owi ami iami ach", "aeiou"),
    "cs": _Endings("a e ě i í o u ů y em ou ům ech ách ami", "aeo"),
    "ru": _Endings("а я о е ы и у ю ь ой ей ом ем ов ев ам ям ах ях ами ями", "аяоеьий"),
    "uk": _Endings("а я о е и і у ю ь ою ею ом ем ів їв ам ям ах ях ами ями ові", "аяоеь"),
}
_SAME = {"nb": "no", "nn": "no"}
# English words that end in s without being the plural of what is left.
_NO_PLURALS = frozenset(["customs", "goods", "lens", "means", "news", "series", "species"])
_UMLAUTS = str.maketrans("äöü", "aou")
_WITH_UMLAUT = ("e", "er", "ern")  # German plurals whose vowel may change: Häuser, Verträge


def language_of(code: str) -> str:
    """Return the language of a code such as `de-AT`."""
    language = re.split("[-_]", code.lower())[0]
    return _SAME.get(language, language)


def is_form(word: str, noun: str, language: str) -> bool:
    """Whether a word is the noun or one of its forms, in any case of the letters."""
    word = word.casefold()
    noun = noun.casefold()
    if word == noun:
        return True
    endings = _LANGUAGES.get(language)
    if endings is None or word in _NO_PLURALS:
        return False
    for old, new in endings.pairs:
        if not noun.endswith(old) or len(noun) - len(old) < _LEAST:
            continue
        form = noun.removesuffix(old) + new
        if word == form:
            return True
        if language == "de" and new in _WITH_UMLAUT and word.translate(_UMLAUTS) == form:
            return True
    return False


@lru_cache(maxsize=100_000)
def key_of(word: str, language: str) -> str:
    """Return what all forms of a noun have in common; other words may have it too."""
    bare = word.casefold()
    endings = _LANGUAGES.get(language)
    if endings is None:
        return bare
    if language == "de":
        bare = bare.translate(_UMLAUTS)
    return bare[:_LEAST] + bare[_LEAST:].rstrip(endings.letters)
