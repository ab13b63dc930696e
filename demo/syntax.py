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
    noun: Noun,
    determiner: Determiner,
    adjectives: Sequence[Adjective],
    plural: bool,
    case: int,
) -> Phrase:
    """Build a phrase of a noun and the words before it."""
    gender = "p" if plural else noun.gender
    article = determiner.english[plural]
    artikel, ending = determiner.german[gender][case]
    english = noun.english[plural]
    german = noun.german[plural][case]
    for adjective in reversed(adjectives):
        english = f"{adjective.english} {english}"
        german = f"{adjective.stem}{ending} {german}"
    if article == "a" and english[0] in "aeiou":
        article = "an"
    return Phrase(
        english=f"{article} {english}".lstrip(),
        german=f"{artikel} {german}".lstrip(),
        person=THEY if plural else HE,
        gender=gender,
        kind=noun.tags[0],
        definite=determiner.definite,
    )


@cache
def pronoun(english: str, case: int) -> Phrase:
    """Return a personal pronoun in one case."""
    as_object, *german = PRONOUNS[english].split()
    person = {"I": ME, "you": YOU, "we": THEY, "they": THEY}.get(english, HE)
    form = english if case == NOMINATIVE else as_object
    return Phrase(form, german[case], person, pronoun=True)


def relative(
    head: Phrase,
    english: str,
    german: str,
) -> Phrase:
    """Return the head with a relative clause; `finish` drops a comma that ends a sentence."""
    return head._replace(english=f"{head.english} {english}", german=f"{head.german}, {german},")


def prepositional(preposition: str, german: str) -> str:
    """Join a preposition and a phrase; a bare article melts into it: im Garten, zur Schule."""
    article, _, rest = german.partition(" ")
    melted = _CONTRACTED.get(f"{preposition} {article}")
    return f"{melted} {rest}" if melted else f"{preposition} {german}"


class Slots(NamedTuple):
    """What goes with a verb.

    English is one string; German keeps apart what other words may come between.
    """

    english: str = ""
    light: str = ""  # a pronoun, which goes first
    dative: str = ""
    object: str = ""
    definite: bool = True  # "nicht" follows a definite object
    last: str = ""  # a prepositional phrase or a predicate


class Conjugated(NamedTuple):
    """The forms of a verb for one tense and person."""

    plain: str  # "buys", "can buy"
    auxiliary: str  # "does", "can"
    rest: str  # "buy"
    finite: str  # "kauft", "schaltet", "hat"
    tail: str  # "", "aus", "gekauft"
    final: str  # both at the end of a clause: "kauft", "ausschaltet", "gekauft hat"


@cache
def conjugate(
    verb: Verb,
    tense: str,
    person: int,
) -> Conjugated:
    """Return the forms of a verb in both languages."""
    plain, auxiliary, rest = _english(verb, tense, person)
    finite, tail = _german(verb, tense, person)
    final = tail + finite if tense == "present" else f"{tail} {finite}".strip()
    return Conjugated(plain, auxiliary, rest, finite, tail, final)


def _english(
    verb: Verb,
    tense: str,
    person: int,
) -> tuple[str, str, str]:
    base, third, past, participle = verb.english
    he = person == HE
    if tense in MODALS:
        plain_he, plain, auxiliary_he, auxiliary, before = MODALS[tense][0]
        if he:
            plain = plain_he
            auxiliary = auxiliary_he
        return f"{plain} {base}", auxiliary, f"{before} {base}".strip()
    if base == "be" and tense in _BE:
        return _BE[tense][person], _BE[tense][person], ""
    if tense == "present":
        return (third, "does", base) if he else (base, "do", base)
    if tense == "past":
        return past, "did", base
    if tense == "future":
        return f"will {base}", "will", base
    if tense == "perfect":
        auxiliary = "has" if he else "have"
    else:
        auxiliary = _BE["past" if "past" in tense else "present"][person]
    return f"{auxiliary} {participle}", auxiliary, participle


def _german(
    verb: Verb,
    tense: str,
    person: int,
) -> Pair:
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
        """Return the clause as a main clause: the German verb is second."""
        return self.english(), self.german("second")

    def fronted(self) -> Pair:
        """Return the clause with the time first; German then has the verb before the subject."""
        rest = self._replace(time=EMPTY)
        return f"{self.time[0]} {rest.english()}", rest.german("inverted", self.time[1])

    def question(self, word: Pair = EMPTY) -> Pair:
        """Return the clause as a question, which a word such as "when" may begin."""
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
        """Return the English words in the order of a statement."""
        forms = conjugate(self.verb, self.tense, self.subject.person)
        word = self.adverb[0]
        verb = (word, forms.plain)
        if word and (word == "not" or forms.plain.startswith(forms.auxiliary)):
            verb = (forms.auxiliary, f"{word} {forms.rest}".rstrip())
        joined = join(self.subject.english, *verb, self.slots.english, self.time[0])
        return joined.replace("can not", "cannot")

    def german(self, order: str, first: str = "") -> str:
        """Return the German words.

        `order` says where the finite verb stands: second, inverted (before the subject) or final.
        """
        forms = conjugate(self.verb, self.tense, self.subject.person)
        slots = self.slots
        subject = self.subject.german
        late = slots.definite and self.adverb[1] in ("nicht", "nie", "schon")
        around = (slots.object, self.adverb[1]) if late else (self.adverb[1], slots.object)
        middle = (slots.dative, self.time[1], *around, slots.last)
        if order == "final":
            return join(subject, slots.light, *middle, forms.final)
        if order == "second":
            return join(subject, forms.finite, slots.light, *middle, forms.tail)
        # "sie" before a noun would be read as the subject.
        light_first = " " in subject and slots.light != "sie"
        start = (slots.light, subject) if light_first else (subject, slots.light)
        return join(first, forms.finite, *start, *middle, forms.tail)


def infinitive(verb: Verb, slots: Slots) -> Pair:
    """Return an infinitive with what goes with it: "turn off the lamp", "die Lampe
    auszuschalten"."""
    to = f"{verb.prefix}zu{verb.infinitive}" if verb.prefix else f"zu {verb.infinitive}"
    english = join(verb.english[0], slots.english)
    german = join(slots.light, slots.dative, slots.object, slots.last, to)
    return english, german


def finish(
    english: str,
    german: str,
    mark: str = ".",
) -> Pair:
    """Return both sentences with a capital letter and a mark at the end."""
    german = german.replace(",,", ",").rstrip(",")
    return _capitalised(english) + mark, _capitalised(german) + mark


def join(*words: str) -> str:
    """Join the words that are not empty."""
    return " ".join([word for word in words if word])


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]
