"""benchmarks/copied.py: names and numbers that a translation has kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

COPIED = Path(__file__).parents[2] / "benchmarks" / "copied.py"


def copied(*files: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, COPIED, *files], capture_output=True, text=True, check=False
    )


def test_what_source_and_reference_share_is_looked_for(tmp_path: Path) -> None:
    texts = {
        "source": "Ama saw Kofi in May 2021.\nIt cost 1,500.50, they say.\n",
        "reference": "Ama hunuu Kofi 2021.\nNe boɔ yɛ 1,500.50.\n",
        "translation": "Ama hunuu Kofe 2021\nNe boɔ yɛ 1,500 they.\n",
    }
    files = [tmp_path / name for name in texts]
    for file, text in zip(files, texts.values(), strict=True):
        file.write_text(text, encoding="utf-8")
    assert copied(*files).stdout == "names: 1 of 2 (50.0%)\nnumbers: 1 of 2 (50.0%)\n"
    assert copied(*files[:2]).stdout == "names: 2 of 3 (66.7%)\nnumbers: 2 of 2 (100.0%)\n"


def test_files_that_do_not_match(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("a\n", encoding="utf-8")
    two.write_text("a\nb\n", encoding="utf-8")
    for files in ([one, two], [one]):
        done = copied(*files)
        assert done.returncode == 1
        assert "equally many lines" in done.stderr
