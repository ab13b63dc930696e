"""benchmarks/calibration_text.py: the same pairs every time, and the command that names them."""

from __future__ import annotations

import gzip
import lzma
import subprocess
import sys
from pathlib import Path

RECIPE = Path(__file__).parents[2] / "benchmarks" / "calibration_text.py"


def corpora(folder: Path) -> Path:
    for name in ("en-de/news", "en-de/more", "en-de/valid", "multi30k"):
        (folder / name).mkdir(parents=True)
    for side in ("en", "de"):
        news = "".join(f"{side} news {number}\n" for number in range(30)) + "\n"
        (folder / f"en-de/news/newstest2013.{side}").write_text(news)
        captions = "".join(f"{side} caption {number}\n" for number in range(30))
        (folder / f"multi30k/val.{side}.gz").write_bytes(gzip.compress(captions.encode()))
        debates = "".join(f"{side} debate {number}\n" for number in range(30))
        (folder / f"en-de/europarl.{side}.xz").write_bytes(lzma.compress(debates.encode()))
    for kind in ("valid/wmt21-24", "more/microsoft-docs", "more/adobe-docs"):
        rows = "".join(f"en {kind} {number}\tde {kind} {number}\n" for number in range(30))
        (folder / f"en-de/{kind}.tsv.xz").write_bytes(
            lzma.compress(f"{rows}only one side\n".encode())
        )
    return folder


def run(*words: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, RECIPE, *words], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_pairs_stay_together_and_are_the_same_again(tmp_path: Path) -> None:
    given = corpora(tmp_path / "corpora")
    assert run(given, tmp_path / "out", "--count", "7").startswith("newstest2013: 7 pairs\n")
    run(given, tmp_path / "again", "--count", "7")
    for kind in ("newstest2013", "wmt21-24", "multi30k", "adobe-docs", "europarl"):
        english = (tmp_path / "out" / f"{kind}.en").read_text().splitlines()
        german = (tmp_path / "out" / f"{kind}.de").read_text().splitlines()
        assert len(set(english)) == 7
        assert [line[2:] for line in english] == [line[2:] for line in german]
        assert (tmp_path / "again" / f"{kind}.en").read_text().splitlines() == english


def test_the_command_names_the_source_first(tmp_path: Path) -> None:
    words = run(tmp_path, Path("text"), "--command", "de-en").split()
    assert words[:4] == ["dragoman", "calibrate", "-m", "dragoman/shipped-models/de-en"]
    assert words[4:6] == ["text/newstest2013.de", "text/newstest2013.en"]
    assert len(words) == 4 + 12


def test_what_a_model_was_trained_on_is_left_out(tmp_path: Path) -> None:
    given = corpora(tmp_path / "corpora")
    trained = tmp_path / "trained"
    trained.mkdir()
    rows = "".join(f"en debate {number}\tde debate {number}\n" for number in range(25))
    (trained / "europarl.tsv").write_text(rows)
    run(given, tmp_path / "out", "--trained", trained)
    kept = (tmp_path / "out" / "europarl.en").read_text().splitlines()
    assert sorted(kept) == [f"en debate {number}" for number in range(25, 30)]
    assert len((tmp_path / "out" / "multi30k.en").read_text().splitlines()) == 30
