"""What the documents tell people to do is done here: their Python runs, their commands and flags
exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```",
        document.read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )


@pytest.mark.parametrize(
    "document", [one for one in DOCUMENTS if blocks(one, "python")], ids=lambda path: path.name
)
def test_the_python_runs(document: Path, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "en-de").symlink_to(trained)
    (tmp_path / "terms.tsv").write_text("bank account\tBankkonto\n", encoding="utf-8")
    for code in blocks(document, "python"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
        assert "Bankkonto" in done.stdout or "glossary" not in code


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_and_flags_exist(document: Path) -> None:
    """Every flag after `dragoman <command>` in a shell block or between back-ticks is one of
    that command's."""
    text = document.read_text(encoding="utf-8")
    shell = "\n".join(blocks(document, ""))
    quoted = re.findall(r"`(dragoman [^`]+)`", text)
    for line in [*re.findall(r"^(?:.* -m )?dragoman (?!-).*$", shell, re.MULTILINE), *quoted]:
        command, *words = line.split("dragoman ", 1)[1].split("#")[0].split()
        if not command.isalpha():
            continue
        listed = help_of(command)
        for word in words:
            assert not word.startswith("--") or word.split("=")[0] in listed, (
                f"{document.name}: {line}"
            )


@cache
def help_of(command: str) -> str:
    words, settings = (
        [sys.executable, "-m", "dragoman", command, "--help"],
        {"COLUMNS": "200", "PYTHONPATH": str(ROOT)},
    )
    return subprocess.run(
        words, env=os.environ | settings, capture_output=True, text=True, check=True
    ).stdout
