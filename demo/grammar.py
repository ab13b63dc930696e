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
    Shares,
    adjectives,
    clause,
    noun_phrase,
    plain_phrase,
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
    """Return `count` sentence pairs, no English sentence twice, the same for the same seed."""
    dice = Dice(seed)
    drawn: dict[str, str] = {}
    while len(drawn) < count:
        english, german = sentence(dice)
        drawn[english] = german
    return list(drawn.items())


def write(
    folder: Path,
    train: int = 60000,
    valid: int = 500,
    test: int = 500,
    seed: int = 1,
) -> None:
    """Write the files train, valid and test, each .en and .de.

    No sentence of either language stands in two of them.
    """
    count = train + valid + test
    # Two English sentences may share their German ("has to" and "must"); one of them stays.
    with_spares = count + count // 10 + 10
    by_german = {german: english for english, german in pairs(with_spares, seed)}
    drawn = [(english, german) for german, english in by_german.items()][:count]
    assert len(drawn) == count
    folder.mkdir(parents=True, exist_ok=True)
    _write_part(folder, "test", drawn[:test])
    _write_part(folder, "valid", drawn[test : test + valid])
    _write_part(folder, "train", drawn[test + valid :])


def _write_part(
    folder: Path,
    name: str,
    drawn: list[Pair],
) -> None:
    for side, language in enumerate(("en", "de")):
        lines = "".join(pair[side] + "\n" for pair in drawn)
        (folder / f"{name}.{language}").write_text(lines, encoding="utf-8", newline="\n")


def sentence(dice: Dice) -> Pair:
    """Draw a sentence of any kind."""
    return dice.pick(_SENTENCES)(dice)


def statement(dice: Dice) -> Pair:
    """Draw a main clause."""
    drawn = clause(dice, dice.pick(ALL))
    if drawn.adverb[0] == "not" and drawn.verb.participle and dice.chance(0.4):
        drawn = drawn._replace(time=time(dice, drawn.tense))
    return finish(*_main(dice, drawn))


def _main(dice: Dice, drawn: Clause) -> Pair:
    # Beside "nicht" a time can only stand first.
    negated = drawn.adverb[0] == "not"
    front = drawn.time != EMPTY and (negated or dice.chance(0.5))
    return drawn.fronted() if front else drawn.statement()


def subordinate(dice: Dice) -> Pair:
    """Draw a clause after because, although, if or while, behind the main one or before it."""
    word, wort = dice.pick(_CONJUNCTIONS)
    tenses = ("present",) if word in ("if", "while") else TENSES
    main = clause(dice, dice.pick(ALL), tenses, shares=Shares(timed=0.15))
    other = clause(dice, dice.pick(ALL), tenses, shares=Shares(timed=0.15))
    because = f"{word} {other.english()}"
    weil = f"{wort} {other.german('final')}"
    if main.time == EMPTY and dice.chance(0.4):
        english = f"{because}, {main.english()}"
        german = f"{weil}, {main.german('inverted')}"
        return finish(english, german)
    english, german = _main(dice, main)
    return finish(f"{english} {because}", f"{german}, {weil}")


def reported(dice: Dice) -> Pair:
    """Draw what somebody says, or does not know: "that" and "whether"."""
    verb = dice.pick(FRAMES["that"])
    content = clause(dice, dice.pick(ALL), shares=Shares(timed=0.3))
    doubt = not verb.participle and dice.chance(0.5)
    speaker = subject(dice, verb, "specific")
    tense = "past" if verb.participle and dice.chance(0.4) else "present"
    adverb = ("not", "nicht") if doubt else EMPTY
    english, german = Clause(speaker, verb, tense, adverb=adverb).statement()
    word, wort = ("whether", "ob") if doubt else ("that", "dass")
    return finish(
        f"{english} {word} {content.english()}",
        f"{german}, {wort} {content.german('final')}",
    )


def with_infinitive(dice: Dice) -> Pair:
    """Draw a verb that another follows as an infinitive."""
    verb = dice.pick(FRAMES["infinitive"])
    deed = dice.pick(DEEDS)
    doer = subject(dice, verb)
    english, german = Clause(doer, verb, dice.pick(("present", "past", "perfect"))).statement()
    do, tun = infinitive(deed, slots(dice, deed, doer))
    return finish(f"{english} {do}", f"{german}, {tun}")


def passive(dice: Dice) -> Pair:
    """Draw something that is done by somebody."""
    verb = dice.pick(_PASSIVE)
    tense = dice.pick(("passive", "past passive"))
    done = noun_phrase(dice, verb.tags, "specific", NOMINATIVE)
    doer = noun_phrase(dice, ("person",), "specific", DATIVE, done.english)
    by = Slots(f"by {doer.english}", last=prepositional("von", doer.german))
    when = time(dice, tense) if dice.chance(0.4) else EMPTY
    return finish(*_main(dice, Clause(done, verb, tense, by, when)))


def referring(dice: Dice) -> Pair:
    """Draw an "it", whose German has the gender of what was bought."""
    verb = VERBS[dice.pick(("kaufen", "verkaufen", "waschen", "reparieren", "füttern"))]
    thing = plain_phrase(dice, verb.tags, "specific", ACCUSATIVE)
    doer = subject(dice, verb)
    pronoun = {"m": "er", "f": "sie", "n": "es", "p": "sie"}[thing.gender]
    it = Phrase("they" if thing.gender == "p" else "it", pronoun, thing.person)
    tense = dice.pick(("present", "perfect", "future", "can", "want to"))
    first = Clause(doer, verb, tense, Slots(thing.english, object=thing.german))
    second = Clause(it, VERBS["sein"], "present", quality(dice, thing))
    return finish(
        f"{first.english()} because {second.english()}",
        f"{first.german('second')}, weil {second.german('final')}",
    )


