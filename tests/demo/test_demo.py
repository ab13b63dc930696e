"""What the demo shows of a model that ships, with one that knows digits only."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from demo.__main__ import EVERYDAY, show


def test_the_shipped_part(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(
        shutil.copytree(trained, tmp_path / "en-de", ignore=shutil.ignore_patterns("state"))
    )
    show([folder], tmp_path / "models" / "attention.svg")
    said = capsys.readouterr().out
    assert "$ dragoman translate --from en --to de\n" in said
    for sentence in EVERYDAY["en"]:
        assert re.search(rf"    {re.escape(sentence)}\n      -> .*  \(\d+ ms\)\n", said)
    assert "░ from 5%" in said
    root = ElementTree.parse(tmp_path / "models" / "attention.svg").getroot()
    assert float(root.get("width", "")) > 100


def test_without_shipped_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show([], tmp_path / "attention.svg")
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "attention.svg").exists()
