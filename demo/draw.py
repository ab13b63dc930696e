"""Draws words that go together, and phrases and clauses of them: nobody drinks a table. Knows no
kinds of sentence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import NamedTuple, TypeVar

from demo import lexicon, words
from demo.dates import COMING, HOURS, PAST, USUAL, number
from demo.syntax import Clause, Pair, Phrase, Slots, phrase, prepositional, pronoun
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
    *("the",) * 5,
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
# The determiners of what is singular, plural and uncountable.
ROLES = {
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
PRONOUNS = tuple(lexicon.PRONOUNS)
NAMES = tuple(Phrase(name, name) for name in lexicon.NAMES)
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


def _in_frame(frame: str) -> tuple[Verb, ...]:
    return tuple(verb for verb in VERBS.values() if verb.frame == frame)


FRAMES = {verb.frame: _in_frame(verb.frame) for verb in VERBS.values()}
_DEED_FRAMES = ("acc", "dat", "give", "put", "in", "to")
DEEDS = tuple(verb for frame in _DEED_FRAMES for verb in FRAMES[frame] if verb.participle)
STATES = tuple(verb for verb in VERBS.values() if not verb.participle and verb.frame != "that")
ALL = (*DEEDS, *FRAMES["none"], *STATES, *FRAMES["be"] * 5, *FRAMES["price"])


class Shares(NamedTuple):
    """How many clauses have a time, and how many a "not" or an adverb."""

    timed: float = 0.4
    polar: float = 0.15


USUAL_SHARES = Shares()


class Dice:
    """Random choices that every Python version makes alike.

    Only `random()` is guaranteed not to change.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def chance(self, share: float) -> bool:
        """Return True in this share of the cases."""
        return self._random() < share

    def between(self, low: int, high: int) -> int:
        """Return a number from low to high, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[int(self._random() * len(items))]


@cache
def tagged(tags: Forms) -> tuple[Noun, ...]:
    """Return the nouns with one of the tags."""
    return tuple(noun for noun in words.NOUNS.values() if not set(tags).isdisjoint(noun.tags))


@cache
def adjectives(kind: str) -> tuple[Adjective, ...]:
    """Return the adjectives for one kind of thing."""
    return tuple(adjective for adjective in words.ADJECTIVES.values() if kind in adjective.kinds)


@cache
def counted(n: int) -> Determiner:
    """Return a number as a determiner."""
    english, german = number(n)
    return words.determiner(False, ("", english), german, lexicon.UNCHANGED, lexicon.STRONG)


def noun_phrase(
    dice: Dice,
    tags: Forms,
    role: str,
    case: int,
    unlike: str = "",
) -> Phrase:
    """Draw a phrase of a noun with one of the tags that does not stand in the phrase `unlike`."""
    noun = dice.pick(tagged(tags))
    while unlike and noun.english[0] in unlike:
        noun = dice.pick(tagged(tags))
    return _around_noun(dice, noun, role, case, described=0.4)


def plain_phrase(
    dice: Dice,
    tags: Forms,
    role: str,
    case: int,
) -> Phrase:
    """Draw a phrase of a noun with one of the tags, without adjectives."""
    return _around_noun(dice, dice.pick(tagged(tags)), role, case, described=0.0)


def _around_noun(
    dice: Dice,
    noun: Noun,
    role: str,
    case: int,
    described: float,
) -> Phrase:
    countable = bool(noun.english[1])
    plural = countable and "single" not in noun.tags and dice.chance(0.3)
    determiner = _determiner(dice, noun, ROLES[role][plural if countable else 2])
    adjectives = _adjectives(dice, noun) if dice.chance(described) else ()
    return phrase(noun, determiner, adjectives, plural, case)


def _determiner(
    dice: Dice,
    noun: Noun,
    names: Sequence[str],
) -> Determiner:
    name = dice.pick(names)
    if "alone" in noun.tags and name in SPECIFIC:
        name = "the"
    if name != "number":
        return words.DETERMINERS[name]
    largest = 99 if dice.chance(0.6) else 12
    return counted(dice.between(2, largest))


def _adjectives(dice: Dice, noun: Noun) -> tuple[Adjective, ...]:
    kind = noun.tags[0]
    first = dice.pick(adjectives(kind))
    may_have_colour = first not in COLOURS and kind in ("thing", "vehicle", "furniture")
    if may_have_colour and dice.chance(0.2):
        return first, dice.pick(COLOURS)
    return (first,)


def subject(
    dice: Dice,
    verb: Verb,
    role: str = "subject",
) -> Phrase:
    """Draw someone or something that does what the verb says."""
    if "person" in verb.subjects and dice.chance(0.45):
        return dice.pick(NAMES) if dice.chance(0.2) else pronoun(dice.pick(PRONOUNS), NOMINATIVE)
    doer = noun_phrase(dice, verb.subjects, role, NOMINATIVE)
    if doer.english.startswith("the ") and dice.chance(0.1):
        owner = noun_phrase(dice, ("person",), "specific", words.GENITIVE, doer.english)
        english = f"{doer.english} of {owner.english}"
        german = f"{doer.german} {owner.german}"
        return doer._replace(english=english, german=german)
    if doer.kind == "person" and doer.definite and dice.chance(0.07):
        friend = dice.pick(NAMES)
        english = f"{friend.english} and {doer.english}"
        german = f"{friend.german} und {doer.german}"
        return Phrase(english, german, words.THEY)
    return doer


def acted_on(
    dice: Dice,
    verb: Verb,
    doer: Phrase,
    role: str,
) -> Phrase:
    """Draw what the verb governs: where it may be a person, also a pronoun or a name."""
    case = DATIVE if verb.frame == "dat" else ACCUSATIVE
    if "person" in verb.tags and dice.chance(0.35):
        # "picks him up" is not in this grammar.
        if verb.english[0] == "pick up" or dice.chance(0.3):
            return dice.pick([name for name in NAMES if name.english not in doer.english])
        return pronoun(dice.pick(OTHERS.get(doer.english, PRONOUNS)), case)
    return noun_phrase(dice, verb.tags, role, case, doer.english)


def slots(
    dice: Dice,
    verb: Verb,
    doer: Phrase,
    negated: bool = False,
) -> Slots:
    """Draw all that the verb asks for.

    Only a direct object can take "kein"; anything else is definite beside a "nicht".
    """
    plain = "specific" if negated else "object"
    direct = "negated" if negated and dice.chance(0.5) else plain
    frame = verb.frame
    if frame in ("acc", "dat"):
        is_direct = frame == "acc" and not verb.preposition
        return governed(verb, acted_on(dice, verb, doer, direct if is_direct else plain))
    if frame == "give":
        return _given(dice, verb, doer, direct)
    if frame == "put":
        return _put(dice, verb, direct)
    if frame == "price":
        return _price(dice)
    if frame == "be":
        return _predicate(dice, doer)
    if frame == "on":
        return _near_furniture(dice, DATIVE)
    if frame in ("in", "to"):
        return _location(dice, verb)
    return Slots()


def governed(verb: Verb, found: Phrase) -> Slots:
    """Put the phrase that a verb governs where it belongs."""
    if verb.preposition:
        return Slots(found.english, last=prepositional(verb.preposition, found.german))
    if found.pronoun:
        return Slots(found.english, light=found.german)
    if verb.frame == "dat":
        return Slots(found.english, dative=found.german)
    return Slots(found.english, object=found.german, definite=found.definite)


def _given(
    dice: Dice,
    verb: Verb,
    doer: Phrase,
    role: str,
) -> Slots:
    help_ = VERBS["helfen"]
    receiver = governed(help_, acted_on(dice, help_, doer, "specific"))
    gift = noun_phrase(dice, verb.tags, role, ACCUSATIVE)
    return receiver._replace(
        english=f"{receiver.english} {gift.english}",
        object=gift.german,
        definite=gift.definite,
    )


def _put(
    dice: Dice,
    verb: Verb,
    role: str,
) -> Slots:
    thing = noun_phrase(dice, verb.tags, role, ACCUSATIVE)
    where = _near_furniture(dice, ACCUSATIVE)
    return where._replace(
        english=f"{thing.english} {where.english}",
        object=thing.german,
        definite=thing.definite,
    )


def _price(dice: Dice) -> Slots:
    euros = dice.between(2, 99) * dice.pick((1, 1, 1, 10))
    price, preis = number(euros)
    return Slots(f"{price} euros", last=f"{preis} Euro")


def _near_furniture(dice: Dice, case: int) -> Slots:
    word, wort = dice.pick(ON)
    furniture = noun_phrase(dice, ("furniture",), "specific", case)
    return Slots(f"{word} {furniture.english}", last=prepositional(wort, furniture.german))


def _location(dice: Dice, verb: Verb) -> Slots:
    kind = dice.pick(verb.tags)
    if kind == "city":
        city, stadt = dice.pick(lexicon.CITIES)
        if verb.frame == "in":
            return Slots(f"in {city}", last=f"in {stadt}")
        return Slots(f"to {city}", last=f"nach {stadt}")
    is_entered = kind in ("room", "outside")
    word, wort = dice.pick(IN[:1] if is_entered else IN)
    case = DATIVE
    if verb.frame == "to":
        word = "into" if is_entered else "to"
        wort = "in" if is_entered else "zu"
        case = ACCUSATIVE if is_entered else DATIVE
    where = noun_phrase(dice, (kind,), "specific", case)
    return Slots(f"{word} {where.english}", last=prepositional(wort, where.german))


def _predicate(dice: Dice, doer: Phrase) -> Slots:
    if doer.kind == "person" and dice.chance(0.15):
        age, alter = number(dice.between(2, 99))
        return Slots(f"{age} years old", last=f"{alter} Jahre alt")
    if doer.kind == "person" and dice.chance(0.4):
        return _location(dice, VERBS["warten"])
    return quality(dice, doer)


def quality(dice: Dice, thing: Phrase) -> Slots:
    """Draw an adjective that says how something is."""
    adjective = dice.pick(adjectives(thing.kind))
    return Slots(adjective.english, last=adjective.german)


def time(dice: Dice, tense: str) -> Pair:
    """Draw a time that goes with a tense."""
    if tense == "perfect":
        return "today", "heute"
    choices = COMING
    if tense in PASTS:
        choices = PAST
    elif tense in ("present", "passive"):
        choices = USUAL
    english, german = dice.pick(dice.pick(choices))
    if english.startswith(("on", "yesterday", "tomorrow", "every")) and dice.chance(0.4):
        hour, stunde = dice.pick(HOURS)
        return f"{english} {hour}", f"{german} {stunde}"
    return english, german


def clause(
    dice: Dice,
    verb: Verb,
    tenses: Sequence[str] = TENSES,
    doer: Phrase | None = None,
    shares: Shares = USUAL_SHARES,
) -> Clause:
    """Draw a verb with its subject and the rest."""
    negated = dice.chance(shares.polar)
    frequent = verb.participle and dice.chance(shares.polar / 2)
    doer = doer or subject(dice, verb, "specific" if negated or frequent else "subject")
    tense = _tense(dice, verb, tenses, negated)
    what = slots(dice, verb, doer, negated)
    plain = Clause(doer, verb, tense, what)
    if negated:
        return plain._replace(adverb=("not", "nicht" if what.definite else ""))
    if frequent:
        adverbs = ADVERBS_PERFECT if tense == "perfect" else ADVERBS
        return plain._replace(adverb=dice.pick(adverbs))
    if verb.participle and dice.chance(shares.timed):
        return plain._replace(time=time(dice, tense))
    return plain


def _tense(
    dice: Dice,
    verb: Verb,
    tenses: Sequence[str],
    negated: bool,
) -> str:
    tense = dice.pick(tenses)
    if not verb.participle:
        has_past = verb.infinitive in words.PRETERITE
        return tense if has_past and tense in ("past", "future") else "present"
    if tense == "past" and verb.english[0] == verb.english[2]:
        return "perfect"  # "they put" would be either
    return "must not" if negated and tense == "must" else tense