def who_relative(dice: Dice) -> Pair:
    """Draw somebody who does one thing and another."""
    head = noun_phrase(dice, ("person",), "specific", NOMINATIVE)
    who = Phrase("who", RELATIVE[head.gender][NOMINATIVE], head.person)
    never_timed = Shares(timed=0.0)
    inner = clause(dice, dice.pick(DEEDS), ("present", "perfect"), who, never_timed)
    head = relative(head, inner.english(), inner.german("final"))
    outer = clause(dice, dice.pick(DEEDS), doer=head, shares=Shares(timed=0.2, polar=0.0))
    return finish(*_main(dice, outer))


def that_relative(dice: Dice) -> Pair:
    """Draw "The lamp that he turns off is red": the case is the verb's, the gender the noun's."""
    verb = dice.pick(_GOVERNING)
    head = plain_phrase(dice, verb.tags, "specific", NOMINATIVE)
    doer = subject(dice, verb, "specific")
    tense = dice.pick(("present", "perfect")) if verb.participle else "present"
    inner = Clause(doer, verb, tense)
    case = DATIVE if verb.frame == "dat" else ACCUSATIVE
    which = join(verb.preposition, RELATIVE[head.gender][case])
    that = "whom" if head.kind == "person" else "that"
    english = f"{that} {inner.english()}"
    german = f"{which} {inner.german('final')}"
    head = relative(head, english, german)
    outer_tense = dice.pick(("present", "past"))
    outer = Clause(head, VERBS["sein"], outer_tense, quality(dice, head))
    return finish(*outer.statement())


def question(dice: Dice) -> Pair:
    """Draw a question that is answered by yes or no."""
    asked = clause(dice, dice.pick(ALL), shares=Shares(timed=0.3, polar=0.0))
    return finish(*asked.question(), "?")


def who_question(dice: Dice) -> Pair:
    """Draw a question for the subject."""
    asked = clause(dice, dice.pick(DEEDS), doer=Phrase("who", "wer"))
    return finish(*asked.statement(), "?")


def when_question(dice: Dice) -> Pair:
    """Draw a question for the time or the reason."""
    verb = dice.pick(DEEDS + FRAMES["none"])
    word = dice.pick((("when", "wann"), ("why", "warum")))
    doer = subject(dice, verb)
    tense = dice.pick(_ASKED)
    asked = Clause(doer, verb, tense, slots(dice, verb, doer))
    return finish(*asked.question(word), "?")


def where_question(dice: Dice) -> Pair:
    """Draw a question for a place or a direction."""
    verb = dice.pick(FRAMES["in"] + FRAMES["to"])
    doer = subject(dice, verb, "specific")
    tense = dice.pick(_ASKED) if verb.participle else "present"
    wo = "wo" if verb.frame == "in" else "wohin"
    asked = Clause(doer, verb, tense)
    return finish(*asked.question(("where", wo)), "?")


def what_question(dice: Dice) -> Pair:
    """Draw a question with what, whom, which lamp or how many lamps.

    The word has the case of the verb and stands behind its preposition.
    """
    verb = dice.pick(_GOVERNING)
    case = DATIVE if verb.frame == "dat" else ACCUSATIVE
    asked = noun_phrase(dice, verb.tags, "asked", case)
    is_person = asked.kind == "person"
    may_be_what = not is_person and not verb.preposition and case == ACCUSATIVE
    if is_person and dice.chance(0.5):
        asked = Phrase("whom", ("", "wen", "wem")[case])
    elif may_be_what and dice.chance(0.4):
        asked = Phrase("what", "was")
    doer = subject(dice, verb, "specific")
    tense = dice.pick(_ASKED) if verb.participle else "present"
    word = (asked.english, join(verb.preposition, asked.german))
    whole = Clause(doer, verb, tense)
    return finish(*whole.question(word), "?")


def comparison(dice: Dice) -> Pair:
    """Draw two things of one kind that are compared."""
    first = subject(dice, VERBS["sein"], "specific")
    second = noun_phrase(dice, (first.kind,), "specific", NOMINATIVE, first.english)
    adjective = dice.pick(adjectives(first.kind))
    english = f"as {adjective.english} as"
    german = f"so {adjective.german} wie"
    if adjective.comparative and dice.chance(0.7):
        english = f"{adjective.comparative} than"
        german = f"{adjective.german_comparative} als"
    other = f"{english} {second.english}"
    compared = Slots(other, last=f"{german} {second.german}")
    tense = dice.pick(("present", "past"))
    whole = Clause(first, VERBS["sein"], tense, compared)
    return finish(*whole.statement())


def today(dice: Dice) -> Pair:
    """Draw a date."""
    day, tag = dice.pick(DAYS)
    month, monat = dice.pick(MONTHS)
    nth, nte = ordinal(dice.between(1, 29))
    when, wann = dice.pick(_TODAY)
    english = f"{when} {day}, the {nth} of {month}"
    german = f"{wann} {tag}, der {nte}e {monat}"
    return finish(english, german)


_TODAY = (
    ("today is", "heute ist"),
    ("tomorrow is", "morgen ist"),
    ("yesterday was", "gestern war"),
)
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
