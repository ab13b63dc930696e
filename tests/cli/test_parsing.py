"""`dragoman parse` and `dragoman evaluate --task parse` through the front door."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
import treebank

from dragoman.cli import main as front_door
from dragoman.text.trees import fault, read_bracketed

Run = Callable[..., tuple[int, str, str]]
SENTENCES = "the cat saw the dog .\n\nthe bird (now) left it.\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parsing")
    treebank.save_random_parser(folder / "parser", longest=60)
    treebank.write_treebank(folder / "test.mrg", 4)
    (folder / "in.txt").write_text(SENTENCES, encoding="utf-8")
    return folder


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.chdir(place)
        monkeypatch.setattr(sys, "argv", ["dragoman", *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as stopped:
            front_door.main()
        said = capsys.readouterr()
        return int(stopped.value.code or 0), said.out, said.err

    return call


def test_a_tree_a_line(run: Run) -> None:
    code, out, errors = run("parse", "-m", "parser", "--beam", "2", stdin=SENTENCES)
    assert (code, errors) == (0, "")
    lines = out.split("\n")
    assert len(lines) == 4
    assert lines[1] == ""
    tree = read_bracketed(lines[2])
    assert tree.words == ("the", "bird", "(", "now", ")", "left", "it", ".")
    assert not fault(tree.symbols, 8)
    code, of_file, _ = run("parse", "in.txt", "-m", "parser", "--beam", "2")
    assert (code, of_file) == (0, out)


def test_json(run: Run) -> None:
    words = ("parse", "-m", "parser", "in.txt", "--beam", "1", "--tokenized")
    code, out, _ = run(*words, "--jsonl")
    assert code == 0
    assert run(*words, "--json") == (0, out, "")  # its name of before
    first, second, third = [json.loads(line) for line in out.splitlines()]
    assert first["words"] == ["the", "cat", "saw", "the", "dog", "."]
    assert len(first["tags"]) == 6
    assert first["tree"].startswith("(")
    assert first["constituents"][0] == {
        "label": first["constituents"][0]["label"],
        "start": 0,
        "end": 6,
    }
    assert first["score"] < 0
    assert second == {"words": [], "tree": None, "problem": "the sentence is empty"}
    assert third["words"] == ["the", "bird", "(now)", "left", "it."]


def test_a_line_that_is_too_long_stays_empty(run: Run) -> None:
    code, out, errors = run(
        "parse", "-m", "parser", "--beam", "1", stdin="the " * 100 + "\nthe cat\n"
    )
    assert code == 0
    assert out.startswith("\n(")
    assert errors.startswith("line 1: the sentence has 100 pieces, and the model reads 59")
    assert errors.count("\n") == 1


def test_drawings(run: Run, place: Path) -> None:
    code, out, _ = run(
        "parse", "-m", "parser", "in.txt", "--beam", "1", "--draw", "--svg", "trees.svg"
    )
    assert code == 0
    assert "└─ " in out
    root = ElementTree.parse(place / "trees.svg").getroot()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("bird") == 1


def test_evaluate(run: Run) -> None:
    words = ["evaluate", "-m", "parser", "test.mrg", "--beam", "1"]
    code, out, _ = run(*words, "--task", "parse")
    assert code == 0
    assert out.startswith("F1 ")
    assert "as EVALB does with COLLINS.prm" in out
    code, out, _ = run(*words, "--json")
    assert code == 0
    scores = json.loads(out)
    assert scores["sentences"] == 4
    assert scores["empty"] == 0
    assert 0 <= scores["f1"] <= 100


def test_evaluate_against_another(run: Run) -> None:
    words = ["evaluate", "-m", "parser", "test.mrg", "--beam", "1"]
    code, out, _ = run(*words, "--against", "parser")
    assert code == 0
    assert out.splitlines()[-1].startswith("F1 cannot tell this parser from the other: ")
    code, out, _ = run(*words, "--against", "test.mrg", "--json")
    assert code == 0
    assert json.loads(out)["against"]["other"] == 100.0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["evaluate", "-m", "parser", "test.mrg", "--robust"], "are for translations"),
        (["evaluate", "-m", "parser", "test.mrg", "--task", "singing"], "--task"),
        (["evaluate", "-m", "parser", "--task", "translate", "a", "b"], "the task parse"),
        (["parse", "-m", "parser", "in.txt", "--runtime", "fast"], "runtime is 'fast'"),
        (["evaluate", "-m", "parser", "in.txt"], "line 1: 'the' stands outside"),
        (["evaluate", "-m", "parser", "none.mrg"], "does not exist"),
    ],
)
def test_mistakes(run: Run, words: list[str], complaint: str) -> None:
    code, out, errors = run(*words)
    assert (code, out) == (2, "")
    assert complaint in errors
    assert errors.count("\n") == 1


def test_inspect(run: Run, place: Path) -> None:
    code, out, _ = run(
        "inspect", "the cat left", "-m", "parser", "--beam", "2", "--out", "look.json"
    )
    assert code == 0
    assert read_bracketed(out).words == ("the", "cat", "left")
    view = json.loads((place / "look.json").read_text(encoding="utf-8"))
    assert view["text"] == out.strip()
    assert len(view["cross"][0][0]) == len(view["target"])
    assert any(node["best"] for node in view["beam"]["nodes"][1:])
