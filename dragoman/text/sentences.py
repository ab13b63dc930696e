"""A text to its sentences and the white space between them. Knows strings and, from
abbreviations.toml, some words of some languages; no model.

A line break always ends a sentence. Elsewhere a sentence ends where a mark such as a full stop is
followed by what can begin one. Where that is not certain, the text stays whole: a translator copes
with two sentences at once better than with halves of one. Time is linear in the length of the text.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from dragoman.text.scripts import UNSPACED

_PARTS = Path(__file__).with_name("abbreviations.toml")
# Marks that end sentences. The Greek question mark is a semicolon, and ends them in Greek only.
_FULL = "!?؟۔।॥።፧။។៕։‼⁇⁈⁉"
_GREEK = ";\u037e"
_WIDE = "。！？｡"  # no white space follows these
_CLOSERS = "\"'”’“»›«‹)\\]}」』】）》〉"
_OPENERS = "\"'“”„‚‘’«»‹›(\\[{¿¡—–\\-「『（《〈"
_ENDS = re.compile(
    rf"([.…{_FULL}{_WIDE}{_GREEK}]++)((?:[{_CLOSERS}]|[ \u00a0\u202f]»(?=[\s,.]|$))*+)"
)
_NEXT = re.compile(rf"\s*+((?:[{_OPENERS}]\s?){{0,4}})(\S{{0,24}})")
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_DUTCH_CLITIC = re.compile(r"['’`][nst] [^\W\d_]")
_DOTTED = re.compile(r"[^\W\d_]{1,3}(?:[.-]{1,2}[^\W\d_]{1,3})+")
_ROMAN = re.compile(r"[IVXLC]+")
_NUMBER = re.compile(r"\d[\d.,]*")
_VOWELS = frozenset("aeiouyæøœıаеиоуыэюяіїєαεηιουω")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_IN_WIDE_QUOTES = re.compile("「[^「」]{0,500}」|『[^『』]{0,500}』|（[^（）]{0,500}）")
_WITHIN = 300  # characters within which an open bracket is expected to be closed
_BEFORE = 24  # characters of a word before a full stop that could be an abbreviation
_FIRST_YEAR = 1000


@dataclass(frozen=True)
class _Language:
    """What is known of a language; the words are case-folded."""

    code: str
    titles: frozenset[str]
    numbers: frozenset[str]
    finals: frozenset[str]
    starters: frozenset[str]
    ordinals: bool


@dataclass(frozen=True)
class _Place:
    """A mark that might end a sentence, and what stands around it."""

    marks: str
    closers: str
    word: str  # before the marks; empty where it is too long to be an abbreviation
    before: str  # the word before that one
    following: str  # the beginning of what follows, without quotes and the like
    is_first: bool  # whether the word is the first of its sentence
    has_capitals: bool  # whether the line has any, so that sentences begin with them
    is_clitic: bool  # whether a word such as the Dutch 's follows, before the first capital letter


def split(text: str, language: str) -> list[tuple[str, str]]:
    """Return (sentence, white space after it) in order; all strings joined are `text`.

    Only a first sentence may be empty, where the text begins with white space.
    """
    spans = list(_spans(text, language))
    starts = [start for start, _ in spans]
    starts.append(len(text))
    sentences = []
    first = starts[0]
    if first:
        sentences.append(("", text[:first]))
    for (start, end), next_start in zip(spans, starts[1:], strict=True):
        sentence = text[start:end]
        space = text[end:next_start]
        sentences.append((sentence, space))
    return sentences


def _spans(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence begins and ends, without the white space around it."""
    code, *_ = re.split("[-_]", language.lower())
    known = _known(code)
    position = 0
    for line in text.splitlines(keepends=True):
        start = 0
        for end in [*_line_ends(line, known), len(line)]:
            piece = line[start:end]
            sentence = piece.strip()
            if sentence:
                space = len(piece) - len(piece.lstrip())
                first = position + start + space
                yield first, first + len(sentence)
            start = end
        position += len(line)


def _line_ends(line: str, language: _Language) -> Iterator[int]:
    """Yield where sentences of a line end, except the last."""
    has_danda = "।" in line
    has_capitals = line != line.lower()
    quoted = [match.span() for match in _IN_WIDE_QUOTES.finditer(line)]
    quoted.reverse()
    start = 0
    depth = 0  # of brackets, at `counted`
    counted = 0
    for match in _ENDS.finditer(line):
        mark, end = match.span()
        while quoted and quoted[-1][1] <= mark:
            quoted.pop()
        if quoted and quoted[-1][0] <= mark:
            continue
        if has_danda and match[1] == ".":
            continue
        depth += line.count("(", counted, end)
        depth -= line.count(")", counted, end)
        counted = end
        if depth > 0 and line.find(")", end, end + _WITHIN) >= 0:
            continue
        place = _place(line, match, start, has_capitals)
        ends = _ends_here(place, language) if place else _ends_unspaced(line, match)
        if ends:
            yield end
            start = end
            depth = 0


