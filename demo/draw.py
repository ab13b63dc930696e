"""Draws words that go together, and phrases and clauses of them: nobody drinks a table. Knows no
kinds of sentence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import TypeVar

from demo import lexicon, words
from demo.dates import COMING, HOURS, PAST, USUAL, number
from demo.syntax import EMPTY, Clause, Pair, Phrase, Slots, phrase, prepositional, pronoun
from demo.words import (
    ACCUSATIVE,
    DATIVE,
    NOMINATIVE,
    VERBS,
    Adjective,
    Determiner,
    Forms,
    Noun,
    Verb,
)

T = TypeVar("T")
SPECIFIC = (
    "the",
    "the",
    "the",
    "the",
    "the",
    "this",
    "my",
    "your",
    "his",
    "her",
    "our",
    "their",
    "Anna's",
    "Peter's",
)
ROLES = {  # determiners of what is singular, plural and uncountable
    "specific": (SPECIFIC, SPECIFIC, SPECIFIC),
    "subject": (
        (*SPECIFIC, "a", "a", "every"),
        (*SPECIFIC, "some", "many", "all", *("number",) * 3),
        SPECIFIC,
    ),
    "object": (
        (*SPECIFIC, *("a",) * 5, "every"),
        (*SPECIFIC, "bare", "bare", "some", "many", "all", *("number",) * 4),
        (*SPECIFIC, *("bare",) * 8),
    ),
    "negated": (("not a",), ("not any",), ("not any",)),
    "asked": (("which",), ("which", "how many"), ("which",)),
}
IN = (
    ("in", "in"),
    ("in", "in"),
    ("in front of", "vor"),
    ("behind", "hinter"),
    ("next to", "neben"),
)
ON = (("on", "auf"), ("on", "auf"), ("under", "unter"), ("behind", "hinter"), ("next to", "neben"))
ADVERBS = (("often", "oft"), ("always", "immer"), ("sometimes", "manchmal"), ("never", "nie"))
ADVERBS_PERFECT = (("already", "schon"), ("never", "nie"), ("often", "oft"))
COLOURS = tuple(words.ADJECTIVES[colour] for colour in ("red", "blue", "green", "white", "black"))
PRONOUNS, NAMES = tuple(lexicon.PRONOUNS), tuple(Phrase(name, name) for name in lexicon.NAMES)
OTHERS = {
    "I": ("you", "he", "she", "they"),
    "we": ("you", "he", "she", "they"),
    "you": ("I", "he", "she", "we", "they"),
}
PASTS = ("past", "past", "wanted to", "had to", "past passive")
TENSES = (
    *("present",) * 5,
    *("perfect",) * 3,
    *PASTS[:-1],
    "future",
    "can",
    "must",
    "should",
    "want to",
    "have to",
)
FRAMES = {
    verb.frame: tuple(v for v in VERBS.values() if v.frame == verb.frame) for verb in VERBS.values()
}
DEEDS = tuple(
    v for frame in ("acc", "dat", "give", "put", "in", "to") for v in FRAMES[frame] if v.participle
)
STATES = tuple(v for v in VERBS.values() if not v.participle and v.frame != "that")
ALL = (*DEEDS, *FRAMES["none"], *STATES, *FRAMES["be"] * 5, *FRAMES["price"])


class Dice:
    """Random choices that every Python version makes alike, for only `random()` is promised to
    stay as it is."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def chance(self, share: float) -> bool:
        return self._random() < share

    def between(self, low: int, high: int) -> int:
        return low + int(self._random() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self._random() * len(items))]


@cache
def tagged(tags: Forms) -> tuple[Noun, ...]:
    return tuple(noun for noun in words.NOUNS.values() if not set(tags).isdisjoint(noun.tags))


@cache
def adjectives(kind: str) -> tuple[Adjective, ...]:
    return tuple(adjective for adjective in words.ADJECTIVES.values() if kind in adjective.kinds)


@cache
def counted(n: int) -> Determiner:
    english, german = number(n)
    return words.determiner(False, ("", english), german, lexicon.UNCHANGED, lexicon.STRONG)


