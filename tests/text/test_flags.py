"""Flags: each on what it should see and silent on what is right, in several scripts."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.flags import flags

ANY_TEXT = st.text(
    st.characters(min_codepoint=0, max_codepoint=0x10FFFF, categories=None), max_size=40
)
EN = "The committee met on Tuesday to discuss the new budget for the coming year."
DE = (
    "Der Ausschuss traf sich am Dienstag, "
    "um den neuen Haushalt für das kommende Jahr zu besprechen."
)

RIGHT = [
    (EN, DE),
    ("It is raining in Kumasi today.", "Osuo retɔ wɔ Kumasi ɛnnɛ."),
    ("I like to eat apples in the morning.", "我喜欢在早上吃苹果。"),
    ("我喜欢在早上吃苹果。", "I like to eat apples in the morning."),
    ("The president visited the hospital yesterday.", "زار الرئيس المستشفى أمس."),
    ("", ""),
    # repetition
    ("That is extremely good.", "Das ist sehr sehr gut."),
    ("Ha ha ha, very funny.", "Ha ha ha, sehr lustig."),
    ("哈哈哈哈，很好笑", "Ha ha ha ha, very funny"),
    ("No, no, no!", "不，不，不！"),
    (
        "He lost 1 000 000 000 euros -------- really ......",
        "Er verlor 1 000 000 000 Euro -------- wirklich ......",
    ),
    ("See Figure 1, Figure 2 and Figure 3.", "Siehe Abbildung 1, Abbildung 2, Abbildung 3."),
    ("It cost a billion.", "Ɛyɛ ɔpepepem."),  # three times "pe" within a word is good Twi
    ("And he and his brother and his mother stayed.", "Ɔne ne nua ne ne maame na wɔtenaa hɔ."),
    ("Type III, VIII and XXX.", "Typ III, VIII und XXX."),
    # copied
    (
        "Angela Merkel, Barack Obama and François Hollande",
        "Angela Merkel, Barack Obama und François Hollande",
    ),
    ("The New York Times", "The New York Times"),
    ("https://example.com/one/two/three?four=five", "https://example.com/one/two/three?four=five"),
    ("GDP: 3.5%", "GDP: 3.5%"),
    ("Tom is in Berlin.", "Tom ist in Berlin."),
    ("a² + b² = c²", "a² + b² = c²"),
    ("x + y = z", "x + y = z"),
    # numbers
    ("It costs 1,000.50 dollars.", "Es kostet 1.000,50 Dollar."),
    ("It costs 1,234,567 dollars.", "Es kostet 1 234 567 Dollar."),
    ("It costs 12'345 francs.", "Es kostet 12\u00a0345 Franken."),
    ("On 05/03/2012 at 7:30.", "Am 3. Mai 2012 um 7.30 Uhr."),
    ("On 3 May 2012.", "Am 03.05.12."),
    ("I have 3 cats.", "Ich habe drei Katzen."),
    ("Rows 4 and 5, and 5 again.", "Die Reihen 4 und 5, und noch einmal die 5 (5)."),
    ("In 2012 and in 2012 again.", "2012 gleich zweimal."),
    ("I have three cats.", "Ich habe 3 Katzen."),
    ("There were twenty of us.", "Wir waren 20."),
    ("In the 1980s.", "In den 80er Jahren."),
    ("In 2021, 45 people came.", "في 2021 جاء ٤٥ شخصا."),
    ("There are 3 million of them.", "Es sind 3.000.000."),
    ("30,000 people came.", "来了3万人。"),
    ("It was 25 then and 25 now.", "Damals wie heute 25."),
    ("90 years old", "９０歳"),
    # protected
    ("Dear {name}, see <b>https://a.org/x?y=1</b>.", "Siehe <b>https://a.org/x?y=1</b>, {name}."),
    ("100% of it", "100%ige Sache, zu 50 %ig und 50 % der"),
]


@pytest.mark.parametrize(("source", "target"), RIGHT)
def test_right_translations_have_no_flag(source: str, target: str) -> None:
    assert flags(source, target) == ()


WRONG = [
    (
        "repetition",
        EN,
        "Der Ausschuss der Ausschuss der Ausschuss traf sich am Dienstag, "
        "um den Haushalt zu besprechen.",
    ),
    ("repetition", EN, DE + " und und und"),
    ("repetition", EN, DE + " zu besprechen, zu besprechen, zu besprechen"),
    ("repetition", "No, no, no!", "Nein, nein, nein, nein, nein, nein!"),
    ("repetition", EN, DE + " Hahahahahahaha"),
    ("repetition", "I like to eat apples in the morning.", "我喜欢在早上吃苹果吃苹果吃苹果。"),
    ("repetition", "He was very angry about it.", "他非常生气气气气气。"),
    ("repetition", "It is raining in Kumasi today.", "Osuo retɔ retɔ retɔ wɔ Kumasi."),
    ("repetition", EN, "das Haus und das Haus von das Haus mit das Haus in das Haus am Dienstag"),
    ("omission", EN, "Der Ausschuss."),
    ("omission", EN, ""),
    ("omission", "ok", " "),
    (
        "omission",
        "The president visited the hospital and spoke with all of the patients there.",
        "زار الرئيس",
    ),
    ("omission", "The committee met on Tuesday to discuss the new budget.", "委员会"),
    ("copied", EN, EN),
    ("copied", EN, EN.upper().replace("THE", "the").lower().capitalize()),
    ("copied", "I like the apples here.", "I like die apples here."),
    ("copied", "我喜欢吃苹果。", "我喜欢吃苹果。"),
    ("copied", "زار الرئيس المستشفى أمس مساء", "زار الرئيس المستشفى أمس مساء"),
    ("copied", "मैं हिन्दी में लिखता हूँ", "मैं हिन्दी में लिखता हूँ"),
    ("repetition", "I write in Hindi today.", "मैं आज हिन्दी हिन्दी हिन्दी में लिखता हूँ"),
    ("copied", "Osuo retɔ wɔ Kumasi ɛnnɛ.", "Osuo retɔ wɔ Kumasi ɛnnɛ."),
    ("numbers", "He is 15 years old.", "Er ist 50 Jahre alt."),
    ("numbers", "He is 3 years old.", "Er ist 5 Jahre alt."),
    ("numbers", "He is 15 years old.", "Er ist 150 Jahre alt."),
    ("numbers", "It happened in 1995 here.", "Es geschah hier damals."),
    ("numbers", "It happened here then.", "Es geschah hier 1995."),
    ("numbers", "It costs 3.50 euros.", "Es kostet 3,80 Euro."),
    ("numbers", "Account 3704 0532 at the bank", "Konto 3704 0532 0532 bei der Bank"),
    ("numbers", "It costs 1,000 euros.", "Es kostet 10,000 Euro."),
    ("numbers", "جاء ٤٥ شخصا", "54 people came"),
    ("numbers", "Take 200 mg daily.", "Täglich einnehmen."),
    ("protected", "Hello {name}, welcome.", "Hallo {Name}, willkommen."),
    ("protected", "See https://a.org/x.", "Siehe https://a.org/y."),
    ("protected", "Write to me@a.org now.", "Schreib jetzt an mich."),
    ("protected", "Press <b>here</b> now.", "Jetzt <b>hier drücken."),
    ("protected", "You have %d new mails.", "Sie haben neue Post %d %s."),
    ("protected", "I love you 😍", "Ich liebe dich"),
    ("garbled", "I love you ç", "Ich liebe dich \ufffd\ufffd"),
]


@pytest.mark.parametrize(("name", "source", "target"), WRONG)
def test_wrong_translations_have_their_flag(name: str, source: str, target: str) -> None:
    assert flags(source, target) == (name,)


def test_several_flags_come_in_order() -> None:
    assert flags("See https://a.org: it is 15.", "it 16 it it it") == (
        "repetition",
        "numbers",
        "protected",
    )
    assert flags(EN + " {x} 15", "") == ("omission", "numbers", "protected")


def test_a_learnt_ratio_decides_what_is_short() -> None:
    """Half as long is suspect where translations vary by a tenth, and not where they are half as
    long by nature."""
    source = "x" * 100
    target = "y" * 50
    assert flags(source, target) == ()
    assert flags(source, target, (0.0, 0.1)) == ("omission",)
    assert flags(source, target, (math.log(0.5), 0.1)) == ()
    # Short sentences get more room: 0.5 > exp(-2.5 * hypot(0.1, 1.5 / 4)).
    assert flags(source[:16], target[:8], (0.0, 0.1)) == ()


@given(ANY_TEXT, ANY_TEXT)
def test_any_text_gets_an_answer(source: str, target: str) -> None:
    order = ["repetition", "omission", "copied", "numbers", "protected", "garbled"]
    found = flags(source, target)
    assert list(found) == [name for name in order if name in found]
    assert not {"repetition", "omission", "numbers", "protected", "garbled"} & set(
        flags(source, source)
    )


@pytest.mark.parametrize(
    "unit", ["a", "a ", "1 ", "a@", "{a", "<a", "&a", "__a_", "[[", "你", "%1$"]
)
def test_a_long_line_is_quick(unit: str) -> None:
    text = (unit * 40_000)[:40_000]
    start = time.process_time()
    flags(text, text + "b")
    assert time.process_time() - start < 4


def test_thousands_of_other_numbers_are_quick() -> None:
    start = time.process_time()
    found = flags(
        " ".join(map(str, range(20_000, 30_000))), " ".join(map(str, range(50_000, 60_000)))
    )
    assert "numbers" in found
    assert time.process_time() - start < 5
