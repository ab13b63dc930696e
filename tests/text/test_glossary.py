"""The glossary: what is found where, that the file's faults are named, and that many terms cost
no more than few."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InputError
from dragoman.text import glossary as module
from dragoman.text.glossary import Glossary, Term, accuracy, count_present, present
from dragoman.text.glossary_files import MAX_LINES
from dragoman.text.inflection import _LANGUAGES, is_form, key_of


def glossary(*sources: str) -> Glossary:
    return Glossary([Term(source, (f"<{source}>",)) for source in sources])


def found(text: str, *sources: str) -> list[str]:
    return [term.source for term in glossary(*sources).find(text)]


@pytest.mark.parametrize(
    ("text", "sources", "expected"),
    [
        ("The bank account at the bank.", ["bank", "bank account"], ["bank account", "bank"]),
        ("The bank account.", ["bank", "bank account"], ["bank account"]),
        ("The embankment, banks and bank2.", ["bank"], []),
        ("(bank)", ["bank"], ["bank"]),
        ("BANK", ["bank"], ["bank"]),
        ("the bank", ["Bank"], []),  # one word with a capital letter: May is not may
        ("a may BANK", ["Bank", "May"], ["Bank"]),
        ("Is it IT?", ["IT"], ["IT"]),
        ("buy acme widget or ACME WIDGET", ["Acme Widget"], ["Acme Widget", "Acme Widget"]),
        ("Polish the Polish shoes", ["polish", "Polish"], ["Polish", "Polish"]),
        ("polish the Polish shoes", ["polish", "Polish"], ["polish", "Polish"]),
        (
            "b c then a b c d",
            ["a b", "b c d", "c"],
            ["c", "b c d"],
        ),  # the longest wins, not the first
        ("a b", ["a b c", "a"], ["a"]),  # a term that the text ends within
        ("two  banks\tand  a bank\u00a0account", ["bank account"], ["bank account"]),
        ("e-mail via AT&T in C++", ["e-mail", "AT&T", "C++", "C"], ["e-mail", "AT&T", "C++"]),
        ("Die Straße, STRASSE", ["straße"], ["straße", "straße"]),
        ("我在银行开户", ["银行", "开户", "行"], ["银行", "开户"]),
        ("使用Python编程", ["Python"], ["Python"]),
        ("ผมไปธนาคารแล้ว", ["ธนาคาร"], ["ธนาคาร"]),
        ("ذهبت إلى البنك، البنك الكبير", ["البنك", "بنك"], ["البنك", "البنك"]),
        ("Ɔkɔɔ sikakorabea hɔ", ["sikakorabea", "ɔkɔɔ"], ["ɔkɔɔ", "sikakorabea"]),
        ("ɔ̃kɔ", ["ɔ"], []),  # an accent that has no letter of its own belongs to the word
        ("हिन्दी", ["हिन"], []),
        ("caf\u0065\u0301", ["café"], ["café"]),
        ("bank bank bank", ["bank"], ["bank", "bank", "bank"]),  # every occurrence counts
        ("", ["bank"], []),
    ],
)
def test_find(text: str, sources: list[str], expected: list[str]) -> None:
    assert found(text, *sources) == expected


@pytest.mark.parametrize(
    ("language", "text", "sources", "expected"),
    [
        ("en", "two bank accounts", ["bank", "bank account"], ["bank account"]),
        ("en", "Banks lend to other banks.", ["bank"], ["bank", "bank"]),
        ("en", "three houses and a house", ["house"], ["house", "house"]),
        ("en", "ACME WIDGET, acme widgets", ["Acme Widget"], ["Acme Widget", "Acme Widget"]),
        ("en", "cities, boxes, PCs", ["city", "box", "PC"], ["city", "box", "PC"]),
        ("en", "buses, cases, classes", ["bus", "case", "class"], ["bus", "case", "class"]),
        ("en", "banking, banker, embankments", ["bank"], []),
        ("de", "Das Messer auf der Messe", ["Messe"], ["Messe"]),
        ("en", "the news are new", ["new"], ["new"]),
        ("en-GB", "the banks", ["bank"], ["bank"]),
        ("de", "die Häuser und Verträge", ["Haus", "Vertrag"], ["Haus", "Vertrag"]),
        ("de", "des Kontos, der Banken", ["Konto", "Bank"], ["Konto", "Bank"]),
        ("de", "ein Bankkonto", ["Bank"], []),
        ("de", "die Bären in der Bar", ["Bar"], ["Bar"]),
        ("fr", "les comptes", ["compte"], ["compte"]),
        ("es", "las ciudades", ["ciudad"], ["ciudad"]),
        ("it", "le banche e i conti", ["banca", "conto"], ["banca", "conto"]),
        ("ru", "в банке, банки", ["банк"], ["банк", "банк"]),
        ("tw", "the banks", ["bank"], []),  # a language whose endings are not known
    ],
)
def test_inflected_terms(language: str, text: str, sources: list[str], expected: list[str]) -> None:
    assert [term.source for term in glossary(*sources).find(text, language)] == expected


def test_where_a_term_occurs() -> None:
    text = "Two  bank accounts, one bank."
    places = glossary("bank", "bank account").occurrences(text, "en")
    normalised = "Two bank accounts, one bank."
    assert [normalised[one.start : one.end] for one in places] == ["bank accounts", "bank"]


def test_what_was_prepared_is_not_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = Glossary([Term("bank account", ("Bankkonto",))])
    terms.prepare("en", "de")
    monkeypatch.setattr(module, "_Index", None)
    (term,) = terms.find("My bank accounts.", "en", "de")
    assert term.forms == ("Bankkonto",)


def test_terms_of_other_languages_are_not_meant() -> None:
    terms = Glossary(
        [Term("gift", ("Geschenk",), ("en", "de")), Term("Gift", ("poison",), ("de", "en"))]
    )
    assert [term.forms for term in terms.find("a gift", "en", "de")] == [("Geschenk",)]
    assert [term.forms for term in terms.find("Das Gift", "de-AT", "en")] == [("poison",)]
    assert terms.find("a gift", "en", "fr") == []


@given(
    st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=6),
    st.text("abc ", max_size=20),
)
def test_find_is_the_slow_search(terms: list[str], text: str) -> None:
    words = text.split()
    sources = {" ".join(term) for term in terms}
    inside = [
        (-len(s), at, s)
        for s in sources
        for at in range(len(words))
        if words[at : at + len(s.split())] == s.split()
    ]
    free = set(range(len(words)))
    kept = []
    for _, at, source in sorted(inside):
        places = set(range(at, at + len(source.split())))
        if places <= free:
            free -= places
            kept.append((at, source))
    assert found(text, *sources) == [source for _, source in sorted(kept)]


@pytest.mark.parametrize(
    ("forms", "target", "expected"),
    [
        (("das Konto",), "Das Konto ist leer.", True),
        (("Konto",), "Bankkonto", False),
        (("Konto", "Kontos"), "des Kontos.", True),
        (("konto",), "KONTO", False),
        (("账户",), "我的账户在这里", True),
        (("C++",), "in C++.", True),
        (("a b",), "a c b", False),
        (("ɛyɛ",), "Ɛyɛ", True),
        (("x",), "", False),
    ],
)
def test_present(forms: tuple[str, ...], target: str, expected: bool) -> None:
    assert present(Term("any", forms), target) is expected


def test_accuracy() -> None:
    terms = Glossary([Term("bank", ("Bank",)), Term("account", ("Konto", "Kontos"))])
    sources = ["the bank account", "an account", "nothing", "a bank, the bank"]
    targets = ["das Konto", "des Kontos", "Bank", "eine Bank"]
    assert accuracy(terms, sources, targets) == (3, 5)
    twice = ["eine Bank, die Bank"]
    assert accuracy(terms, sources[-1:], twice) == (2, 2)
    assert accuracy(terms, ["two banks"], ["zwei Bank"], ("en", "de")) == (1, 1)


def test_what_lies_in_another_form_does_not_count_twice() -> None:
    assert count_present(("Konto", "das Konto"), "das Konto") == 1
    assert count_present(("Konto", "das Konto"), "Das Konto, ein Konto") == 2


def test_forms_are_not_one_string() -> None:
    with pytest.raises(InputError, match=r"forms of 'bank' are one string; write \('Bank',\)"):
        Term("bank", "Bank")  # type: ignore[arg-type]


def test_load(tmp_path: Path) -> None:
    file = tmp_path / "terms.tsv"
    lines = [
        "\ufeff# comment",
        "",
        "bank\tBank\tBanken\t",
        "Dragoman\tDragoman\r",
        "bank\tBank\tGeldhaus",
        " cafe\u0301 \tCafé",
    ]
    file.write_bytes("\n".join(lines).encode())
    terms = Glossary.load(file)
    assert len(terms) == 3
    assert terms.find("Dragoman's bank at the café") == [
        Term("Dragoman", ("Dragoman",)),
        Term("bank", ("Bank", "Banken", "Geldhaus")),
        Term("café", ("Café",)),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\nbank Bank\n", "line 2: no tab"),
        (b"a\tb\n\n \tBank\n", "line 3: an empty source term"),
        (b"bank\t \tBank", "line 1: an empty target term"),
        (b"a\tb\nbank\tB\xe4nke\n", "line 2: not UTF-8"),
        (b"bank\t" + b"x" * 501, "line 1: a term of 501 characters"),
        (b"a\tb\n" * (MAX_LINES + 1), "100,000 lines"),
    ],
)
def test_faults_of_the_file(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "terms.tsv"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        Glossary.load(file)
    assert str(file) in str(error.value)


def test_no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "none.tsv", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            Glossary.load(path)


def test_empty_terms_are_refused_without_a_file_too() -> None:
    for term in (Term(" ", ("a",)), Term("a", ()), Term("a", ("b", ""))):
        with pytest.raises(InputError, match="empty"):
            Glossary([term])


def test_many_terms_cost_no_more_than_few() -> None:
    generator = random.Random(1)
    words = ["".join(generator.choices("abcdefghij", k=5)) for _ in range(20_000)]
    terms = [
        Term(" ".join(generator.choices(words, k=generator.randint(1, 3))), ("x",))
        for _ in range(50_000)
    ]
    lines = [" ".join(generator.choices(words, k=25)) for _ in range(1000)]
    large = Glossary(terms)
    start = time.process_time()
    count = sum(len(large.find(line)) for line in lines)
    assert count > 1000
    assert time.process_time() - start < 2  # 0.1 s at leisure; a loop over terms takes minutes


@given(st.sampled_from(sorted(_LANGUAGES)), st.text("abcdeinorsuyzäю", min_size=3, max_size=7))
def test_forms_share_their_key(language: str, noun: str) -> None:
    """Forms are looked up by it: one that lacks it would never be found."""
    for old, new in _LANGUAGES[language].pairs:
        form = noun.removesuffix(old) + new
        if noun.endswith(old) and len(noun) - len(old) >= 3:
            assert is_form(form, noun, language)
            assert key_of(form, language) == key_of(noun, language)
