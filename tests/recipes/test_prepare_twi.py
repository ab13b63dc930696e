"""recipes/prepare_twi.py on a few lines of each file that it reads."""

from __future__ import annotations

import gzip
import lzma
import re
import subprocess
import sys
from pathlib import Path

PREPARE = Path(__file__).parents[2] / "recipes" / "prepare_twi.py"
AKUAPEM = ["Bere no", "Bere a ɛyɛ kɛse", "Bere ne bere"]
ASANTE = ["Berɛ no", "Berɛ a ɛyɛ kɛseɛ", "Berɛ ne berɛ"]


def write(folder: Path) -> None:
    english = ["The time", "The time that is great", "Time and time"]
    for kind, lines in (("akuapem", AKUAPEM), ("asante", ASANTE)):
        pairs = "".join(f"{one}\t{other}\n" for one, other in zip(english, lines, strict=True))
        (folder / f"ebible.engbsb-twi-{kind}.tsv.gz").write_bytes(gzip.compress(pairs.encode()))
    (folder / "ghananlp_verified.en-twi.tsv.gz").write_bytes(
        gzip.compress('She said: "Time."\tƆkaa sɛ "Bere."\n'.encode())
    )
    (folder / "mafand.train.en").write_text(
        "It is chanced upon.\nAma and Kofi, 2021.\nIt was found.\n", encoding="utf-8"
    )
    (folder / "mafand.train.twi").write_text(
        "Ɛwɔ hɔ berɛ yi.\nAma ne Kofi, 2021.\nƐbaeɛ.\n", encoding="utf-8"
    )
    for part in ("dev", "test"):
        (folder / f"mafand.{part}.en").write_text("It was found.\n", encoding="utf-8")
        (folder / f"mafand.{part}.twi").write_text("Wɔhunuu.\n", encoding="utf-8")


def write_german(folder: Path) -> None:
    (folder / "news").mkdir()
    for side in ("en", "de"):
        lines = "".join(f"{side} {number}\n" for number in range(40))
        (folder / f"europarl.{side}.xz").write_bytes(lzma.compress(lines.encode()))
        for year in range(2008, 2013):
            (folder / "news" / f"newstest{year}.{side}").write_text(
                f"{side} {year}\n", encoding="utf-8"
            )
    (folder / "tatoeba.en-de.tsv.gz").write_bytes(gzip.compress(b"Go.\tGeh.\tCC BY\n"))


def prepare(*folders: Path) -> None:
    subprocess.run([sys.executable, PREPARE, *folders], check=True)


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def test_twi_is_respelt_as_a_target_and_kept_as_a_source(tmp_path: Path) -> None:
    write(tmp_path)
    prepare(tmp_path, tmp_path / "out")
    assert lines(tmp_path / "out" / "ghananlp.en-twi.tsv") == ['She said: "Time."\tƆkaa sɛ “Berɛ.”']
    assert lines(tmp_path / "out" / "ghananlp.twi-en.tsv") == ['Ɔkaa sɛ "Bere."\tShe said: “Time.”']
    mafand = lines(tmp_path / "out" / "mafand.en-twi.tsv")
    assert mafand == [
        "It is found.\tƐwɔ hɔ berɛ yi.",
        "Ama and Kofi, 2021.\tAma ne Kofi, 2021.",
    ]  # not what dev has
    assert lines(tmp_path / "out" / "dev.en") == ["It was found."]
    both = lines(tmp_path / "out" / "ghananlp.both.tsv")
    assert both == lines(tmp_path / "out" / "ghananlp.en-twi.tsv") + lines(
        tmp_path / "out" / "ghananlp.twi-en.tsv"
    )
    assert not (tmp_path / "out" / "pieces.tsv").exists()


def test_other_names_and_numbers_stand_on_both_sides(tmp_path: Path) -> None:
    write(tmp_path)
    prepare(tmp_path, tmp_path / "out")
    renamed = lines(tmp_path / "out" / "names.en-twi.tsv")
    assert len(renamed) == 6  # six of the one sentence that has names
    for line in renamed:
        english, twi = line.split("\t")
        one, other, year = re.fullmatch(r"(\w+) and (\w+), (\d{4})\.", english).groups()  # type: ignore[union-attr]
        assert twi == f"{one} ne {other}, {year}."
    assert len({line[-5:] for line in renamed}) > 1
    assert len({line.split()[0] for line in renamed}) > 1


def test_english_that_becomes_german_has_a_tag(tmp_path: Path) -> None:
    write(tmp_path)
    write_german(tmp_path)
    prepare(tmp_path, tmp_path / "out", tmp_path)
    europarl = lines(tmp_path / "out" / "europarl.both.tsv")
    assert europarl[:2] == ["» en 0\tde 0", "» en 2\tde 2"]
    assert europarl[20:22] == ["de 0\ten 0", "de 2\ten 2"]
    assert len(europarl) == 40
    assert lines(tmp_path / "out" / "tatoeba.both.tsv") == ["» Go.\tGeh.", "Geh.\tGo."]
    news = [f"» en {year}\tde {year}" for year in range(2008, 2013)]
    assert lines(tmp_path / "out" / "pieces.tsv") == [
        "» en 0\tde 0",
        "» en 32\tde 32",
        "» Go.\tGeh.",
        *news,
    ]
    assert lines(tmp_path / "out" / "pieces.de-en.tsv")[:3] == [
        "de 0\ten 0",
        "de 32\ten 32",
        "Geh.\tGo.",
    ]