def noun_phrase(
    dice: Dice, tags: Forms, role: str, case: int, unlike: str = "", described: float = 0.4
) -> Phrase:
    """A phrase of a noun with one of the tags that does not stand in the phrase `unlike` already."""
    noun = dice.pick(tagged(tags))
    while unlike and noun.english[0] in unlike:
        noun = dice.pick(tagged(tags))
    countable = bool(noun.english[1])
    plural = countable and "single" not in noun.tags and dice.chance(0.3)
    name = dice.pick(ROLES[role][plural if countable else 2])
    if "alone" in noun.tags and name in SPECIFIC:
        name = "the"
    chosen = (
        counted(dice.between(2, 99 if dice.chance(0.6) else 12))
        if name == "number"
        else words.DETERMINERS[name]
    )
    described_by: tuple[Adjective, ...] = ()
    if dice.chance(described):
        described_by = (dice.pick(adjectives(noun.tags[0])),)
        if (
            described_by[0] not in COLOURS
            and noun.tags[0] in ("thing", "vehicle", "furniture")
            and dice.chance(0.2)
        ):
            described_by += (dice.pick(COLOURS),)
    return phrase(noun, chosen, described_by, plural, case)


def subject(dice: Dice, verb: Verb, role: str = "subject") -> Phrase:
    if "person" in verb.subjects and dice.chance(0.45):
        return dice.pick(NAMES) if dice.chance(0.2) else pronoun(dice.pick(PRONOUNS), NOMINATIVE)
    found = noun_phrase(dice, verb.subjects, role, NOMINATIVE)
    if found.english.startswith("the ") and dice.chance(0.1):
        owner = noun_phrase(dice, ("person",), "specific", words.GENITIVE, found.english)
        return found._replace(
            english=f"{found.english} of {owner.english}", german=f"{found.german} {owner.german}"
        )
    if found.kind == "person" and found.definite and dice.chance(0.07):
        friend = dice.pick(NAMES)
        return Phrase(
            f"{friend.english} and {found.english}",
            f"{friend.german} und {found.german}",
            words.THEY,
        )
    return found


def acted_on(dice: Dice, verb: Verb, doer: Phrase, role: str) -> Phrase:
    """What the verb governs: where it may be a person, also a pronoun or a name."""
    case = DATIVE if verb.frame == "dat" else ACCUSATIVE
    if "person" in verb.tags and dice.chance(0.35):
        if verb.english[0] == "pick up" or dice.chance(
            0.3
        ):  # "picks him up" is not in this grammar
            return dice.pick([name for name in NAMES if name.english not in doer.english])
        return pronoun(dice.pick(OTHERS.get(doer.english, PRONOUNS)), case)
    return noun_phrase(dice, verb.tags, role, case, doer.english)


def slots(dice: Dice, verb: Verb, doer: Phrase, negated: bool = False) -> Slots:
    """All that the verb asks for. Only a direct object can take "kein"; anything else is
    definite beside a "nicht"."""
    plain = "specific" if negated else "object"
    direct = "negated" if negated and dice.chance(0.5) else plain
    if verb.frame in ("acc", "dat"):
        return governed(
            verb,
            acted_on(
                dice, verb, doer, direct if verb.frame == "acc" and not verb.preposition else plain
            ),
        )
    if verb.frame == "give":
        receiver = governed(VERBS["helfen"], acted_on(dice, VERBS["helfen"], doer, "specific"))
        gift = noun_phrase(dice, verb.tags, direct, ACCUSATIVE)
        return receiver._replace(
            english=f"{receiver.english} {gift.english}", object=gift.german, definite=gift.definite
        )
    if verb.frame == "put":
        thing, place = noun_phrase(dice, verb.tags, direct, ACCUSATIVE), _around(dice, ACCUSATIVE)
        return place._replace(
            english=f"{thing.english} {place.english}", object=thing.german, definite=thing.definite
        )
    if verb.frame == "price":
        price, preis = number(dice.between(2, 99) * dice.pick((1, 1, 1, 10)))
        return Slots(f"{price} euros", last=f"{preis} Euro")
    if verb.frame == "be":
        return _predicate(dice, doer)
    return (
        _around(dice, DATIVE)
        if verb.frame == "on"
        else _place(dice, verb)
        if verb.frame in ("in", "to")
        else Slots()
    )


