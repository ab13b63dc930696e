"""A few mutated documents of each kind that is a zip of XML; the benchmark has more."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("pptx")
pytest.importorskip("openpyxl")
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import fuzz_archives


@pytest.mark.parametrize("kind", fuzz_archives.GOOD)
def test_mutated_documents_are_sound_or_refused(kind: str) -> None:
    assert fuzz_archives.run(kind, count=12, seed=7) == 0
