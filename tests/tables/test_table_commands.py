"""`dragoman translate --column` as a user gives it: fields by path, pages in a column, what must
stay, and addresses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Translator
from dragoman.cli.main import app
from dragoman.errors import OptionError
from dragoman.tables.field_path import FieldPath
from dragoman.tables.table_stages import TranslateStage
from dragoman.tasks.bulk import Job
from dragoman.tasks.request import TranslateRequest


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    return Translator.load(trained, "cpu")


def translated(model: Path, rows: list[dict[str, Any]], out: Path, *words: str) -> list[Any]:
    """The rows that the command writes."""
    source = out.parent / f"{out.name}.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    command = ["translate", str(source), "--out", str(out), "-m", str(model), *words]
    app([*command, "--device", "cpu", "--workers", "1"], standalone_mode=False)
    return read(out)


def read(out: Path) -> list[Any]:
    lines = []
    for path in sorted(out.glob("*.jsonl")):
        lines += path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_field_by_path(trained: Path, translator: Translator, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": 1, "messages": [{"content": "one two", "by": "a"}, {"content": "nine"}]},
        {"id": 2, "messages": [{"by": "b"}]},
        {"id": 3},
    ]
    found = translated(trained, rows, tmp_path / "out", "--field", "messages.*.content")
    expected = [one.text for one in translator.translate(["one two", "nine"])]
    assert [row["translation"] for row in found] == [expected, [None], None]
    assert [row["messages"] for row in found[:2]] == [rows[0]["messages"], rows[1]["messages"]]


def test_html_in_a_column(trained: Path, translator: Translator, tmp_path: Path) -> None:
    page = '<p class="a">one two</p><pre>nine</pre><p>three<br>four</p>'
    rows: list[dict[str, Any]] = [
        {"text": page},
        {"text": " "},
        {"text": "<b>five</b>"},
        {"text": None},
    ]
    words = ["--column", "text", "--markup", "html"]
    found = translated(trained, rows, tmp_path / "out", *words)
    first, second = (one.text for one in translator.translate(["one two", "three"]))
    answer = found[0]["translation"]
    assert answer.startswith(f'<p class="a">{first}</p><pre>nine</pre><p>{second}<br>')
    assert answer.endswith("</p>")
    assert found[1]["translation"] == " "
    assert found[2]["translation"] == f"<b>{translator.translate(['five'])[0].text}</b>"
    assert found[3]["translation"] is None
    plain = translated(trained, rows[:1], tmp_path / "plain", "--column", "text")
    assert plain[0]["translation"] != answer


def test_what_must_stay_in_a_column(trained: Path, translator: Translator, tmp_path: Path) -> None:
    text = "one {name} https://example.org/a?b=1 two"
    found = translated(trained, [{"text": text}], tmp_path / "out", "--column", "text")
    assert "{name}" in found[0]["translation"]
    assert "https://example.org/a?b=1" in found[0]["translation"]
    assert found[0]["translation"] == translator.translate([text])[0].text


def test_addresses(trained: Path, translator: Translator, tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / f"{name}.jsonl").write_text('{"text": "one two"}\n')
    words = ["translate", f"file://{tmp_path}/in/*.jsonl", "--column", "text"]
    words += ["--out", f"file://{tmp_path}/out", "-m", str(trained), "--device", "cpu"]
    app([*words, "--workers", "1"], standalone_mode=False)
    expected = translator.translate(["one two"])[0].text
    assert [row["translation"] for row in read(tmp_path / "out")] == [expected] * 2
    assert {path.name for path in (tmp_path / "out").glob("*.jsonl")} == {
        "a.00000.jsonl",
        "b.00000.jsonl",
    }


@pytest.mark.parametrize(
    ("add", "markup", "said"),
    [((), "docx", "--markup is 'docx'"), (("score",), "html", "omit one of the two")],
)
def test_what_goes_together(trained: Path, add: tuple[str, ...], markup: str, said: str) -> None:
    job = Job(trained, TranslateRequest())
    with pytest.raises(OptionError, match=said):
        TranslateStage(FieldPath.parse("text"), job, "translation", add, markup)


def test_too_many_parts_are_told_before_anything_is_written(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.tables.table_parts._MOST_BYTES", 100)
    with pytest.raises(OptionError, match="too many for one job"):
        translated(trained, [{"text": "one"}], tmp_path / "out", "--column", "text")
    assert not (tmp_path / "out").exists()
