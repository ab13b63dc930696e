"""Glossary files: TSV, CSV and TBX give the same terms, and what is wrong with a file is said in a
sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.errors import InputError
from dragoman.text import glossary_files
from dragoman.text.glossary import Glossary, Term

TBX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE martif SYSTEM "TBXBasiccoreStructV02.dtd">
<martif type="TBX-Basic" xml:lang="en"><text><body>
<termEntry id="1"><descrip type="subjectField">finance</descrip>
 <langSet xml:lang="en"><tig><term>bank account</term></tig></langSet>
 <langSet xml:lang="de"><tig><term>Bankkonto</term></tig>
  <tig><term>Bankkontos</term></tig></langSet>
 <langSet xml:lang="fr"><tig><term>compte</term></tig></langSet>
</termEntry>
<termEntry id="2"><langSet xml:lang="en"><tig><term>lonely</term></tig></langSet></termEntry>
</body></text></martif>
"""
TBX_3 = """<tbx xmlns="urn:iso:std:iso:30042:ed-2" type="TBX-Basic" style="dca" xml:lang="en">
<text><body><conceptEntry id="c1">
 <langSec xml:lang="en-GB"><termSec><term>bank account</term></termSec></langSec>
 <langSec xml:lang="de-DE"><termSec><term>Bankkonto</term></termSec>
  <termSec><term>Bankkontos</term></termSec></langSec>
</conceptEntry></body></text></tbx>
"""


def load(folder: Path, name: str, content: str) -> Glossary:
    (folder / name).write_text(content, encoding="utf-8")
    return Glossary.load(folder / name)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.tsv", "bank account\tBankkonto\tBankkontos\n"),
        ("t.txt", "# comment\nbank account\tBankkonto\tBankkontos\r\n"),
        ("t.csv", "bank account,Bankkonto,Bankkontos\n"),
        ("t.csv", "Source,Target,Other\n\nbank account,Bankkonto,Bankkontos\n"),
        ("t.csv", '\ufeff"bank account";"Bankkonto";Bankkontos\r\n'),
        ("t.en-de.csv", '"bank account",Bankkonto,"Bankkontos"'),
        ("t.TBX", TBX),
        ("t.tbx", TBX_3),
    ],
)
def test_every_format_gives_the_same_terms(tmp_path: Path, name: str, content: str) -> None:
    found = load(tmp_path, name, content).find("two bank accounts", "en", "de")
    assert [(term.source, term.forms) for term in found] == [
        ("bank account", ("Bankkonto", "Bankkontos"))
    ]


def test_languages_decide_which_terms_are_meant(tmp_path: Path) -> None:
    terms = load(tmp_path, "t.tbx", TBX)
    assert [term.forms for term in terms.find("mon compte", "fr", "de")] == [
        ("Bankkonto", "Bankkontos")
    ]
    assert [term.forms for term in terms.find("das Bankkonto", "de", "en")] == [("bank account",)]
    assert terms.find("bank account", "en", "es") == []
    named = load(tmp_path, "terms.en-de.tsv", "bank\tBank\n")
    assert named.find("bank", "de", "en") == []
    assert named.find("bank", "en", "de") == [Term("bank", ("Bank",), ("en", "de"))]


BOMB = """<!DOCTYPE tbx [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<tbx><term>&b;</term></tbx>"""
OUTSIDE = """<!DOCTYPE tbx [<!ENTITY secret SYSTEM "file:///etc/passwd">]>
<tbx><term>&secret;</term></tbx>"""


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.tbx", "<tbx>", "line 1: not TBX"),
        ("t.tbx", "no xml", "line 1: not TBX"),
        ("t.tbx", "<tbx></tbx>", "has no concept with terms in two languages"),
        ("t.tbx", BOMB, "line 1: declares an entity"),
        ("t.tbx", OUTSIDE, "line 1: declares an entity"),
        ("t.tbx", TBX.replace("compte", "x" * 501), "line 4: a term of 501 characters"),
        ("t.csv", "bank\n", "line 1: no comma; write the source term, a comma"),
        ("t.csv", "bank, \n", "line 1: an empty target term"),
        ("t.csv", 'a,b\n"c,d\n', "line 2"),
    ],
)
def test_faults_are_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        load(tmp_path, name, content)
    assert str(tmp_path / name) in str(error.value)


def test_a_large_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossary_files, "MAX_BYTES", 20)
    with pytest.raises(InputError, match="has over 20 bytes"):
        load(tmp_path, "t.tsv", "bank\tBank\n" * 3)
    monkeypatch.setattr(glossary_files, "MAX_BYTES", 10_000)
    monkeypatch.setattr(glossary_files, "MAX_TERMS", 5)
    with pytest.raises(InputError, match="has over 5 terms"):
        load(tmp_path, "t.tbx", TBX)
