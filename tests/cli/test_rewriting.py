"""`rewrite`, `ask`, `summarise` and `evaluate --task text` through the front door, with a model
that says German digits for English ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jsonschema_rs
import pytest

from dragoman.cli import main as front_door

PROMPT = ("--prompt", "{question} {context}")


@pytest.fixture
def place(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").symlink_to(trained)
    (tmp_path / "in.txt").write_text("one two\n\nthree\n", encoding="utf-8")
    (tmp_path / "ref.txt").write_text("eins zwei\n\nvier\n", encoding="utf-8")
    return tmp_path


def run(
    line: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["dragoman", *line, "-m", "model", "--runtime", "torch"])
    with pytest.raises(SystemExit) as stopped:
        front_door.main()
    said = capsys.readouterr()
    return int(stopped.value.code or 0), said.out, said.err


def test_lines(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(("rewrite", "in.txt"), monkeypatch, capsys) == (0, "eins zwei\n\ndrei\n", "")
    code, output, _ = run(("rewrite", "in.txt", "--nbest", "2", "--jsonl"), monkeypatch, capsys)
    first, second, _ = map(json.loads, output.splitlines())
    assert code == 0
    of_before = run(("rewrite", "in.txt", "--nbest", "2", "--json"), monkeypatch, capsys)
    assert of_before == (0, output, "")  # the option's name of before
    assert first["text"] == "eins zwei"
    assert first["score"] > first["alternatives"][0]["score"]
    assert second == {"text": "", "score": 0.0, "alternatives": []}
    code, output, _ = run(("rewrite", "in.txt", "--nbest", "2"), monkeypatch, capsys)
    assert output.splitlines()[0].startswith("1\t-")
    (place / "long.txt").write_text("one " * 300 + "\n", encoding="utf-8")
    code, output, errors = run(("rewrite", "long.txt"), monkeypatch, capsys)
    assert code == 0
    assert errors.startswith("line 1: 300 tokens, and the model reads ")


def test_questions_and_summaries(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ("ask", "one", "--context", "in.txt", *PROMPT)
    assert run(line, monkeypatch, capsys) == (0, "eins eins zwei drei\n", "")
    code, output, _ = run((*line, "--json"), monkeypatch, capsys)
    answer = json.loads(output)
    assert (answer["answer"], answer["window"], answer["windows"]) == ("eins eins zwei drei", 1, 1)
    assert answer["score"] < 0.0
    summarise = ("summarise", "in.txt", "--prompt", "{text}")
    assert run(summarise, monkeypatch, capsys) == (0, "eins zwei drei\n", "")
    (place / "long.txt").write_text("one two three four\n" * 60, encoding="utf-8")
    code, output, _ = run(("summarise", "long.txt", *summarise[2:], "--json"), monkeypatch, capsys)
    summary = json.loads(output)
    assert code == 0
    assert len(summary["parts"]) > 2
    assert summary["summary"] == " ".join(part["text"] for part in summary["parts"])
    code, _, errors = run(("summarise", "in.txt"), monkeypatch, capsys)
    assert code == 2
    assert "does not say how it is asked to summarise" in errors


def test_json_of_a_schema(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 10},
            "numbers": {"type": "array", "maxItems": 2, "items": {"type": "integer"}},
        },
    }
    (place / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
    line = ("rewrite", "in.txt", "--json-schema", "schema.json")
    code, output, errors = run(line, monkeypatch, capsys)
    assert (code, errors) == (0, "")
    assert len(output.splitlines()) == 3
    for one in output.splitlines():
        jsonschema_rs.validate(schema, json.loads(one))
    schema["properties"]["name"]["minLength"] = 3  # type: ignore[index]
    (place / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
    code, _, errors = run(line, monkeypatch, capsys)
    assert code == 2
    assert "schema.json: 'name' has the keyword 'minLength', which is not supported" in errors


def test_scores(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ("evaluate", "in.txt", "ref.txt", "--task", "text")
    code, output, _ = run(line, monkeypatch, capsys)
    assert code == 0
    assert output.startswith("ROUGE-1 ")
    assert "exact match 66.7 (95%: " in output
    code, output, _ = run((*line, "--json", "--against", "ref.txt"), monkeypatch, capsys)
    found = json.loads(output)
    assert found["exact"]["value"] == pytest.approx(200 / 3)
    assert found["rouge1"]["value"] == pytest.approx(100 / 3)  # an empty line has no words
    assert found["lines"] == 3
    assert found["cut"] == 0
    assert [one["score"] for one in found["against"]] == ["ROUGE-L", "token F1"]
    code, _, errors = run((*line, "--robust"), monkeypatch, capsys)
    assert (code, errors.count("\n")) == (2, 1)
    assert "omit them for the task text" in errors
