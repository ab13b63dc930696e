"""How a phrase and a clause are built in both languages from given words. Knows agreement and
word order; chooses nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from demo.lexicon import PRONOUNS
from demo.words import (
    HE,
    ME,
    MODALS,
    NOMINATIVE,
    PRETERITE,
    THEY,
    VERBS,
    YOU,
    Adjective,
    Determiner,
    Noun,
    Verb,
)

Pair = tuple[str, str]  # English, German
EMPTY = ("", "")
RELATIVE = {
    "m": ("der", "den", "dem"),
    "f": ("die", "die", "der"),
    "n": ("das", "das", "dem"),
    "p": ("die", "die", "denen"),
}
_CONTRACTED = {"in dem": "im", "in das": "ins", "von dem": "vom", "zu dem": "zum", "zu der": "zur"}
_WERDEN = {
    "passive": ("werde", "wirst", "wird", "werden"),
    "past passive": ("wurde", "wurdest", "wurde", "wurden"),
}
_BE = {"present": ("am", "are", "is", "are"), "past": ("was", "were", "was", "were")}


class Phrase(NamedTuple):
    """Someone or something in one case: "a red lamp", "eine rote Lampe"."""

    english: str
    german: str
    person: int = HE
    gender: str = "p"
    kind: str = "person"
    definite: bool = True
    pronoun: bool = False


def phrase(
    noun: Noun, determiner: Determiner, adjectives: Sequence[Adjective], plural: bool, case: int
) -> Phrase:
    gender = "p" if plural else noun.gender
    article, (artikel, ending) = determiner.english[plural], determiner.german[gender][case]
    english, german = noun.english[plural], noun.german[plural][case]
    for adjective in reversed(adjectives):
        english, german = f"{adjective.english} {english}", f"{adjective.stem}{ending} {german}"
    if article == "a" and english[0] in "aeiou":
        article = "an"
    person = THEY if plural else HE
    return Phrase(
        f"{article} {english}".lstrip(),
        f"{artikel} {german}".lstrip(),
        person,
        gender,
        noun.tags[0],
        determiner.definite,
    )


@cache
def pronoun(english: str, case: int) -> Phrase:
    as_object, *german = PRONOUNS[english].split()
    person = {"I": ME, "you": YOU, "we": THEY, "they": THEY}.get(english, HE)
    return Phrase(english if case == NOMINATIVE else as_object, german[case], person, pronoun=True)


def relative(head: Phrase, english: str, german: str) -> Phrase:
    """The head with a relative clause; `finish` drops the comma that ends a sentence."""
    return head._replace(english=f"{head.english} {english}", german=f"{head.german}, {german},")


def prepositional(preposition: str, german: str) -> str:
    """im Garten, zur Schule: the bare article melts into the preposition."""
    article, _, rest = german.partition(" ")
    melted = _CONTRACTED.get(f"{preposition} {article}")
    return f"{melted} {rest}" if melted else f"{preposition} {german}"


class Slots(NamedTuple):
    """What goes with a verb. English is one string; German keeps apart what other words may come
    between."""

    english: str = ""
    light: str = ""  # a pronoun, which goes first
    dative: str = ""
    object: str = ""
    definite: bool = True  # "nicht" follows a definite object
    last: str = ""  # a prepositional phrase or a predicate


class Conjugated(NamedTuple):
    plain: str  # "buys", "can buy"
    auxiliary: str  # "does", "can"
    rest: str  # "buy"
    finite: str  # "kauft", "schaltet", "hat"
    tail: str  # "", "aus", "gekauft"
    final: str  # both at the end of a clause: "kauft", "ausschaltet", "gekauft hat"


@cache
def conjugate(verb: Verb, tense: str, person: int) -> Conjugated:
    finite, tail = _german(verb, tense, person)
    final = tail + finite if tense == "present" else f"{tail} {finite}".strip()
    return Conjugated(*_english(verb, tense, person), finite, tail, final)


def _english(verb: Verb, tense: str, person: int) -> tuple[str, str, str]:
    base, third, past, participle = verb.english
    he = person == HE
    if tense in MODALS:
        plain_he, plain, auxiliary_he, auxiliary, before = MODALS[tense][0]
        return (
            f"{plain_he if he else plain} {base}",
            auxiliary_he if he else auxiliary,
            f"{before} {base}".strip(),
        )
    if base == "be" and tense in _BE:
        return _BE[tense][person], _BE[tense][person], ""
    if tense == "present":
        return (third, "does", base) if he else (base, "do", base)
    if tense == "past":
        return past, "did", base
    if tense == "future":
        return f"will {base}", "will", base
    auxiliary = (
        ("has" if he else "have")
        if tense == "perfect"
        else _BE["past" if "past" in tense else "present"][person]
    )
    return f"{auxiliary} {participle}", auxiliary, participle


def _german(verb: Verb, tense: str, person: int) -> Pair:
    if tense == "present":
        return verb.present[person], verb.prefix
    if tense in MODALS or tense == "future":
        finite = MODALS[tense][1] if tense in MODALS else _WERDEN["passive"]
        return finite[person], verb.prefix + verb.infinitive
    if tense == "past" and verb.infinitive in PRETERITE:
        return PRETERITE[verb.infinitive][person], ""
    finite = _WERDEN.get(tense) or VERBS[verb.auxiliary].present
    return finite[person], verb.participle


class Clause(NamedTuple):
    """One verb with all that goes with it, to be put in any order."""

    subject: Phrase
    verb: Verb
    tense: str = "present"
    slots: Slots = Slots()
    time: Pair = EMPTY
    adverb: Pair = EMPTY  # also ("not", "nicht"), or ("not", "") where the object says "kein"

    def statement(self) -> Pair:
        return self.english(), self.german("second")

    def fronted(self) -> Pair:
        """The time goes first, and German brings the verb before the subject."""
        rest = self._replace(time=EMPTY)
        return f"{self.time[0]} {rest.english()}", rest.german("inverted", self.time[1])

    def question(self, word: Pair = EMPTY) -> Pair:
        forms = conjugate(self.verb, self.tense, self.subject.person)
        english = join(
            word[0],
            forms.auxiliary,
            self.subject.english,
            forms.rest,
            self.slots.english,
            self.time[0],
        )
        return english, self.german("inverted", word[1])

    def english(self) -> str:
        forms, word = conjugate(self.verb, self.tense, self.subject.person), self.adverb[0]
        verb = (word, forms.plain)
        if word and (word == "not" or forms.plain.startswith(forms.auxiliary)):
            verb = (forms.auxiliary, f"{word} {forms.rest}".rstrip())
        return join(self.subject.english, *verb, self.slots.english, self.time[0]).replace(
            "can not", "cannot"
        )

    def german(self, order: str, first: str = "") -> str:
        """`order` says where the finite verb stands: second, inverted (before the subject) or
        final."""
        forms, slots, subject = (
            conjugate(self.verb, self.tense, self.subject.person),
            self.slots,
            self.subject.german,
        )
        late = slots.definite and self.adverb[1] in ("nicht", "nie", "schon")
        around = (slots.object, self.adverb[1]) if late else (self.adverb[1], slots.object)
        middle = (slots.dative, self.time[1], *around, slots.last)
        if order == "final":
            return join(subject, slots.light, *middle, forms.final)
        if order == "second":
            return join(subject, forms.finite, slots.light, *middle, forms.tail)
        # "sie" before a noun would be read as the subject.
        start = (
            (slots.light, subject)
            if " " in subject and slots.light != "sie"
            else (subject, slots.light)
        )
        return join(first, forms.finite, *start, *middle, forms.tail)


def infinitive(verb: Verb, slots: Slots) -> Pair:
    """ "turn off the lamp", "die Lampe auszuschalten"."""
    to = f"{verb.prefix}zu{verb.infinitive}" if verb.prefix else f"zu {verb.infinitive}"
    return join(verb.english[0], slots.english), join(
        slots.light, slots.dative, slots.object, slots.last, to
    )


def finish(english: str, german: str, mark: str = ".") -> Pair:
    german = german.replace(",,", ",").rstrip(",")
    return english[0].upper() + english[1:] + mark, german[0].upper() + german[1:] + mark


def join(*words: str) -> str:
    return " ".join([word for word in words if word])
