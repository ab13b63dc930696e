"""Files of corrections: what counts in them, what does not, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.data.correction_files import Corrected, read_corrected
from dragoman.errors import InputError, OptionError

OLD = """<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en-GB" target-language="de-DE" original="a"><body>
<group><trans-unit id="1" approved="yes"><source>A <g id="1">cup</g><x id="2"/> of
 tea.</source><seg-source>no</seg-source><target>Eine Tasse <bpt id="1">&lt;b&gt;</bpt>Tee.</target>
<alt-trans><source>x</source><target state="final">y</target></alt-trans>
<note>no text</note></trans-unit></group>
<trans-unit id="2"><source>Two.</source><target state="needs-review-translation">Zwei.</target>
</trans-unit>
<trans-unit id="3"><source>Three.</source><target state="signed-off">Drei.</target></trans-unit>
<trans-unit id="4" approved="yes"><source>Four.</source><target></target></trans-unit>
<trans-unit id="5" approved="yes"><source>Five.</source></trans-unit>
</body></file></xliff>"""
NEW = """<?xml version="1.0"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de">
<file id="f"><unit id="1"><originalData><data id="d">&lt;br/&gt;</data></originalData>
<segment state="reviewed"><source>A <pc id="1">cup</pc>.</source>
<target>Eine <pc id="1">Tasse</pc>.</target></segment>
<ignorable><source> </source></ignorable>
<segment state="translated"><source>Two.</source><target>Zwei.</target></segment>
<segment state="final"><source>Three<ph id="2"/>.</source><target>Drei.</target></segment>
</unit></file></xliff>"""
TMX = """<tmx version="1.4"><header srclang="en-US"/><body>
<tu><tuv xml:lang="en-US"><seg>Yes.</seg></tuv><tuv xml:lang="de-AT"><seg>Ja.</seg></tuv></tu>
<tu><tuv xml:lang="en-US"><seg>No.</seg></tuv></tu></body></tmx>"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_what_is_reviewed_in_xliff(tmp_path: Path) -> None:
    old = read_corrected(written(tmp_path, "a.xlf", OLD))
    assert old == [
        Corrected("en", "de", "A cup of tea.", "Eine Tasse Tee."),
        Corrected("en", "de", "Three.", "Drei."),
    ]
    new = read_corrected(written(tmp_path, "a.xliff", NEW))
    assert new == [
        Corrected("en", "de", "A cup.", "Eine Tasse."),
        Corrected("en", "de", "Three.", "Drei."),
    ]
    whole = read_corrected(tmp_path / "a.xlf", ("en", "de"), unreviewed=True)
    assert [one.source for one in whole] == ["A cup of tea.", "Two.", "Three."]


def test_other_languages_are_left_out(tmp_path: Path) -> None:
    file = written(tmp_path, "a.xlf", OLD)
    with pytest.raises(InputError, match="no translations from en to fr"):
        read_corrected(file, ("en", "fr"))
    assert len(read_corrected(file, ("en", "de"))) == 2


def test_nothing_reviewed_is_said(tmp_path: Path) -> None:
    text = NEW.replace('"reviewed"', '"initial"').replace('"final"', '"initial"')
    with pytest.raises(InputError, match=r"3 translations, none .* --unreviewed"):
        read_corrected(written(tmp_path, "a.xlf", text))


def test_a_memory_and_tables(tmp_path: Path) -> None:
    memory = read_corrected(written(tmp_path, "a.tmx", TMX))
    assert memory == [Corrected("en", "de", "Yes.", "Ja.")]
    table = read_corrected(written(tmp_path, "a.en-de.tsv", "Yes.\tJa.\nNo.\t\n"))
    assert table == [Corrected("en", "de", "Yes.", "Ja.")]
    plain = written(tmp_path, "plain.tsv", "Yes.\tJa.\n")
    assert read_corrected(plain, ("en", "at")) == [Corrected("en", "at", "Yes.", "Ja.")]
    with pytest.raises(OptionError, match="--from and --to"):
        read_corrected(plain)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.xlf", '<!DOCTYPE x [<!ENTITY a "aaaa">]><xliff>&a;</xliff>', "declares an entity"),
        ("a.xlf", "<tmx/>", "begins with <tmx>"),
        ("a.xlf", "<xliff>" + "<g>" * 300, "nested more than 200 deep"),
        ("a.xlf", "<xliff><file", "unclosed token"),
        ("a.xlf", "", "no element found"),
        ("a.xlf", "<xliff><x " + "a" * 8_000_000, "holds a tag of more than"),
        ("a.xlf", "\x00\x01\x02", "not well-formed"),
        ("a.xlf", "<xliff/>", "no translations"),
        ("a.tmx", '<!DOCTYPE x [<!ENTITY a "aaaa">]><tmx>&a;</tmx>', "declares an entity"),
        ("a.en-de.tsv", "no tab\n", "write source, tab, target"),
        ("a.docx", "x", "is not a file of corrections; these are read: .tmx, .tsv"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_corrected(written(tmp_path, name, text), ("en", "de"))
    assert len(str(error.value)) < 400


def test_a_folder_or_nothing_is_no_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.tmx"):
        with pytest.raises(InputError, match="does not exist or is not a file"):
            read_corrected(path)


def test_a_huge_text_is_skipped(tmp_path: Path) -> None:
    text = NEW.replace("Eine <pc", "E" * 1_100_000 + " <pc")
    found = read_corrected(written(tmp_path, "a.xlf", text))
    assert [one.target for one in found] == ["Drei."]
