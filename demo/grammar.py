"""The embedded corpus: English sentences, each with its one German translation, drawn at random.
Knows no model.

What the pairs teach: gender, case and number on article and adjective; verbs that agree, stand
second, come before the subject after a time, and go to the end after weil, dass or a relative
pronoun; separable verbs; perfect, future, passive and modals; nicht and kein; zu with the
infinitive; prepositions with two cases; numbers, dates and clock times. All of it follows from the
English alone: you is du, a teacher is ein Lehrer, and "put" is stellen or legen by what is put.
"""

from __future__ import annotations

from pathlib import Path

from demo.dates import DAYS, MONTHS, ordinal
from demo.draw import (
    ALL,
    DEEDS,
    FRAMES,
    TENSES,
    Dice,
    adjectives,
    clause,
    noun_phrase,
    quality,
    slots,
    subject,
    time,
)
from demo.syntax import (
    EMPTY,
    RELATIVE,
    Clause,
    Pair,
    Phrase,
    Slots,
    finish,
    infinitive,
    join,
    prepositional,
    relative,
)
from demo.words import ACCUSATIVE, DATIVE, NOMINATIVE, VERBS


def pairs(count: int, seed: int) -> list[Pair]:
    """`count` sentence pairs, no English sentence twice, the same for the same seed."""
    dice, found = Dice(seed), dict[str, str]()
    while len(found) < count:
        english, german = sentence(dice)
        found[english] = german
    return list(found.items())