def governed(verb: Verb, found: Phrase) -> Slots:
    if verb.preposition:
        return Slots(found.english, last=prepositional(verb.preposition, found.german))
    if found.pronoun:
        return Slots(found.english, light=found.german)
    if verb.frame == "dat":
        return Slots(found.english, dative=found.german)
    return Slots(found.english, object=found.german, definite=found.definite)


def _around(dice: Dice, case: int) -> Slots:
    (word, wort), place = dice.pick(ON), noun_phrase(dice, ("furniture",), "specific", case)
    return Slots(f"{word} {place.english}", last=prepositional(wort, place.german))


def _place(dice: Dice, verb: Verb) -> Slots:
    kind = dice.pick(verb.tags)
    if kind == "city":
        city, stadt = dice.pick(lexicon.CITIES)
        return (
            Slots(f"in {city}", last=f"in {stadt}")
            if verb.frame == "in"
            else Slots(f"to {city}", last=f"nach {stadt}")
        )
    word, wort, case = *dice.pick(IN[:1] if kind in ("room", "outside") else IN), DATIVE
    if verb.frame == "to":
        word, wort, case = (
            ("into", "in", ACCUSATIVE) if kind in ("room", "outside") else ("to", "zu", DATIVE)
        )
    place = noun_phrase(dice, (kind,), "specific", case)
    return Slots(f"{word} {place.english}", last=prepositional(wort, place.german))


def _predicate(dice: Dice, doer: Phrase) -> Slots:
    if doer.kind == "person" and dice.chance(0.15):
        age, alter = number(dice.between(2, 99))
        return Slots(f"{age} years old", last=f"{alter} Jahre alt")
    if doer.kind == "person" and dice.chance(0.4):
        return _place(dice, VERBS["warten"])
    return quality(dice, doer)


def quality(dice: Dice, thing: Phrase) -> Slots:
    adjective = dice.pick(adjectives(thing.kind))
    return Slots(adjective.english, last=adjective.german)


def time(dice: Dice, tense: str) -> Pair:
    if tense == "perfect":
        return "today", "heute"
    english, german = dice.pick(
        dice.pick(PAST if tense in PASTS else USUAL if tense in ("present", "passive") else COMING)
    )
    if english.startswith(("on", "yesterday", "tomorrow", "every")) and dice.chance(0.4):
        hour, stunde = dice.pick(HOURS)
        return f"{english} {hour}", f"{german} {stunde}"
    return english, german


def clause(
    dice: Dice,
    verb: Verb,
    tenses: Sequence[str] = TENSES,
    doer: Phrase | None = None,
    timed: float = 0.4,
    polar: float = 0.15,
) -> Clause:
    """A verb with its subject and the rest; `timed` and `polar` are the shares with a time and
    with a "not" or an adverb."""
    negated, frequent = dice.chance(polar), verb.participle and dice.chance(polar / 2)
    doer = doer or subject(dice, verb, "specific" if negated or frequent else "subject")
    tense, what = _tense(dice, verb, tenses, negated), slots(dice, verb, doer, negated)
    if negated:
        return Clause(doer, verb, tense, what, adverb=("not", "nicht" if what.definite else ""))
    if frequent:
        return Clause(
            doer,
            verb,
            tense,
            what,
            adverb=dice.pick(ADVERBS_PERFECT if tense == "perfect" else ADVERBS),
        )
    return Clause(
        doer,
        verb,
        tense,
        what,
        time(dice, tense) if verb.participle and dice.chance(timed) else EMPTY,
    )


def _tense(dice: Dice, verb: Verb, tenses: Sequence[str], negated: bool) -> str:
    tense = dice.pick(tenses)
    if not verb.participle:
        return (
            tense
            if tense in ("past", "future") and verb.infinitive in words.PRETERITE
            else "present"
        )
    if tense == "past" and verb.english[0] == verb.english[2]:
        return "perfect"  # "they put" would be either
    return "must not" if negated and tense == "must" else tense
