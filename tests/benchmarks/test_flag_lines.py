"""benchmarks/flag_lines.py: the labelled lines are what the generator makes, and the flags find
at least half of each kind, with nine in ten of the flagged ones wrong."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "flag_lines.py"


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("flag_lines", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["flag_lines"] = module
    spec.loader.exec_module(module)
    return module


def test_the_lines_are_those_that_are_made(program: ModuleType) -> None:
    lines = program.read("lines.tsv")
    assert lines == program.made()
    assert len(lines) == 300
    assert sum(not line.label for line in lines) == 150
    assert {line.label for line in lines} == {"", *program.COUNTS}


def test_half_of_each_kind_is_found_and_nine_in_ten_are_wrong(program: ModuleType) -> None:
    report = program.scored(program.read("lines.tsv"))
    for label in program.COUNTS:
        assert report[label] >= 0.5, label
    assert report["precision"] >= 0.9


def test_the_score_counts_what_it_says(program: ModuleType) -> None:
    line = program.Line
    source = "The old bridge was closed because of the flood."
    lines = [
        line("copied", source, source),
        line("copied", source, "Die alte Brücke ist zu."),
        line("", source, source),
    ]
    right = "Die alte Brücke wurde wegen des Hochwassers gesperrt."
    lines += [line(label, source, right) for label in ("repetition", "omission", "garbled")]
    report = program.scored(lines)
    assert report["copied"] == 0.5
    assert report["garbled"] == 0
    assert report["precision"] == 0.5