def write(
    folder: Path, train: int = 60000, valid: int = 500, test: int = 500, seed: int = 1
) -> None:
    """Files train, valid and test, each .en and .de; no sentence of either language stands in
    two of them."""
    count = train + valid + test
    # Two English sentences may share their German ("has to" and "must"); one of them stays.
    by_german = {german: english for english, german in pairs(count + count // 10 + 10, seed)}
    drawn = [(english, german) for german, english in by_german.items()][:count]
    assert len(drawn) == count
    folder.mkdir(parents=True, exist_ok=True)
    for name, first, last in (
        ("test", 0, test),
        ("valid", test, test + valid),
        ("train", test + valid, count),
    ):
        for side, language in enumerate(("en", "de")):
            lines = "".join(pair[side] + "\n" for pair in drawn[first:last])
            (folder / f"{name}.{language}").write_text(lines, encoding="utf-8", newline="\n")


def sentence(dice: Dice) -> Pair:
    return dice.pick(_SENTENCES)(dice)


def statement(dice: Dice) -> Pair:
    said = clause(dice, dice.pick(ALL))
    if said.adverb[0] == "not" and said.verb.participle and dice.chance(0.4):
        said = said._replace(time=time(dice, said.tense))
    return finish(*_main(dice, said))


def _main(dice: Dice, said: Clause) -> Pair:
    # Beside "nicht" the only settled place of a time is the first.
    front = said.time != EMPTY and (said.adverb[0] == "not" or dice.chance(0.5))
    return said.fronted() if front else said.statement()


def subordinate(dice: Dice) -> Pair:
    """A clause after because, although, if or while, behind the main one or before it."""
    word, wort = dice.pick(_CONJUNCTIONS)
    tenses = ("present",) if word in ("if", "while") else TENSES
    first, second = (
        clause(dice, dice.pick(ALL), tenses, timed=0.15),
        clause(dice, dice.pick(ALL), tenses, timed=0.15),
    )
    if first.time == EMPTY and dice.chance(0.4):
        english, german = f"{word} {second.english()}", f"{wort} {second.german('final')}"
        return finish(f"{english}, {first.english()}", f"{german}, {first.german('inverted')}")
    english, german = _main(dice, first)
    return finish(
        f"{english} {word} {second.english()}", f"{german}, {wort} {second.german('final')}"
    )


def reported(dice: Dice) -> Pair:
    verb, said = dice.pick(FRAMES["that"]), clause(dice, dice.pick(ALL), timed=0.3)
    doubt, speaker = not verb.participle and dice.chance(0.5), subject(dice, verb, "specific")
    tense = "past" if verb.participle and dice.chance(0.4) else "present"
    english, german = Clause(
        speaker, verb, tense, adverb=("not", "nicht") if doubt else EMPTY
    ).statement()
    word, wort = ("whether", "ob") if doubt else ("that", "dass")
    return finish(f"{english} {word} {said.english()}", f"{german}, {wort} {said.german('final')}")


def with_infinitive(dice: Dice) -> Pair:
    verb, deed = dice.pick(FRAMES["infinitive"]), dice.pick(DEEDS)
    doer = subject(dice, verb)
    english, german = Clause(doer, verb, dice.pick(("present", "past", "perfect"))).statement()
    do, tun = infinitive(deed, slots(dice, deed, doer))
    return finish(f"{english} {do}", f"{german}, {tun}")


def passive(dice: Dice) -> Pair:
    verb, tense = dice.pick(_PASSIVE), dice.pick(("passive", "past passive"))
    done = noun_phrase(dice, verb.tags, "specific", NOMINATIVE)
    doer = noun_phrase(dice, ("person",), "specific", DATIVE, done.english)
    by = Slots(f"by {doer.english}", last=prepositional("von", doer.german))
    return finish(
        *_main(
            dice, Clause(done, verb, tense, by, time(dice, tense) if dice.chance(0.4) else EMPTY)
        )
    )


def referring(dice: Dice) -> Pair:
    """The German of "it" has the gender of what was bought."""
    verb = VERBS[dice.pick(("kaufen", "verkaufen", "waschen", "reparieren", "füttern"))]
    thing, doer = (
        noun_phrase(dice, verb.tags, "specific", ACCUSATIVE, described=0.0),
        subject(dice, verb),
    )
    pronoun = {"m": "er", "f": "sie", "n": "es", "p": "sie"}[thing.gender]
    it = Phrase("they" if thing.gender == "p" else "it", pronoun, thing.person)
    first = Clause(
        doer,
        verb,
        dice.pick(("present", "perfect", "future", "can", "want to")),
        Slots(thing.english, object=thing.german),
    )
    second = Clause(it, VERBS["sein"], "present", quality(dice, thing))
    return finish(
        f"{first.english()} because {second.english()}",
        f"{first.german('second')}, weil {second.german('final')}",
    )


def who_relative(dice: Dice) -> Pair:
    head = noun_phrase(dice, ("person",), "specific", NOMINATIVE)
    who = Phrase("who", RELATIVE[head.gender][NOMINATIVE], head.person)
    inner = clause(dice, dice.pick(DEEDS), ("present", "perfect"), who, timed=0.0)
    head = relative(head, inner.english(), inner.german("final"))
    return finish(*_main(dice, clause(dice, dice.pick(DEEDS), doer=head, timed=0.2, polar=0.0)))


def that_relative(dice: Dice) -> Pair:
    """ "The lamp that he turns off is red": the pronoun's case is the verb's, its gender the
    noun's."""
    verb = dice.pick(_GOVERNING)
    head = noun_phrase(dice, verb.tags, "specific", NOMINATIVE, described=0.0)
    inner = Clause(
        subject(dice, verb, "specific"),
        verb,
        dice.pick(("present", "perfect")) if verb.participle else "present",
    )
    which = join(
        verb.preposition, RELATIVE[head.gender][DATIVE if verb.frame == "dat" else ACCUSATIVE]
    )
    that = "whom" if head.kind == "person" else "that"
    head = relative(head, f"{that} {inner.english()}", f"{which} {inner.german('final')}")
    return finish(
        *Clause(
            head, VERBS["sein"], dice.pick(("present", "past")), quality(dice, head)
        ).statement()
    )


def question(dice: Dice) -> Pair:
    return finish(*clause(dice, dice.pick(ALL), timed=0.3, polar=0.0).question(), "?")


def who_question(dice: Dice) -> Pair:
    return finish(*clause(dice, dice.pick(DEEDS), doer=Phrase("who", "wer")).statement(), "?")


def when_question(dice: Dice) -> Pair:
    verb, word = dice.pick(DEEDS + FRAMES["none"]), dice.pick((("when", "wann"), ("why", "warum")))
    doer = subject(dice, verb)
    return finish(
        *Clause(doer, verb, dice.pick(_ASKED), slots(dice, verb, doer)).question(word), "?"
    )


def where_question(dice: Dice) -> Pair:
    verb = dice.pick(FRAMES["in"] + FRAMES["to"])
    asked = Clause(
        subject(dice, verb, "specific"), verb, dice.pick(_ASKED) if verb.participle else "present"
    )
    return finish(*asked.question(("where", "wo" if verb.frame == "in" else "wohin")), "?")


def what_question(dice: Dice) -> Pair:
    """What, whom, which lamp and how many lamps, in the case of the verb and behind its
    preposition."""
    verb = dice.pick(_GOVERNING)
    case = DATIVE if verb.frame == "dat" else ACCUSATIVE
    asked = noun_phrase(dice, verb.tags, "asked", case)
    if asked.kind == "person" and dice.chance(0.5):
        asked = Phrase("whom", ("", "wen", "wem")[case])
    elif (
        asked.kind != "person" and not verb.preposition and case == ACCUSATIVE and dice.chance(0.4)
    ):
        asked = Phrase("what", "was")
    said = Clause(
        subject(dice, verb, "specific"), verb, dice.pick(_ASKED) if verb.participle else "present"
    )
    return finish(*said.question((asked.english, join(verb.preposition, asked.german))), "?")


def comparison(dice: Dice) -> Pair:
    first = subject(dice, VERBS["sein"], "specific")
    second = noun_phrase(dice, (first.kind,), "specific", NOMINATIVE, first.english)
    adjective = dice.pick(adjectives(first.kind))
    english, german = f"as {adjective.english} as", f"so {adjective.german} wie"
    if adjective.comparative and dice.chance(0.7):
        english, german = f"{adjective.comparative} than", f"{adjective.german_comparative} als"
    compared = Slots(f"{english} {second.english}", last=f"{german} {second.german}")
    return finish(
        *Clause(first, VERBS["sein"], dice.pick(("present", "past")), compared).statement()
    )


def today(dice: Dice) -> Pair:
    (day, tag), (month, monat), (nth, nte) = (
        dice.pick(DAYS),
        dice.pick(MONTHS),
        ordinal(dice.between(1, 29)),
    )
    when, wann = dice.pick(
        (("today is", "heute ist"), ("tomorrow is", "morgen ist"), ("yesterday was", "gestern war"))
    )
    return finish(f"{when} {day}, the {nth} of {month}", f"{wann} {tag}, der {nte}e {monat}")


_CONJUNCTIONS = (
    ("because", "weil"),
    ("because", "weil"),
    ("although", "obwohl"),
    ("if", "wenn"),
    ("while", "während"),
)
_ASKED = ("present", "present", "past", "can", "want to", "should")
_GOVERNING = FRAMES["acc"] + FRAMES["dat"]
_PASSIVE = tuple(verb for verb in FRAMES["acc"] if verb.participle and not verb.preposition)
_SENTENCES = (
    *(statement,) * 16,
    *(subordinate,) * 10,
    *(reported, question, who_relative, that_relative) * 4,
    *(with_infinitive, passive, referring, what_question, comparison) * 2,
    *(who_question, when_question, where_question, today),
)