def _place(line: str, match: re.Match[str], start: int, has_capitals: bool) -> _Place | None:
    """What stands around marks, in a sentence that began at `start`; None if no white space
    follows."""
    mark, end = match.span()
    space = line[end : end + 1]
    if not space.isspace():
        return None
    after = _NEXT.match(line, end)
    assert after is not None
    low = max(start, mark - 2 * _BEFORE)
    head = line[low:mark].split()
    is_glued = mark > low and not line[mark - 1].isspace()
    word = head.pop() if head and is_glued else ""
    clitic = _DUTCH_CLITIC.match(line, end + 1)
    return _Place(
        marks=match[1],
        closers=match[2],
        word=word if len(word) < _BEFORE else "",
        before=head[-1] if head else "",
        following=after[2],
        is_first=low == start and not head,
        has_capitals=has_capitals,
        is_clitic=clitic is not None,
    )


def _ends_unspaced(line: str, match: re.Match[str]) -> bool:
    """Whether marks that no white space follows end a sentence, as in Chinese and Japanese."""
    start, end = match.span()
    before = line[start - 1 : start]
    following = line[end : end + 1]
    if not following:
        return False
    marks, closers = match.groups()
    last_mark = marks[-1]
    is_wide = last_mark in _WIDE
    if closers or not (is_wide or last_mark in "!?"):
        return False
    if not is_wide and not (_UNSPACED.match(before) and _UNSPACED.match(following)):
        return False
    # Two Japanese particles that do not begin a sentence, unless a comma makes one a conjunction.
    is_particle = following in "がを"
    comma = line[end + 1 : end + 2]
    return not is_particle or comma == "、"


def _ends_here(place: _Place, language: _Language) -> bool:
    """Whether marks that white space follows end a sentence."""
    mark = place.marks[-1]
    if mark in _GREEK:
        return language.code == "el" and _begins(place)
    if mark in _WIDE:
        return True
    if not _begins(place):
        return False
    if place.marks == ".":
        return _full_stop_ends(place, language)
    if mark in ".…" and not set(place.marks) & set(_FULL):
        # Three points may be a pause; only a capital letter shows that a sentence begins.
        return place.following[:1].isupper()
    return True


def _begins(place: _Place) -> bool:
    """Whether what follows can begin a sentence."""
    if place.is_clitic:
        return True
    first = place.following[:1]
    if first.islower():
        is_name = place.following[1:2].isupper()  # such as iPad
        return is_name or not place.has_capitals
    return first.isalnum()


def _full_stop_ends(place: _Place, language: _Language) -> bool:
    """Whether a single full stop before something that can begin a sentence ends one."""
    word = place.word.lstrip(_OPENERS).rstrip(_CLOSERS)
    is_starter = _is_starter(place, language)
    if place.closers or not word:
        return True
    if _NUMBER.fullmatch(word):
        return _number_ends(word, place, language, is_starter)
    # After an elision: "l'art. 5".
    *_, bare = re.split("['’]", word.casefold())
    if bare in language.titles:
        return False
    is_street = language.code == "de" and bare.endswith("str")
    is_dotted = bool(_DOTTED.fullmatch(word))
    if place.following[0].isdigit():
        is_letter = len(bare) == 1
        return not (bare in language.numbers or is_street or is_dotted or is_letter)
    if bare in language.finals or is_street or is_dotted:
        return is_starter
    if len(word) == 1 and word.isalpha():
        is_unit = word.islower() and place.before[-1:].isdigit()
        return not place.is_first and (is_unit or is_starter)
    if language.ordinals and _ROMAN.fullmatch(word):
        return is_starter
    if _looks_short(word):
        return is_starter
    return True


def _number_ends(word: str, place: _Place, language: _Language, is_starter: bool) -> bool:
    """Whether "19." ends a sentence: not where it is an ordinal number or begins a list."""
    if place.is_first:
        return False
    is_year = len(word) == 4 and word.isdigit() and int(word) >= _FIRST_YEAR
    return not language.ordinals or is_year or is_starter or place.following[0].isdigit()


def _looks_short(word: str) -> bool:
    """Whether a word has no vowel and is not written in capitals, as many abbreviations."""
    if len(word) > 4 or not word.isalpha() or word == word.upper():
        return False
    without_accents = unicodedata.normalize("NFD", word.casefold())
    return _VOWELS.isdisjoint(without_accents)


def _is_starter(place: _Place, language: _Language) -> bool:
    match = _WORD.match(place.following)
    if match is None:
        return False
    word = match[0].casefold()
    return word.replace("’", "'") in language.starters


@lru_cache(maxsize=64)
def _known(code: str) -> _Language:
    tables = _tables()
    common = tables["common"]
    own = tables.get(code, {}) if code not in ("common", "others") else {}

    def words(kind: str) -> frozenset[str]:
        of_all = common.get(kind, "")
        of_this = own.get(kind, "")
        both = f"{of_all} {of_this}"
        return frozenset(both.casefold().split())

    with_ordinals = tables["others"]["ordinals"].split()
    return _Language(
        code=code,
        titles=words("titles"),
        numbers=words("numbers"),
        finals=words("finals"),
        starters=words("starters"),
        ordinals=own.get("ordinals", code in with_ordinals),
    )


@lru_cache(maxsize=1)
def _tables() -> dict[str, Any]:
    return tomllib.loads(_PARTS.read_text(encoding="utf-8"))
