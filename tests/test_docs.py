"""What the documents tell people to do is done here: their Python runs, their commands and flags
exist, their links lead somewhere, and the commands of the README are run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest
import tiny
from office_files import WORDS, packed
from test_architecture import MAY_IMPORT
from typer.testing import CliRunner

from dragoman.cli.main import app

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
DOCUMENTS = [page for page in PAGES if page.exists()]
_BETWEEN_COMMANDS = {"|", "||", "&&", ";", "&", "(", ")"}
_NOT_RUN = (
    "train",
    "serve",
)  # the first takes minutes and tests/test_cli.py runs it, the second never ends by itself


def blocks(document: Path, language: str) -> list[str]:
    """The fenced blocks of a language; those of a shell have none."""
    text = document.read_text(encoding="utf-8")
    found = re.findall(r"^ *```([^\n]*)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for name, block in found if name == language]


def shell_lines(document: Path) -> list[str]:
    """The lines of the shell blocks, those that go on after a backslash as one."""
    return [
        line for block in blocks(document, "") for line in block.replace("\\\n", " ").splitlines()
    ]


def calls(line: str) -> list[list[str]]:
    """The words after `dragoman` of each command of a line: piped ones, and those behind && and
    `-m`, too."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found: list[list[str]] = []
    command: list[str] = []
    for word in [*lexer, ";"]:
        if word not in _BETWEEN_COMMANDS:
            command.append(word)
            continue
        # NAME=value before a command is its environment
        first = next((place for place, one in enumerate(command) if not re.match(r"\w+=", one)), 0)
        if "dragoman" in command and (
            command[first] == "dragoman" or "-m" in command[: command.index("dragoman")]
        ):
            found.append(command[command.index("dragoman") + 1 :])
        command = []
    return found


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("dragoman models --json  # all", [["models", "--json"]]),
        ('echo "Hi | you" | dragoman translate --to de', [["translate", "--to", "de"]]),
        ("pip install '.[serve]' && dragoman serve m", [["serve", "m"]]),
        ("OMP_NUM_THREADS=1 dragoman add-key k anna", [["add-key", "k", "anna"]]),
        ("torchrun --nproc-per-node 8 -m dragoman train a b", [["train", "a", "b"]]),
        ("dragoman check a b; dragoman models", [["check", "a", "b"], ["models"]]),
        ("cp dragoman elsewhere", []),
    ],
)
def test_calls_are_found(line: str, expected: list[list[str]]) -> None:
    assert calls(line) == expected


def write_report(path: Path) -> None:
    """A Word document of one sentence."""
    body = "<w:body><w:p><w:r><w:t>Good morning.</w:t></w:r></w:p></w:body>"
    path.write_bytes(packed({"word/document.xml": f"<w:document {WORDS}>{body}</w:document>"}))


@pytest.mark.parametrize("document", [one for one in DOCUMENTS if blocks(one, "python")], ids=name)
def test_the_python_runs(document: Path, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "en-de").symlink_to(trained)
    (tmp_path / "terms.tsv").write_text("bank account\tBankkonto\n", encoding="utf-8")
    write_report(tmp_path / "report.docx")
    for code in blocks(document, "python"):
        done = tiny.run_python(code, tmp_path)
        assert done.wait() == 0, done.errors
        assert done.output.strip()
        assert "Bankkonto" in done.output or "glossary" not in code


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_commands_and_flags_exist(document: Path) -> None:
    """Every flag of a command in a shell block or between back-ticks is one of that command's."""
    quoted = re.findall(r"`(dragoman [^`]+)`", document.read_text(encoding="utf-8"))
    for line in [*shell_lines(document), *quoted]:
        for words in calls(line):
            flags, rest = flags_of(words)
            for word in rest:
                flag = word.split("=")[0]
                assert not re.match(r"--?[a-z]", word) or flag in flags, (
                    f"{name(document)}: {flag} in {line}"
                )


def runnable(document: Path) -> list[str]:
    """The lines that a test can run in a few seconds."""
    found = [(line, calls(line)) for line in shell_lines(document)]
    return [line for line, words in found if words and not any(one[0] in _NOT_RUN for one in words)]


