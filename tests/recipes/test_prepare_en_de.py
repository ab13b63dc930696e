"""recipes/prepare_en_de.py on a few lines of each file that it reads."""

from __future__ import annotations

import gzip
import importlib.util
import lzma
import random
import subprocess
import sys
from pathlib import Path

import pytest

PREPARE = Path(__file__).parents[2] / "recipes" / "prepare_en_de.py"
LONG = (
    "The committee met again on Thursday to discuss the budget.",
    "Der Ausschuss traf sich am Donnerstag erneut zum Haushalt.",
)


@pytest.fixture(scope="module")
def prepare():  # type: ignore[no-untyped-def]
    spec = importlib.util.spec_from_file_location("prepare_en_de", PREPARE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(folder: Path) -> None:
    for name in ("news", "more", "valid", "mono"):
        (folder / name).mkdir(parents=True)
    europarl = [
        LONG,
        ("A test line.", "Eine Testzeile."),
        ("Valid.", "Gültig."),
        ("Short.", "Viel zu lang " * 9),
        ("", "Leer."),
        LONG,
    ]
    for side, language in enumerate(("en", "de")):
        lines = "".join(f"{pair[side]}\n" for pair in europarl)
        (folder / f"europarl.{language}.xz").write_bytes(lzma.compress(lines.encode()))
        for year in range(2008, 2015):
            pair = {2013: ("Valid.", "Gültig."), 2014: ("A test line.", "Eine andere.")}.get(
                year, (f"Year {year}.", f"Jahr {year}.")
            )
            (folder / "news" / f"newstest{year}.{language}").write_text(
                f"{pair[side]}\n", encoding="utf-8"
            )
    (folder / "tatoeba.en-de.tsv.gz").write_bytes(gzip.compress(b"Go!\tGeh!\textra\n"))
    more = {
        "dictionary": "well drill\tBrunnenbohrer\nto help sb.\tjdm. helfen\nbar (steel)\tStange\n",
        "manpages": "Prints the version.\tGibt die Version aus.\n$x=1;{}[]()\t$x=1;{}[]()\n",
        "wiki-postedits": 'He said " yes " ( twice ) .\tEr sagte „ ja “ ( zweimal ) .\n',
    }
    for name, lines in more.items():
        (folder / "more" / f"{name}.tsv.xz").write_bytes(lzma.compress(lines.encode()))
    (folder / "valid" / "wmt21-24.tsv.xz").write_bytes(
        lzma.compress("Later.\tSpäter.\nSooner.\tFrüher.\n".encode())
    )
    sentence = "Das ist ein ganzer Satz.\n"
    mono = f"{sentence}und hier fehlt der Anfang davon.\nZu kurz.\n{sentence}"
    (folder / "mono" / "news.de.xz").write_bytes(lzma.compress(mono.encode()))


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_what_is_kept(tmp_path: Path) -> None:
    write(tmp_path / "in")
    words = [
        sys.executable,
        str(PREPARE),
        str(tmp_path / "in"),
        str(tmp_path / "out"),
        "--europarl",
        "1",
        "--valid",
        "1",
    ]
    subprocess.run([*words, "--source", "de"], check=True)
    train = tmp_path / "out" / "train"
    assert lines(train / "europarl.tsv") == ["\t".join(LONG[::-1])]
    assert lines(train / "news.tsv") == [
        f"Jahr {year}.\tYear {year}." for year in range(2008, 2013)
    ]
    assert lines(train / "tatoeba.tsv") == ["Geh!\tGo!"]
    assert lines(train / "dictionary.tsv") == ["Brunnenbohrer\twell drill"]
    assert lines(train / "documentation.tsv") == ["Gibt die Version aus.\tPrints the version."]
    assert lines(train / "wiki-postedits.tsv") == [
        'Er sagte „ja“ (zweimal).\tHe said "yes" (twice).'
    ]
    assert lines(tmp_path / "out" / "valid" / "newstest2013.tsv") == ["Gültig.\tValid."]
    assert len(lines(tmp_path / "out" / "valid" / "wmt21-24.tsv")) == 1
    assert lines(tmp_path / "out" / "mono" / "news.de") == ["Das ist ein ganzer Satz."]


@pytest.mark.parametrize(
    ("kind", "source", "target"),
    [
        ("upper", "SAVE {name} TO a.txt.", "{name} IN a.txt SPEICHERN."),
        ("title", "Save {name} To a.txt.", "{name} In a.txt Speichern."),
        ("lower", "save {name} to a.txt.", "{name} in a.txt speichern."),
        ("stop", "Save {name} to a.txt", "{name} in a.txt speichern"),
    ],
)
def test_how_people_write(prepare, kind: str, source: str, target: str) -> None:  # type: ignore[no-untyped-def]
    pair = prepare.changed(
        kind, "Save {name} to a.txt.", "{name} in a.txt speichern.", random.Random(1)
    )
    assert pair == (source, target)


def test_typos_stay_in_words(prepare) -> None:  # type: ignore[no-untyped-def]
    source, target = prepare.changed("typos", *LONG, random.Random(1))
    assert target == LONG[1]
    wrong = [
        one for one, other in zip(source.split(), LONG[0].split(), strict=True) if one != other
    ]
    assert 1 <= len(wrong) <= 3


def test_the_share_of_copies(prepare) -> None:  # type: ignore[no-untyped-def]
    draw = random.Random(1)
    copies = [prepare.augmented(*LONG, draw) for _ in range(4000)]
    assert 0.22 < sum(copy is not None for copy in copies) / 4000 < 0.3
    assert sum(copy is not None and copy[0].isupper() for copy in copies) / 4000 == pytest.approx(
        0.05, abs=0.015
    )


def test_what_one_side_has_alone(prepare) -> None:  # type: ignore[no-untyped-def]
    draw = random.Random(1)
    cases = {
        ("Press <b>Save</b>.", "Drücken Sie Speichern."): False,
        ("Press <b>Save</b>.", "Drücken Sie <b>Speichern</b>."): True,
        ("The menus of &app; are here.", "Die Menüs von Glade sind hier."): False,
        ("Provide the files", "Stellt die Dateien bereit."): False,
        ("Provide the files...", "Die Dateien bereitstellen"): True,
        ("Is it 15 < 20?", "Ist 15 < 20?"): True,
    }
    for pair, usable in cases.items():
        assert prepare.is_usable(pair, set(), draw) == usable, pair


def test_a_dash_of_one_side_is_removed(prepare) -> None:  # type: ignore[no-untyped-def]
    assert prepare.without_dash(("Mr President!", "- Herr Präsident!")) == (
        "Mr President!",
        "Herr Präsident!",
    )
    both = ("- One", "– Eins")
    assert prepare.without_dash(both) == both


def test_entities_become_their_characters(prepare) -> None:  # type: ignore[no-untyped-def]
    assert prepare.plain("Mein Bester &#38; ich &amp; du") == "Mein Bester & ich & du"


def test_glosses(prepare) -> None:  # type: ignore[no-untyped-def]
    assert prepare.is_gloss("peace process", "der Friedensprozess")
    assert not prepare.is_gloss("the base rate", "der Leitzins")
    assert not prepare.is_gloss("It is the base rate.", "Das ist der Leitzins.")


def test_the_dictionary_has_the_usual_translations(prepare) -> None:  # type: ignore[no-untyped-def]
    """A translation that hardly ever stands in a pair does not stand beside one that often does."""
    entries = [
        ("spring", "Lenz"),
        ("spring", "Frühling"),
        ("springtide", "Frühling"),
        ("spring", "Quelle"),
        ("source", "Quelle"),
        ("mat", "Matte"),  # words that no text has
        ("mat", "Wechselrahmen"),
        ("in spring", "im Frühling"),
    ]
    together = prepare.Together(entries)
    sentences = [("Every spring.", "Jeden Frühling.")] * 12
    sentences += [("The spring is a source.", "Die Quelle.")] * 3
    assert list(together.counted(iter(sentences))) == sentences
    # Lenz and springtide never stand beside spring and Frühling, which meet twelve times.
    assert together.usual() == [entries[1], *entries[3:7]]
