"""The demo corpus. The German here was written by hand, sentence by sentence, not copied from
what the grammar prints."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from demo import grammar, lexicon
from demo.dates import clock, number, ordinal
from demo.draw import NAMES, Dice, counted, governed
from demo.syntax import (
    RELATIVE,
    Clause,
    Phrase,
    Slots,
    finish,
    infinitive,
    phrase,
    prepositional,
    pronoun,
    relative,
)
from demo.words import (
    ACCUSATIVE,
    ADJECTIVES,
    DATIVE,
    DETERMINERS,
    GENITIVE,
    NOMINATIVE,
    NOUNS,
    VERBS,
)

T = TypeVar("T")
NOT = ("not", "nicht")
NO = ("not", "")

ROOT = Path(__file__).parents[2]


def the(words: str, case: int = NOMINATIVE, plural: bool = False) -> Phrase:
    """ "my old red lamp" with the determiner first and the noun last; "bare" for none."""
    first, *adjectives, noun = words.split()
    return phrase(
        NOUNS[noun],
        DETERMINERS[first.replace("_", " ")],
        [ADJECTIVES[a] for a in adjectives],
        plural,
        case,
    )


def having(verb: str, words: str, plural: bool = False) -> Slots:
    return governed(
        VERBS[verb], the(words, DATIVE if VERBS[verb].frame == "dat" else ACCUSATIVE, plural)
    )


def placed(english: str, german: str, words: str, case: int, plural: bool = False) -> Slots:
    place = the(words, case, plural)
    return Slots(f"{english} {place.english}", last=prepositional(german, place.german))


@pytest.mark.parametrize(
    ("words", "plural", "english", "german"),
    [
        (
            "the old man",
            False,
            "the old man",
            ["der alte Mann", "den alten Mann", "dem alten Mann", "des alten Mannes"],
        ),
        (
            "a old man",
            False,
            "an old man",
            ["ein alter Mann", "einen alten Mann", "einem alten Mann", "eines alten Mannes"],
        ),
        (
            "this red lamp",
            False,
            "this red lamp",
            ["diese rote Lampe", "diese rote Lampe", "dieser roten Lampe", "dieser roten Lampe"],
        ),
        (
            "my new book",
            False,
            "my new book",
            ["mein neues Buch", "mein neues Buch", "meinem neuen Buch", "meines neuen Buches"],
        ),
        (
            "every small dog",
            False,
            "every small dog",
            ["jeder kleine Hund", "jeden kleinen Hund", "jedem kleinen Hund"],
        ),
        (
            "bare cold water",
            False,
            "cold water",
            ["kaltes Wasser", "kaltes Wasser", "kaltem Wasser"],
        ),
        (
            "bare fresh milk",
            False,
            "fresh milk",
            ["frische Milch", "frische Milch", "frischer Milch"],
        ),
        ("bare good tea", False, "good tea", ["guter Tee", "guten Tee", "gutem Tee"]),
        (
            "Anna's expensive car",
            False,
            "Anna's expensive car",
            ["Annas teures Auto", "Annas teures Auto", "Annas teurem Auto"],
        ),
        (
            "the tired neighbour",
            False,
            "the tired neighbour",
            ["der müde Nachbar", "den müden Nachbarn", "dem müden Nachbarn"],
        ),
        (
            "the dark house",
            True,
            "the dark houses",
            [
                "die dunklen Häuser",
                "die dunklen Häuser",
                "den dunklen Häusern",
                "der dunklen Häuser",
            ],
        ),
        (
            "our clever child",
            True,
            "our clever children",
            ["unsere klugen Kinder", "unsere klugen Kinder", "unseren klugen Kindern"],
        ),
        (
            "many small box",
            True,
            "many small boxes",
            ["viele kleine Kisten", "viele kleine Kisten", "vielen kleinen Kisten"],
        ),
        (
            "all happy boy",
            True,
            "all happy boys",
            ["alle glücklichen Jungen", "alle glücklichen Jungen", "allen glücklichen Jungen"],
        ),
        (
            "bare big black bird",
            True,
            "big black birds",
            ["große schwarze Vögel", "große schwarze Vögel", "großen schwarzen Vögeln"],
        ),
        (
            "not_any fresh egg",
            True,
            "fresh eggs",
            ["keine frischen Eier", "keine frischen Eier", "keinen frischen Eiern"],
        ),
        (
            "not_a green coat",
            False,
            "a green coat",
            ["kein grüner Mantel", "keinen grünen Mantel", "keinem grünen Mantel"],
        ),
        ("the radio", True, "the radios", ["die Radios", "die Radios", "den Radios", "der Radios"]),
    ],
)
def test_article_adjective_and_noun_agree(
    words: str, plural: bool, english: str, german: list[str]
) -> None:
    assert the(words, plural=plural).english == english
    assert [the(words, case, plural).german for case in range(len(german))] == german


def test_after_a_number_the_adjective_bears_the_ending() -> None:
    counted_lamps = phrase(NOUNS["lamp"], counted(21), [ADJECTIVES["blue"]], True, DATIVE)
    assert (counted_lamps.english, counted_lamps.german) == (
        "twenty-one blue lamps",
        "einundzwanzig blauen Lampen",
    )


@pytest.mark.parametrize(
    ("subject", "forms"),
    [
        ("I", "schlafe arbeite wasche lese sehe esse bin habe will weiß mag"),
        ("you", "schläfst arbeitest wäschst liest siehst isst bist hast willst weißt magst"),
        ("she", "schläft arbeitet wäscht liest sieht isst ist hat will weiß mag"),
        ("they", "schlafen arbeiten waschen lesen sehen essen sind haben wollen wissen mögen"),
    ],
)
def test_the_verb_agrees(subject: str, forms: str) -> None:
    verbs = [
        "schlafen",
        "arbeiten",
        "waschen",
        "lesen",
        "sehen",
        "essen",
        "sein",
        "haben",
        None,
        "wissen",
        "mögen",
    ]
    said = [
        Clause(
            pronoun(subject, NOMINATIVE), VERBS[verb or "lachen"], "present" if verb else "want to"
        )
        for verb in verbs
    ]
    assert [clause.german("second").split()[1] for clause in said] == forms.split()


OFF = Clause(
    pronoun("he", NOMINATIVE), VERBS["ausschalten"], slots=having("ausschalten", "the lamp")
)


@pytest.mark.parametrize(
    ("tense", "english", "german", "final"),
    [
        (
            "present",
            "He turns off the lamp.",
            "Er schaltet die Lampe aus.",
            "er die Lampe ausschaltet",
        ),
        (
            "perfect",
            "He has turned off the lamp.",
            "Er hat die Lampe ausgeschaltet.",
            "er die Lampe ausgeschaltet hat",
        ),
        (
            "past",
            "He turned off the lamp.",
            "Er hat die Lampe ausgeschaltet.",
            "er die Lampe ausgeschaltet hat",
        ),
        (
            "future",
            "He will turn off the lamp.",
            "Er wird die Lampe ausschalten.",
            "er die Lampe ausschalten wird",
        ),
        (
            "want to",
            "He wants to turn off the lamp.",
            "Er will die Lampe ausschalten.",
            "er die Lampe ausschalten will",
        ),
        (
            "had to",
            "He had to turn off the lamp.",
            "Er musste die Lampe ausschalten.",
            "er die Lampe ausschalten musste",
        ),
    ],
)
def test_separable_verbs(tense: str, english: str, german: str, final: str) -> None:
    said = OFF._replace(tense=tense)
    assert finish(*said.statement()) == (english, german)
    assert said.german("final") == final


@pytest.mark.parametrize(
    ("tense", "adverb", "words", "english", "german"),
    [
        (
            "present",
            NOT,
            "the lamp",
            "He does not turn off the lamp",
            "Er schaltet die Lampe nicht aus",
        ),
        ("present", NO, "not_a lamp", "He does not turn off a lamp", "Er schaltet keine Lampe aus"),
        (
            "perfect",
            NOT,
            "my lamp",
            "He has not turned off my lamp",
            "Er hat meine Lampe nicht ausgeschaltet",
        ),
        (
            "past",
            NO,
            "not_a oven",
            "He did not turn off an oven",
            "Er hat keinen Ofen ausgeschaltet",
        ),
        (
            "can",
            NOT,
            "this oven",
            "He cannot turn off this oven",
            "Er kann diesen Ofen nicht ausschalten",
        ),
        (
            "must not",
            NOT,
            "the oven",
            "He must not turn off the oven",
            "Er darf den Ofen nicht ausschalten",
        ),
        (
            "have to",
            NOT,
            "the oven",
            "He does not have to turn off the oven",
            "Er muss den Ofen nicht ausschalten",
        ),
        (
            "present",
            ("never", "nie"),
            "the lamp",
            "He never turns off the lamp",
            "Er schaltet die Lampe nie aus",
        ),
        (
            "perfect",
            ("already", "schon"),
            "a lamp",
            "He has already turned off a lamp",
            "Er hat schon eine Lampe ausgeschaltet",
        ),
        (
            "present",
            ("often", "oft"),
            "the lamp",
            "He often turns off the lamp",
            "Er schaltet oft die Lampe aus",
        ),
    ],
)
def test_negation_and_adverbs(
    tense: str, adverb: tuple[str, str], words: str, english: str, german: str
) -> None:
    said = OFF._replace(tense=tense, adverb=adverb, slots=having("ausschalten", words))
    assert finish(*said.statement(), "") == (english, german)


MONDAY = ("on Monday", "am Montag")


@pytest.mark.parametrize(
    ("said", "english", "german"),
    [
        (
            Clause(
                the("the man"), VERBS["kaufen"], slots=having("kaufen", "a table"), time=MONDAY
            ).fronted(),
            "On Monday the man buys a table",
            "Am Montag kauft der Mann einen Tisch",
        ),
        (
            Clause(
                the("the man"), VERBS["kaufen"], slots=having("kaufen", "a table"), time=MONDAY
            ).statement(),
            "The man buys a table on Monday",
            "Der Mann kauft am Montag einen Tisch",
        ),
        (
            Clause(
                the("the man"),
                VERBS["helfen"],
                slots=governed(VERBS["helfen"], pronoun("she", DATIVE)),
                time=MONDAY,
            ).fronted(),
            "On Monday the man helps her",
            "Am Montag hilft ihr der Mann",
        ),
        (
            Clause(
                pronoun("we", NOMINATIVE),
                VERBS["besuchen"],
                slots=governed(VERBS["besuchen"], pronoun("he", ACCUSATIVE)),
            ).question(),
            "Do we visit him",
            "Besuchen wir ihn",
        ),
        (
            Clause(the("the train"), VERBS["abfahren"], "perfect").question(("why", "warum")),
            "Why has the train left",
            "Warum ist der Zug abgefahren",
        ),
        (
            Clause(the("the train"), VERBS["abfahren"], time=clock(6, 30)).statement(),
            "The train leaves at half past six",
            "Der Zug fährt um halb sieben ab",
        ),
        (
            Clause(
                pronoun("you", NOMINATIVE),
                VERBS["warten auf"],
                slots=having("warten auf", "the bus"),
                adverb=NOT,
            ).statement(),
            "You do not wait for the bus",
            "Du wartest nicht auf den Bus",
        ),
        (
            Clause(
                the("the guest"), VERBS["träumen von"], slots=having("träumen von", "the dog")
            ).statement(),
            "The guest dreams of the dog",
            "Der Gast träumt vom Hund",
        ),
        (
            Clause(
                the("my tall brother"),
                VERBS["sein"],
                "past",
                Slots("tired", last="müde"),
                adverb=NOT,
            ).statement(),
            "My tall brother was not tired",
            "Mein großer Bruder war nicht müde",
        ),
        (
            Clause(
                the("the letter"),
                VERBS["schreiben"],
                "past passive",
                Slots("by the doctor", last="vom Arzt"),
            ).statement(),
            "The letter was written by the doctor",
            "Der Brief wurde vom Arzt geschrieben",
        ),
    ],
)
def test_word_order(said: tuple[str, str], english: str, german: str) -> None:
    assert finish(*said, "") == (english, german)


def test_two_way_prepositions_and_contractions() -> None:
    he = pronoun("he", NOMINATIVE)
    put = VERBS["stellen"]
    lies = Clause(the("the vase"), VERBS["stehen"], slots=placed("on", "auf", "the table", DATIVE))
    onto = placed("on", "auf", "the table", ACCUSATIVE)
    vase = Slots("the vase on the table", object="die Vase", last=onto.last)
    assert Clause(he, put, slots=vase).german("second") == "er stellt die Vase auf den Tisch"
    assert lies.german("second") == "die Vase steht auf dem Tisch"
    assert (
        Clause(he, VERBS["gehen"], slots=placed("into", "in", "the office", ACCUSATIVE)).german(
            "second"
        )
        == "er geht ins Büro"
    )
    assert (
        Clause(he, VERBS["arbeiten"], slots=placed("in", "in", "the office", DATIVE)).german(
            "second"
        )
        == "er arbeitet im Büro"
    )
    assert placed("to", "zu", "the school", DATIVE).last == "zur Schule"
    assert placed("to", "zu", "the old station", DATIVE).last == "zum alten Bahnhof"
    assert placed("to", "zu", "the station", DATIVE, plural=True).last == "zu den Bahnhöfen"
    assert placed("to", "zu", "this school", DATIVE).last == "zu dieser Schule"


@pytest.mark.parametrize(
    ("words", "plural", "case", "expected"),
    [
        ("the man", False, NOMINATIVE, "der Mann, der schläft,"),
        ("the girl", False, DATIVE, "dem Mädchen, das schläft,"),
        ("the aunt", False, ACCUSATIVE, "die Tante, die schläft,"),
        ("the friend", True, GENITIVE, "der Freunde, die schlafen,"),
    ],
)
def test_relative_pronoun_as_subject(words: str, plural: bool, case: int, expected: str) -> None:
    head = the(words, case, plural)
    inner = Clause(Phrase("who", RELATIVE[head.gender][NOMINATIVE], head.person), VERBS["schlafen"])
    assert relative(head, inner.english(), inner.german("final")).german == expected


def test_infinitives_with_zu() -> None:
    assert infinitive(VERBS["ausschalten"], having("ausschalten", "the lamp")) == (
        "turn off the lamp",
        "die Lampe auszuschalten",
    )
    assert infinitive(VERBS["helfen"], having("helfen", "the child", plural=True)) == (
        "help the children",
        "den Kindern zu helfen",
    )
    assert infinitive(VERBS["abholen"], having("abholen", "my son")) == (
        "pick up my son",
        "meinen Sohn abzuholen",
    )


def test_numbers() -> None:
    german = {
        1: "eins",
        7: "sieben",
        12: "zwölf",
        16: "sechzehn",
        17: "siebzehn",
        21: "einundzwanzig",
        30: "dreißig",
        99: "neunundneunzig",
    }
    german |= {100: "einhundert", 234: "zweihundertvierunddreißig", 970: "neunhundertsiebzig"}
    assert {n: number(n)[1] for n in german} == german
    assert [number(n)[0] for n in (15, 40, 58, 300, 311)] == [
        "fifteen",
        "forty",
        "fifty-eight",
        "three hundred",
        "three hundred and eleven",
    ]


def test_ordinals_and_clock() -> None:
    assert [ordinal(n)[0] for n in (1, 2, 3, 5, 9, 12, 14, 20, 21)] == (
        [
            "first",
            "second",
            "third",
            "fifth",
            "ninth",
            "twelfth",
            "fourteenth",
            "twentieth",
            "twenty-first",
        ]
    )
    assert [ordinal(n)[1] + "en" for n in (1, 2, 3, 7, 8, 19, 20, 27)] == (
        [
            "ersten",
            "zweiten",
            "dritten",
            "siebten",
            "achten",
            "neunzehnten",
            "zwanzigsten",
            "siebenundzwanzigsten",
        ]
    )
    assert clock(1, 0) == ("at one o'clock", "um ein Uhr")
    assert clock(12, 30) == ("at half past twelve", "um halb eins")
    assert clock(12, 45) == ("at a quarter to one", "um Viertel vor eins")
    assert clock(3, 20) == ("at twenty past three", "um zwanzig nach drei")


class Loaded(Dice):
    """Mostly falls on the wanted words where they are among the choices, so that a wanted
    sentence comes up soon."""

    def __init__(self, wanted: str) -> None:
        super().__init__(seed=1)
        words = [word.replace("_", " ") for word in wanted.split()]
        tables = (
            NOUNS,
            ADJECTIVES,
            VERBS,
            dict(lexicon.CITIES),
            {name.english: name for name in NAMES},
        )
        self.wanted = [
            *words,
            *(table[word] for table in tables for word in words if word in table),
        ]

    def pick(self, items: Sequence[T]) -> T:
        wanted = (
            [item for item in items if item in self.wanted or self._begins(item)]
            if self.chance(0.95)
            else []
        )
        return super().pick(wanted or items)

    def _begins(self, item: object) -> bool:
        return isinstance(item, tuple) and bool(item) and item[0] in self.wanted


@pytest.mark.parametrize(
    ("kind", "wanted", "english", "german"),
    [
        (
            grammar.subordinate,
            "because anrufen laufen present I mother my outside park",
            "Because I call my mother, I run into the park.",
            "Weil ich meine Mutter anrufe, laufe ich in den Park.",
        ),
        (
            grammar.subordinate,
            "although abfahren train the perfect aufstehen they must",
            "They must get up although the train has left.",
            "Sie müssen aufstehen, obwohl der Zug abgefahren ist.",
        ),
        (
            grammar.reported,
            "wissen we helfen the teacher want_to neighbour his",
            "We do not know whether the teacher wants to help his neighbour.",
            "Wir wissen nicht, ob der Lehrer seinem Nachbarn helfen will.",
        ),
        (
            grammar.reported,
            "sagen he wegwerfen Lena past coat a red",
            "He said that Lena threw away a red coat.",
            "Er hat gesagt, dass Lena einen roten Mantel weggeworfen hat.",
        ),
        (
            grammar.with_infinitive,
            "vergessen she perfect zurückgeben book the",
            "She has forgotten to give back the book.",
            "Sie hat vergessen, das Buch zurückzugeben.",
        ),
        (
            grammar.passive,
            "einladen past_passive guest our clever woman the",
            "Our clever guest was invited by the woman.",
            "Unser kluger Gast wurde von der Frau eingeladen.",
        ),
        (
            grammar.referring,
            "reparieren I can computer my cheap",
            "I can repair my computer because it is cheap.",
            "Ich kann meinen Computer reparieren, weil er billig ist.",
        ),
        (
            grammar.referring,
            "kaufen Anna will lamp this future beautiful",
            "Anna will buy this lamp because it is beautiful.",
            "Anna wird diese Lampe kaufen, weil sie schön ist.",
        ),
        (
            grammar.who_relative,
            "girl the fahren Vienna present geben they apple a future",
            "The girl who drives to Vienna will give them an apple.",
            "Das Mädchen, das nach Wien fährt, wird ihnen einen Apfel geben.",
        ),
        (
            grammar.that_relative,
            "child the zuhören he present tired",
            "The child whom he listens to is tired.",
            "Das Kind, dem er zuhört, ist müde.",
        ),
        (
            grammar.that_relative,
            "train the warten_auf you present old past",
            "The trains that you wait for were old.",
            "Die Züge, auf die du wartest, waren alt.",
        ),
        (
            grammar.what_question,
            "warten_auf which bus he",
            "Which bus does he wait for?",
            "Auf welchen Bus wartet er?",
        ),
        (
            grammar.what_question,
            "helfen friend she want_to",
            "Whom does she want to help?",
            "Wem will sie helfen?",
        ),
        (
            grammar.what_question,
            "essen how_many egg you can",
            "How many eggs can you eat?",
            "Wie viele Eier kannst du essen?",
        ),
        (
            grammar.where_question,
            "gehen past Maria",
            "Where did Maria go?",
            "Wohin ist Maria gegangen?",
        ),
        (grammar.where_question, "wohnen you", "Where do you live?", "Wo wohnst du?"),
        (
            grammar.when_question,
            "when ankommen bus the present",
            "When does the bus arrive?",
            "Wann kommt der Bus an?",
        ),
        (
            grammar.who_question,
            "öffnen door the want_to",
            "Who wants to open the door?",
            "Wer will die Tür öffnen?",
        ),
        (grammar.question, "perfect Paul sehen I", "Has Paul seen me?", "Hat Paul mich gesehen?"),
        (
            grammar.comparison,
            "uncle her rich son your present",
            "Her uncle is richer than your son.",
            "Ihr Onkel ist reicher als dein Sohn.",
        ),
        (
            grammar.comparison,
            "I ill baker the past",
            "I was as ill as the baker.",
            "Ich war so krank wie der Bäcker.",
        ),
        (
            grammar.today,
            "today_is Friday May",
            "Today is Friday, the third of May.",
            "Heute ist Freitag, der dritte Mai.",
        ),
        (
            grammar.statement,
            "legen I key the under bed tomorrow future",
            "Tomorrow I will put the key under the bed.",
            "Morgen werde ich den Schlüssel unter das Bett legen.",
        ),
        (
            grammar.statement,
            "gehören dog the man he",
            "The dog of the man does not belong to him.",
            "Der Hund des Mannes gehört ihm nicht.",
        ),
    ],
)
def test_every_kind_of_sentence(
    kind: Callable[[Dice], tuple[str, str]], wanted: str, english: str, german: str
) -> None:
    dice = Loaded(wanted)
    drawn = next(
        (target for source, target in (kind(dice) for _ in range(20_000)) if source == english),
        "never drawn",
    )
    assert drawn == german


@pytest.fixture(scope="module")
def drawn() -> list[tuple[str, str]]:
    dice = Dice(5)
    return [grammar.sentence(dice) for _ in range(60_000)]


def test_an_english_sentence_has_one_german(drawn: list[tuple[str, str]]) -> None:
    assert len(set(drawn)) == len({english for english, _ in drawn})


def test_there_is_variety(drawn: list[tuple[str, str]]) -> None:
    assert len(set(drawn)) > 0.9 * len(drawn)
    assert 8 <= sum(len(english.split()) for english, _ in drawn) / len(drawn) <= 12
    assert 1000 < len({word for _, german in drawn for word in german.split()}) < 5000


def test_sentences_are_well_formed(drawn: list[tuple[str, str]]) -> None:
    for pair in drawn:
        for text in pair:
            assert text[0].isupper()
            assert text[-1] in ".?"
            assert "  " not in text
            assert " ," not in text
            assert ",," not in text
        assert not {"in dem", "in das", "zu dem", "zu der"} & set(
            map(" ".join, zip(pair[1].split(), pair[1].split()[1:], strict=False))
        )


def test_pairs_are_distinct_and_the_same_for_a_seed() -> None:
    first = grammar.pairs(3000, seed=2)
    assert len({english for english, _ in first}) == len(first) == 3000
    assert first == grammar.pairs(3000, seed=2)
    assert first != grammar.pairs(3000, seed=3)


def test_the_hash_seed_changes_nothing() -> None:
    script = "from demo.grammar import pairs; print(ascii(pairs(500, 1)))"
    runs = [
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,  # demo/ is no part of the package
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout


def test_splits_share_no_sentence_of_either_language(tmp_path: Path) -> None:
    grammar.write(tmp_path, train=5000, valid=200, test=300)
    sizes = {"train": 5000, "valid": 200, "test": 300}
    for language in ("en", "de"):
        lines = {
            name: (tmp_path / f"{name}.{language}").read_text(encoding="utf-8").splitlines()
            for name in sizes
        }
        assert {name: len(lines[name]) for name in sizes} == sizes
        assert len(set().union(*lines.values())) == 5500
    by_hand = dict(grammar.pairs(6060, seed=1))
    sources = (tmp_path / "test.en").read_text(encoding="utf-8").splitlines()
    assert [by_hand[source] for source in sources] == (tmp_path / "test.de").read_text(
        encoding="utf-8"
    ).splitlines()
