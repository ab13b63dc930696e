"""Reads the tables of the lexicon into words with all their forms. Knows inflection; knows no
sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from demo import lexicon

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
ME, YOU, HE, THEY = range(4)  # persons: "we" and "they" share every verb form in both languages
Forms = tuple[str, ...]  # a form for each case, or for each person


@dataclass(frozen=True, eq=False)
class Noun:
    english: tuple[str, str]  # singular and plural; no plural for what is not counted
    german: tuple[Forms, Forms]
    gender: str
    tags: Forms  # the first is its kind


@dataclass(frozen=True, eq=False)
class Adjective:
    english: str
    comparative: str
    german: str
    stem: str
    german_comparative: str
    kinds: Forms


@dataclass(frozen=True, eq=False)
class Determiner:
    english: tuple[str, str]
    definite: bool
    german: dict[
        str, tuple[tuple[str, str], ...]
    ]  # gender -> article and adjective ending in each case


@dataclass(frozen=True, eq=False)
class Verb:
    english: Forms  # base, he, past and participle, each with its particle
    prefix: str  # the part that a German verb leaves at the end
    infinitive: str  # without the prefix, like the present
    present: Forms
    participle: str  # empty for a state, which is told in the present
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
    words = {gender: [stem + ending for ending in _cells(articles[gender])] for gender in "mfnp"}
    return Determiner(
        english,
        definite,
        {g: tuple(zip(words[g], _cells(endings[g]), strict=True)) for g in "mfnp"},
    )


def _noun(entry: str) -> Noun:
    english, article, singular, genitive, plural, *tags = entry.split()
    english, slash, irregular = english.partition("/")
    gender = {"der": "m", "die": "f", "das": "n"}[article]
    oblique = (
        genitive if gender == "m" and genitive.endswith("n") else singular
    )  # der Junge, den Jungen
    german = (
        (singular, oblique, oblique, genitive),
        (plural, plural, plural + "n" * (plural[-1] not in "ns"), plural),
    )
    return Noun((english, irregular if slash else english + "s"), german, gender, tuple(tags))


def _verb(row: str) -> Verb:
    english, german, use = row.split("=")
    base, third, past, participle, *particle = english.split()
    forms = tuple(" ".join([form, *particle]) for form in (base, third, past, participle))
    infinitive, he, *perfect = german.split()
    prefix, _, infinitive = infinitive.rpartition("|")
    present = _cells(lexicon.IRREGULAR.get(infinitive, "")) or _present(infinitive, he)
    auxiliary = "sein" if perfect[0] == "ist" else "haben"
    objects, _, subjects = use.partition("<")
    (first, *tags), by = objects.split(), tuple(subjects.split()) or ("person",)
    preposition, _, frame = first.rpartition("+")
    return Verb(
        forms,
        prefix,
        infinitive,
        present,
        perfect[-1].strip("-"),
        auxiliary,
        preposition,
        frame,
        tuple(tags),
        by,
    )


def _present(infinitive: str, he: str) -> Forms:
    stem = infinitive.removesuffix("n").removesuffix("e")
    return stem + "e", he[:-1] + ("t" if he[-2] in "sßz" else "st"), he, infinitive


def _entries(table: str) -> Iterator[str]:
    """One to a line, or parted by semicolons."""
    return (entry.strip() for line in table.strip().split("\n") for entry in line.split(";"))


def _cells(text: str) -> Forms:
    """A hyphen is an empty cell, an underscore a space inside one."""
    return tuple("" if cell == "-" else cell.replace("_", " ") for cell in text.split())


NOUNS = {noun.english[0]: noun for noun in map(_noun, _entries(lexicon.NOUNS))}
_ROWS = [_cells(entry) for entry in _entries(lexicon.ADJECTIVES)]
ADJECTIVES = {
    row[0]: Adjective(*row[:5], kinds=row[5:])  # type: ignore[misc, arg-type]
    for row in _ROWS
}
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