@pytest.mark.parametrize("line", runnable(README))
def test_the_commands_of_the_readme_run(line: str, trained: Path, tmp_path: Path) -> None:
    """In a folder that holds the files they name; all but the training, the service and the
    installation."""
    if os.name == "nt":
        pytest.skip("the commands are for a POSIX shell")
    shutil.copytree(trained, tmp_path / "models" / "en-de")
    for side in ("en", "de"):
        rows = (
            (trained.parent / f"digits.{side}")
            .read_text(encoding="utf-8")
            .splitlines(keepends=True)
        )
        parts = {
            "train": rows[:200],
            "valid": rows[200:300],
            "test": rows[300:320],
            "in": rows[320:330],
        }
        for part, lines in parts.items():
            (tmp_path / f"{part}.{side}").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "terms.tsv").write_text("bank account\tBankkonto\n", encoding="utf-8")
    write_report(tmp_path / "report.docx")
    script = tmp_path / "bin" / "dragoman"
    script.parent.mkdir()
    script.write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m dragoman "$@"\n', encoding="utf-8"
    )
    script.chmod(0o755)
    settings = {
        "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONUTF8": "1",
    }
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", line],
        cwd=tmp_path,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if "report.docx" in line:
        assert (tmp_path / "report.de.docx").stat().st_size
        assert "report.docx -> report.de.docx: 1 text" in done.stderr
    elif "out.de" in line:
        assert (tmp_path / "out.de").read_text(encoding="utf-8").count("\n") == 10
    else:
        assert done.stdout.strip() or (tmp_path / "attention.html").exists()


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:", target):
            assert (document.parent / target).exists(), f"{name(document)}: {target}"


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "CHANGELOG.md"], ids=name)
def test_files_that_are_named_exist(document: Path) -> None:
    """By their whole path, by that within the package, or where the page has the room by name, by
    their own name. What was there when a laboratory note was written may have gone since."""
    if "lab" in document.parts:
        return
    text = document.read_text(encoding="utf-8")
    known = {path.name for path in (ROOT / "dragoman").rglob("*.py")}
    for path in re.findall(r"(?<![\w./-])([\w-]+(?:/[\w.-]+)*\.py)\b", text):
        places = [ROOT / path, ROOT / "dragoman" / path]
        exists = any(place.exists() for place in places)
        assert exists or path in known, f"{name(document)} names {path}"


def test_the_rooms_of_the_design_are_those_of_the_architecture() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    table = text.partition("<!-- rooms -->")[2].partition("<!-- /rooms -->")[0]
    rooms = {}
    for row in re.findall(r"^\| `(\w+)` \|.*\|(.*)\|$", table, re.MULTILINE):
        rooms[row[0]] = set(re.findall(r"`(\w+)`", row[1]))
    modules = {"files", "layout", "__main__", "__init__"}  # which the text names
    assert rooms == {room: may for room, may in MAY_IMPORT.items() if room not in modules}


def test_the_reference_has_every_public_name() -> None:
    import dragoman

    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^::: dragoman\.([A-Za-z_]+)$", text, re.MULTILINE)
    assert {*listed, "__version__"} == {*dragoman.__all__, "errors"}
    for public in dragoman.__all__:
        assert getattr(dragoman, public)


def test_the_readme_has_at_most_a_hundred_columns() -> None:
    assert [
        line for line in README.read_text(encoding="utf-8").splitlines() if len(line) > 100
    ] == []


def test_there_is_one_version() -> None:
    """The build reads it from the package; what cannot read it repeats it."""
    import dragoman

    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    bibtex = (ROOT / "docs" / "cite.md").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [dragoman.__version__]
    assert re.findall(r"version = \{(.+)\}", bibtex) == [dragoman.__version__]
    assert f"## {dragoman.__version__} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def flags_of(words: list[str]) -> tuple[set[str], list[str]]:
    """The flags that the command knows, and the words behind its name, which has two words in a
    group of commands."""
    command: tuple[str, ...] = ()
    while words and not words[0].startswith("-") and "COMMAND [ARGS]" in help_of(command):
        command = (*command, words[0])
        words = words[1:]
    return set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", help_of(command))), words


@cache
def help_of(command: tuple[str, ...]) -> str:
    done = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, f"dragoman {' '.join(command)}: {done.output}"
    return str(done.stdout)
