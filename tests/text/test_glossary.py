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
from dragoman.text.glossary import MAX_LINES, Glossary, Term, accuracy, present


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
        ("the bank", ["Bank"], []),
        ("Polish the Polish shoes", ["polish", "Polish"], ["Polish"]),
        ("polish the Polish shoes", ["polish", "Polish"], ["polish", "Polish"]),
        (
            "b c then a b c d",
            ["a b", "b c d", "c"],
            ["c", "b c d"],
        ),  # the longest wins, not the first
        ("a b", ["a b c", "a"], ["a"]),  # a term that the text ends within
        ("two  banks\tand  a bank\u00a0account", ["bank account"], ["bank account"]),
        ("e-mail via AT&T in C++", ["e-mail", "AT&T", "C++", "C"], ["e-mail", "AT&T", "C++"]),
        ("Die Straße, STRASSE", ["straße"], ["straße"]),
        ("我在银行开户", ["银行", "开户", "行"], ["银行", "开户"]),
        ("使用Python编程", ["Python"], ["Python"]),
        ("ผมไปธนาคารแล้ว", ["ธนาคาร"], ["ธนาคาร"]),
        ("ذهبت إلى البنك، البنك الكبير", ["البنك", "بنك"], ["البنك"]),
        ("Ɔkɔɔ sikakorabea hɔ", ["sikakorabea", "ɔkɔɔ"], ["ɔkɔɔ", "sikakorabea"]),
        ("ɔ̃kɔ", ["ɔ"], []),  # an accent that has no letter of its own belongs to the word
        ("हिन्दी", ["हिन"], []),
        ("caf\u0065\u0301", ["café"], ["café"]),
        ("bank bank bank", ["bank"], ["bank"]),
        ("", ["bank"], []),
    ],
)
def test_find(text: str, sources: list[str], expected: list[str]) -> None:
    assert found(text, *sources) == expected


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
    assert found(text, *sources) == list(dict.fromkeys(source for _, source in sorted(kept)))


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
    assert accuracy(terms, sources, targets) == (3, 4)


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
        (b"#\n" * (MAX_LINES + 1), "100,000 lines"),
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
