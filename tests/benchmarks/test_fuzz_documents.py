"""A small share of benchmarks/fuzz_documents.py: mutated documents of every format end rightly or
with a sentence."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.documents.documents import FORMATS

pytest.importorskip("markdown_it")
pytest.importorskip("pptx")
pytest.importorskip("openpyxl")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FUZZ = BENCHMARKS / "fuzz_documents.py"
sys.path.append(str(BENCHMARKS))
import fuzz_archives  # noqa: E402
from fuzz_documents import STRICT  # noqa: E402
from fuzzing import mutated_bytes  # noqa: E402

NAMES = """
    .txt .md .html .srt .vtt .ass .po .xlf .xliff .tmx .json .yaml .properties .strings
    .stringsdict .xml .csv .tsv .tex .pdf .docx
"""
TEXTUAL = NAMES.split()


def test_mutated_documents() -> None:
    words = [sys.executable, str(FUZZ), "--count", "40", "--seed", "7"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    row = r"^(\.\w+)(, its texts)?: 40 documents, (\d+) refused, 0 failures"
    refused: dict[str, list[int]] = {}
    for kind, _, number in re.findall(row, done.stdout, re.M):
        refused.setdefault(kind, []).append(int(number))
    assert list(refused) == TEXTUAL
    assert {kind for kind, numbers in refused.items() if len(numbers) == 2} == STRICT
    # Most are read all the same, or the mutations would try nothing but the first check; of the
    # strict kinds some are, and nearly all whose texts alone are mutated.
    most = {kind: 39 if kind in STRICT else 20 for kind in TEXTUAL}
    assert [kind for kind in TEXTUAL if refused[kind][0] > most[kind]] == []
    assert [kind for kind in STRICT if refused[kind][1] > 1] == []


def test_an_empty_document_is_mutated_too() -> None:
    draw = random.Random(1)
    made = [mutated_bytes(b"", draw) for _ in range(50)]
    assert {len(data) for data in made} == {0, 1}  # some are cut off again


def test_every_format_is_mutated() -> None:
    """Here, or by benchmarks/fuzz_archives.py; a kind of another ending has the same reader."""
    mutated = {FORMATS[kind].rewrite for kind in (*TEXTUAL, *fuzz_archives.GOOD)}
    assert {one.rewrite for one in FORMATS.values()} == mutated
