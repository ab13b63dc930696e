"""benchmarks/paper_bleu.py against values worked out by hand."""

from __future__ import annotations

import math
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "paper_bleu.py"


@pytest.fixture(scope="module")
def tool() -> dict[str, object]:
    return runpy.run_path(str(SCRIPT))


@pytest.mark.parametrize(
    ("line", "how", "expected"),
    [
        ('Er sagt: "Ja", z.B. hier.', {}, 'Er sagt : " Ja " , z.B. hier .'),
        ("Ein Gut-Gelaunter Hund.", {}, "Ein Gut-Gelaunter Hund ."),
        ("Ein Gut-Gelaunter Hund.", {"lowercase": True}, "ein gut-gelaunter hund ."),
        (
            "Ein Gut-Gelaunter Hund.",
            {"split_compounds": True},
            "Ein Gut ##AT##-##AT## Gelaunter Hund .",
        ),
        (
            "Über 1939-45 - und so",
            {"lowercase": True, "split_compounds": True},
            "über 1939 ##AT##-##AT## 45 - und so",
        ),
    ],
)
def test_words(tool: dict[str, Any], line: str, how: dict[str, bool], expected: str) -> None:
    assert tool["words"]([line], "de", **how) == [expected]


@pytest.mark.parametrize(
    ("hypotheses", "references", "expected"),
    [
        # 4/5 words, 3/4 twos, 2/3 threes and 1/2 fours are right: their product is 1/5.
        (["a b c d e"], ["a b c d f"], 100 * 0.2**0.25),
        # All is right, and one word of five is missing.
        (["a b c d"], ["a b c d e"], 100 * math.exp(1 - 5 / 4)),
        # Counts of the file, not a mean of its lines: 9/10, 7/8, 5/6 and 3/4.
        (
            ["a b c d e", "a b c d e"],
            ["a b c d f", "a b c d e"],
            100 * (9 / 10 * 7 / 8 * 5 / 6 * 3 / 4) ** 0.25,
        ),
        # No four in a row: smoothing would make this more than nothing.
        (["a b c x d e f"], ["a b c y d e f"], 0.0),
        (["A b c d"], ["a b c d"], 0.0),
    ],
)
def test_bleu(
    tool: dict[str, Any], hypotheses: list[str], references: list[str], expected: float
) -> None:
    assert tool["bleu"](hypotheses, references) == pytest.approx(expected, abs=1e-9)


def test_the_command(tmp_path: Path) -> None:
    """`ein gut ##AT##-##AT## gelaunter hund .` of six words has 5/6, 3/5, 2/4 and 1/3 right."""
    (tmp_path / "hyp").write_text("Ein gut-gelaunter Hund.\n", encoding="utf-8")
    (tmp_path / "ref").write_text("ein schlecht-gelaunter hund.\n", encoding="utf-8")
    flags = ["--lang", "de", "--lowercase", "--split-compounds"]
    words = [sys.executable, str(SCRIPT), "hyp", "ref", *flags]
    said = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    bleu = 100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert said.startswith(f"BLEU {bleu:.2f}  nrefs:1|case:lc|eff:no|compounds:split|")
    assert "|smooth:none|tok:moses-de|sacremoses:" in said
    (tmp_path / "ref").write_text("ein\nzwei\n", encoding="utf-8")
    failed = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert "hyp has 1 lines and ref has 2" in failed.stderr
