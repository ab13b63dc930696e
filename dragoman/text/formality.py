"""Whether a text addresses its reader formally or informally, by the words of formality.toml. Knows
words; no model and no tokens."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FORMAL = "formal"
INFORMAL = "informal"
TONES = (FORMAL, INFORMAL)
_FILE = Path(__file__).with_name("formality.toml")
# A word, or what ends a sentence: a sentence begins behind that, and within quotation marks.
_PARTS = re.compile(r"[^\W\d_]+|[.!?:;…\"„“«»‹›(\[]")


@dataclass(frozen=True)
class Words:
    """The words of one language that show one form."""

    anywhere: frozenset[str] = frozenset()
    inside: frozenset[str] = frozenset()
    opening: frozenset[str] = frozenset()
    phrases: frozenset[tuple[str, ...]] = frozenset()

    def occur(self, words: list[tuple[str, bool]]) -> bool:
        """Whether one of them stands among these words, each with whether it begins a
        sentence."""
        before = ""
        for word, begins in words:
            lower = word.lower()
            if lower in self.anywhere or (begins and lower in self.opening):
                return True
            if not begins and (word in self.inside or (before, lower) in self.phrases):
                return True
            before = lower
        return False


@dataclass(frozen=True)
class Formality:
    """The rules of one language."""

    formal: Words
    informal: Words

    def tone_of(self, text: str) -> str:
        """Return formal or informal; nothing where the text shows neither or both."""
        words = _words(text)
        is_formal = self.formal.occur(words)
        is_informal = self.informal.occur(words)
        if is_formal == is_informal:
            return ""
        return FORMAL if is_formal else INFORMAL


@cache
def rules() -> dict[str, Formality]:
    """Return the rules of each language that has some, by its code."""
    tables = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {
        language: Formality(_read(table[FORMAL]), _read(table[INFORMAL]))
        for language, table in tables.items()
    }


def rules_for(language: str) -> Formality | None:
    """Return the rules of a language; de-AT has those of de."""
    return rules().get(language.replace("_", "-").split("-")[0].lower())


def _read(table: dict[str, str]) -> Words:
    lines = re.split(r"[|\n]", table.get("phrases", ""))
    phrases = [tuple(phrase.split()) for phrase in lines if phrase.strip()]
    return Words(
        anywhere=frozenset(table.get("anywhere", "").split()),
        inside=frozenset(table.get("inside", "").split()),
        opening=frozenset(table.get("opening", "").split()),
        phrases=frozenset(phrases),
    )


def _words(text: str) -> list[tuple[str, bool]]:
    """Each word, and whether it begins a sentence."""
    words = []
    begins = True
    for match in _PARTS.finditer(text):
        part = match[0]
        if part[0].isalpha():
            words.append((part, begins))
            begins = False
        else:
            begins = True
    return words
