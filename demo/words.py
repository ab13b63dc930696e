"""Reads the tables of the lexicon into words with all their forms. Knows inflection; knows no
sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from demo import lexicon

# Cases.
NOMINATIVE = 0
ACCUSATIVE = 1
DATIVE = 2
GENITIVE = 3
# Persons: "we" and "they" share every verb form in both languages.
ME = 0
YOU = 1
HE = 2
THEY = 3
Forms = tuple[str, ...]  # a form for each case, or for each person


@dataclass(frozen=True, eq=False)
class Noun:
    """A noun in all its forms."""

    english: tuple[str, str]  # singular and plural; no plural for what is not counted
    german: tuple[Forms, Forms]
    gender: str
    tags: Forms  # the first is its kind


@dataclass(frozen=True, eq=False)
class Adjective:
    """An adjective, its comparative and the stem to which endings are added."""

    english: str
    comparative: str
    german: str
    stem: str
    german_comparative: str
    kinds: Forms


@dataclass(frozen=True, eq=False)
class Determiner:
    """An article or another word before a noun, with the adjective endings after it."""

    english: tuple[str, str]
    definite: bool
    # Gender -> article and adjective ending in each case.
    german: dict[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb in all its forms, and what it goes with."""

    english: Forms  # base, he, past and participle, each with its particle
    prefix: str  # the part that a German verb leaves at the end
    infinitive: str  # without the prefix, like the present
    present: Forms
    participle: str  # empty for a state, which is always in the present
    auxiliary: str  # of the perfect: haben or sein
    preposition: str
    frame: str
    tags: Forms
    subjects: Forms


def determiner(
    definite: bool,
    english: tuple[str, str],
    stem: str,
    articles: dict[str, str],
    endings: dict[str, str],
) -> Determiner:
    """Build a determiner from the tables of its own endings and of the adjectives' after it."""
    german = {}
    for gender in "mfnp":
        forms = [stem + ending for ending in _cells(articles[gender])]
        german[gender] = tuple(zip(forms, _cells(endings[gender]), strict=True))
    return Determiner(english, definite, german)


def _noun(entry: str) -> Noun:
    english, article, singular, genitive, plural, *tags = entry.split()
    english, slash, irregular = english.partition("/")
    gender = {"der": "m", "die": "f", "das": "n"}[article]
    is_weak = gender == "m" and genitive.endswith("n")  # der Junge, den Jungen
    oblique = genitive if is_weak else singular
    dative_plural = plural if plural[-1] in "ns" else f"{plural}n"
    german = (
        (singular, oblique, oblique, genitive),
        (plural, plural, dative_plural, plural),
    )
    english_plural = irregular if slash else f"{english}s"
    return Noun((english, english_plural), german, gender, tuple(tags))


def _adjective(row: Forms) -> Adjective:
    english, comparative, german, stem, german_comparative, *kinds = row
    return Adjective(english, comparative, german, stem, german_comparative, tuple(kinds))


def _verb(row: str) -> Verb:
    english, german, use = row.split("=")
    base, third, past, participle, *particle = english.split()
    forms = tuple(" ".join([form, *particle]) for form in (base, third, past, participle))
    infinitive, he, *perfect = german.split()
    prefix, _, infinitive = infinitive.rpartition("|")
    present = _cells(lexicon.IRREGULAR.get(infinitive, "")) or _present(infinitive, he)
    auxiliary = "sein" if perfect[0] == "ist" else "haben"
    objects, _, subjects = use.partition("<")
    first, *tags = objects.split()
    preposition, _, frame = first.rpartition("+")
    return Verb(
        english=forms,
        prefix=prefix,
        infinitive=infinitive,
        present=present,
        participle=perfect[-1].strip("-"),
        auxiliary=auxiliary,
        preposition=preposition,
        frame=frame,
        tags=tuple(tags),
        subjects=tuple(subjects.split()) or ("person",),
    )


def _present(infinitive: str, he: str) -> Forms:
    stem = infinitive.removesuffix("n").removesuffix("e")
    ending = "t" if he[-2] in "sßz" else "st"
    return f"{stem}e", f"{he[:-1]}{ending}", he, infinitive


def _entries(table: str) -> Iterator[str]:
    """Yield entries that stand one to a line, or are separated by semicolons."""
    for line in table.strip().split("\n"):
        for entry in line.split(";"):
            yield entry.strip()


def _cells(text: str) -> Forms:
    """Split a row into cells: a hyphen is an empty cell, an underscore a space inside one."""
    return tuple("" if cell == "-" else cell.replace("_", " ") for cell in text.split())


NOUNS = {noun.english[0]: noun for noun in map(_noun, _entries(lexicon.NOUNS))}
_ROWS = [_cells(entry) for entry in _entries(lexicon.ADJECTIVES)]
ADJECTIVES = {row[0]: _adjective(row) for row in _ROWS}
VERBS = {
    f"{verb.prefix}{verb.infinitive} {verb.preposition}".strip(): verb
    for verb in map(_verb, _entries(lexicon.VERBS))
}
PRETERITE = {infinitive: _cells(forms) for infinitive, forms in lexicon.PRETERITE.items()}
_MODAL_ROWS = (row.split("=") for row in _entries(lexicon.MODALS))
MODALS = {name.strip(): (_cells(english), _cells(german)) for name, english, german in _MODAL_ROWS}
DETERMINERS = {
    name: determiner(definite, (singular, plural), stem, articles, endings)
    for definite, entries, articles, endings in lexicon.DETERMINERS
    for name, singular, plural, stem in map(_cells, _entries(entries))
}
