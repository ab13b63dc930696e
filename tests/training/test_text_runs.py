"""Text to text from files to a model that has learnt it: no check of languages, prefixes for each
file, long sources, scores, and a run that goes on from a translator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tiny

from dragoman.errors import DragomanError
from dragoman.folder.description import load_description
from dragoman.tasks.text_to_text import TextToText
from dragoman.text.prompts import FAMILY_PROMPTS
from dragoman.training import run

SHAPE = {"d_model": 32, "d_ff": 64, "n_heads": 2, "dropout": 0.0, "norm_first": True}


def write(folder: Path, name: str, pairs: list[tuple[str, str]]) -> list[str]:
    files = [folder / f"{name}.src", folder / f"{name}.tgt"]
    for file, lines in zip(files, zip(*pairs, strict=True), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [str(file) for file in files]


def echoes(count: int) -> list[tuple[str, str]]:
    """Pairs that a check of translations would drop: copies, and targets far shorter."""
    words = [f"{one} {other}" for one in tiny.ENGLISH for other in tiny.ENGLISH]
    return [(word, word) for word in words[:count]]


def firsts(count: int) -> list[tuple[str, str]]:
    long = [" ".join(tiny.ENGLISH[number % 10 :] + tiny.ENGLISH) for number in range(count)]
    return [(f"{text} {number}", text.split()[0]) for number, text in enumerate(long)]


def given(files: list[str], **training: Any) -> dict[str, Any]:
    tables = tiny.tables(schedule="cosine", learning_rate=0.01, warmup=20, **training)
    tables["model"] |= SHAPE
    tables["tokenizer"]["vocab_size"] = 330
    tables["data"] = {"train": files}
    return {**tables, "task": "text"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("text")
    files = [*write(place, "copy", echoes(90)), *write(place, "first", firsts(40))]
    wanted = given(files, steps=160, save_every=80, batch_tokens=1500, valid_sentences=10)
    wanted["data"] |= {"prefixes": ["copy:", "first:"], "weights": [1.0, 2.0], "held_out": 6}
    wanted["training"]["select"] = "exact"
    out = place / "model"
    assert run.start(out, wanted, print) == "steps"
    return out


def test_it_learns_two_tasks_by_their_prefixes(folder: Path) -> None:
    model = TextToText.load(folder, "cpu", "torch")
    source = " ".join(tiny.ENGLISH[3:] + tiny.ENGLISH)
    first, copy = model.write([f"first: {source} 3", "copy: two nine"])
    assert first.text == "three"
    assert copy.text == "two nine"


def test_what_the_folder_says(folder: Path) -> None:
    description, _ = load_description(folder)
    assert description.task == "text"
    assert (description.source_language, description.target_language) == ("", "")
    assert description.prompts == FAMILY_PROMPTS["text"]
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert "## Sample outputs" in report
    assert "exact match " in report
    assert "suspicious length ratios" not in report
    assert "source copied to target" not in report
    manifest = json.loads((folder / "state" / "data" / "manifest.json").read_text())
    assert [row["weight"] for row in manifest["train"]] == [1.0, 2.0]
    assert sum(row["pairs"] for row in manifest["train"]) == 124  # 130 without the six held out
    lines = [line for line in tiny.metrics(folder) if "valid_loss" in line]
    assert all({"exact", "f1", "rouge"} <= line.keys() for line in lines)
    assert lines[-1]["samples"][0]["source"].startswith(("copy: ", "first: "))


def test_it_goes_on_from_a_translator(trained: Path, tmp_path: Path) -> None:
    files = write(tmp_path, "copy", echoes(20))
    wanted = tiny.tables(steps=2, save_every=2, valid_sentences=2)
    wanted = {"task": "text", "data": {"train": files}, "training": wanted["training"]}
    wanted["prompts"] = {"summarise": "in short: {text}"}
    assert run.start(tmp_path / "model", wanted, print, continued=trained) == "steps"
    description, tokenizer = load_description(tmp_path / "model")
    assert description.task == "text"
    assert description.prompts.summarise == "in short: {text}"
    assert tokenizer.serialised() == load_description(trained)[1].serialised()


def test_long_sources(tmp_path: Path) -> None:
    """The table of positions grows with the limit that is named."""
    long = " ".join(tiny.ENGLISH * 120)
    files = write(tmp_path, "long", [(f"{long} {number}", "one") for number in range(12)])
    wanted = given(files, steps=1, save_every=1, valid_sentences=0)
    wanted["data"]["max_length"] = 1400
    assert run.start(tmp_path / "model", wanted, print) == "steps"
    description, _ = load_description(tmp_path / "model")
    assert description.model.max_length == 1450
    assert description.longest > 1200


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"data": {"prefixes": ["one:", "two:"]}}, "data.prefixes has 2 texts for 1 corpora"),
        ({"task": "translate", "data": {"prefixes": ["one:"]}}, "are for the task text"),
        ({"task": "translate", "data": {"any_text": True}}, "are for the task text"),
        ({"task": "translate", "prompts": {"summarise": "{text}"}}, "are for the task text"),
        ({"prompts": {"ask": "why?"}}, "it must have {question} and {context}"),
        ({"training": {"select": "bleu"}}, "exact, f1, rouge"),
        ({"data": {"augment": True}}, "for translation, not for the task text"),
        ({"data": {"max_length": 1}}, "data.max_length is 1"),
    ],
)
def test_what_is_refused(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    wanted = given(write(tmp_path, "copy", echoes(20)), steps=1)
    for name, value in change.items():
        if isinstance(value, dict):
            wanted[name] = wanted.get(name, {}) | value
        else:
            wanted[name] = value
    with pytest.raises(DragomanError) as raised:
        run.start(tmp_path / "model", wanted, print)
    assert words in str(raised.value)
    assert not (tmp_path / "model").exists()
