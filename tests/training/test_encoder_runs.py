"""Encoders from files to a model that labels words, tells pairs of texts apart or finds partners;
runs that are killed or shared, and what is said of files and options that cannot be used."""

from __future__ import annotations

import importlib
import json
import random
import signal
import socket
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

from dragoman.cli.evaluated_encoders import evaluate_encoder
from dragoman.errors import DragomanError, InputError, ModelFolderError, OptionError
from dragoman.folder.description import load_description
from dragoman.folder.weights import read_tensors
from dragoman.tasks.encode import TextEncoder
from dragoman.tasks.label_words import Labeller
from dragoman.training import run

FIRST = ["ada", "alan", "grace", "kurt"]
LAST = ["lovelace", "turing", "hopper", "goedel"]
VERBS = ["sings", "sleeps", "walks", "reads"]
ENGLISH = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
GERMAN = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht"]
SHAPE = {"d_model": 32, "d_ff": 64, "n_heads": 2, "dropout": 0.0, "encoder_layers": 1}


def write_names(file: Path, sentences: int, seed: int = 1) -> str:
    """A full name or a first name alone, which begins with a word that is no name as well."""
    draw = random.Random(seed)
    rows = []
    for _ in range(sentences):
        person = [(draw.choice(FIRST), "B-PER")]
        if draw.random() < 0.5:
            person.append((draw.choice(LAST), "I-PER"))
        words = [*person, (draw.choice(VERBS), "O")]
        if draw.random() < 0.5:
            words.insert(0, ("today", "O"))
        rows.append("".join(f"{word}\t{label}\n" for word, label in words))
    file.write_text("\n".join(rows), encoding="utf-8")
    return str(file)


def write_same(file: Path, count: int, seed: int = 1) -> str:
    """Two words each; the label says whether they are the same, which neither text tells alone."""
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        one = draw.choice(FIRST)
        other = one if draw.random() < 0.5 else draw.choice([word for word in FIRST if word != one])
        lines.append(f"{'same' if one == other else 'other'}\t{one}\t{other}\n")
    file.write_text("".join(lines), encoding="utf-8")
    return str(file)


def write_numbers(file: Path, count: int, seed: int = 1) -> str:
    """Three numbers and their translation."""
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        numbers = [draw.randrange(8) for _ in range(3)]
        sides = [" ".join(names[number] for number in numbers) for names in (ENGLISH, GERMAN)]
        lines.append("\t".join(sides) + "\n")
    file.write_text("".join(lines), encoding="utf-8")
    return str(file)


def tables(task: str, *files: str, **training: Any) -> dict[str, Any]:
    rate = {"learning_rate": 1e-2, "device": "cpu", "precision": "float32", "log_every": 1}
    return {
        "task": task,
        "preset": "tiny",
        "data": {"train": list(files)},
        "tokenizer": {"vocab_size": 300},
        "model": dict(SHAPE),
        "training": {**rate, "batch_tokens": 1024, "save_every": 50, "average": 1, **training},
    }


def valid_lines(folder: Path) -> list[dict[str, Any]]:
    return [line for line in tiny.metrics(folder) if "valid_loss" in line]


def scores(task: str, folder: Path, file: str, capsys: pytest.CaptureFixture[str]) -> Any:
    from dragoman.cli.arguments import Machine

    capsys.readouterr()
    evaluate_encoder(task, folder, [file], Machine(device="cpu"), as_json=True)
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("encoders")


@pytest.fixture(scope="module")
def labeller(place: Path) -> Path:
    given = tables("label", write_names(place / "names.tsv", 400), steps=60, save_every=30)
    given["training"]["select"] = "f1"
    assert run.start(place / "labels", given, print) == "steps"
    return place / "labels"


def test_names_are_learnt(labeller: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    description, _ = load_description(labeller)
    assert (description.task, description.labels) == ("label", ("B-PER", "I-PER", "O"))
    assert (description.model.pooled, description.model.classes) == ("every", 3)
    last = valid_lines(labeller)[-1]
    assert (last["accuracy"], last["f1"]) == (1.0, 100.0)
    test = write_names(place / "test.tsv", 50, seed=9)
    found = scores("label", labeller, test, capsys)
    assert (found["f1"], found["accuracy"], found["sentences"]) == (100.0, 100.0, 50)
    named = Labeller.load(labeller, "cpu").label("today ada lovelace sings")
    assert [(span.text, span.label) for span in named.spans] == [("ada lovelace", "PER")]
    report = (labeller / "report.md").read_text(encoding="utf-8")
    assert "380 sentences of 3 labels to train on, 20 to validate with." in report
    assert "F1 100.0" in report


def test_a_sentence_that_is_too_long_is_learnt_in_parts(place: Path) -> None:
    file = place / "long.tsv"
    file.write_text("".join("ada\tB-PER\nsings\tO\n" * 40) + "\nada\tO\n\nb\tO\n")
    given = tables("label", str(file), steps=1)
    given["data"] |= {"max_length": 20, "held_out": 0}
    run.start(place / "long", given, print)
    folder = place / "long" / "state" / "data" / "train"
    offsets = np.fromfile(folder / "target.idx", "<i8")
    marks = np.fromfile(folder / "target.bin", "<u2")
    assert np.diff(offsets).max() <= 20
    assert np.count_nonzero(marks) == 82
    assert len(offsets) - 1 > 3


def test_pairs_of_texts_are_told_apart(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_same(place / "same.tsv", 600)
    given = tables("class", file, steps=150, learning_rate=3e-3)
    assert run.start(place / "same", given, print) == "steps"
    description, _ = load_description(place / "same")
    assert description.frame.between == (3,)
    assert '"between": [\n    3\n  ]' in (place / "same" / "config.json").read_text()
    found = scores("class", place / "same", write_same(place / "t.tsv", 60, seed=5), capsys)
    assert found["accuracy"] == found["macro_f1"] == 100.0
    encoder = TextEncoder.load(place / "same", "cpu")
    assert encoder.classify("ada\tada")[0][0] == "same"
    assert encoder.classify(["kurt\tada"])[0][0][0] == "other"
    with pytest.raises(InputError, match=r"item 1 has 3 texts .* the model reads pairs of texts"):
        encoder.classify("ada\tada\tada")
    single = place / "single.tsv"
    single.write_text("same\tada\nother\tkurt\n")
    given["data"] = {"train": [file], "valid": [str(single)]}
    with pytest.raises(InputError, match=r"single\.tsv and the training text differ"):
        run.start(place / "mixed", given, print)


def test_numbers_find_their_translations(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_numbers(place / "numbers.tsv", 400)
    test = write_numbers(place / "numbers.test.tsv", 60, seed=7)
    given = tables("embed", file, steps=120, learning_rate=5e-3, save_every=60)
    given["data"]["test"] = [test]
    assert run.start(place / "vectors", given, print) == "steps"
    description, _ = load_description(place / "vectors")
    assert (description.task, description.labels, description.model.classes) == ("embed", (), 0)
    assert valid_lines(place / "vectors")[-1]["accuracy"] > 0.8
    found = scores("embed", place / "vectors", test, capsys)
    assert found["accuracy"] > 80.0
    encoder = TextEncoder.load(place / "vectors", "cpu")
    vectors = encoder.embed(["one two three", "eins zwei drei", "acht acht acht"])
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
    assert encoder.embed("one two three").shape == (32,)


def test_texts_of_the_test_set_are_not_trained_on(place: Path) -> None:
    pairs = [f"a{number}\tb{number}" for number in range(40)]
    file = place / "pairs.tsv"
    file.write_text("\n".join([*pairs, "a0\tother", "other\tb1"]) + "\n")
    test = place / "pairs.test.tsv"
    test.write_text("a0\tx\ny\tb1\n")
    given = tables("embed", str(file), steps=1)
    given["data"] |= {"test": [str(test)], "held_out": 0}
    said: list[str] = []
    run.start(place / "apart", given, said.append)
    assert any("38 pairs to train on, 0 to validate with" in line for line in said)


@pytest.fixture(scope="module")
def mlm(place: Path) -> Path:
    text = place / "text.txt"
    pairs = Path(write_numbers(place / "n", 300)).read_text(encoding="utf-8").splitlines()
    rows = [pair.split("\t")[0] for pair in pairs]
    text.write_text("\n".join(rows) + "\n", encoding="utf-8")
    given = tables("mlm", str(text), steps=3)
    given["data"]["block"] = 16
    assert run.start(place / "mlm", given, print) == "steps"
    return place / "mlm"


@pytest.mark.parametrize("task", ["label", "class", "embed"])
def test_encoders_continue_an_encoder(place: Path, mlm: Path, task: str) -> None:
    """A step so small that it changes nothing: the encoder is the old one, the head a new one."""
    write = {"label": write_names, "class": write_same, "embed": write_numbers}[task]
    file = write(place / f"{task}.continued.tsv", 60)
    given: dict[str, Any] = {
        "task": task,
        "data": {"train": [file]},
        "training": {"steps": 1, "learning_rate": 1e-9, "device": "cpu", "precision": "float32"},
    }
    folder = place / f"continued-{task}"
    assert run.start(folder, given, print, mlm) == "steps"
    old, new = (read_tensors(one / "model.safetensors") for one in (mlm, folder))
    heads = {"label": {"output"}, "class": {"output", "pooler"}, "embed": set()}[task]
    assert set(new) - set(old) == {
        f"classifier.{head}.{part}" for head in heads for part in ("weight", "bias")
    }
    for name in set(new) & set(old):
        np.testing.assert_allclose(new[name], old[name], atol=1e-6)
    assert load_description(folder)[1].serialised() == load_description(mlm)[1].serialised()


def test_labels_continue_labels(place: Path, labeller: Path) -> None:
    """With its output layer, if the labels are the same."""
    file = write_names(place / "more.tsv", 60, seed=3)
    given: dict[str, Any] = {
        "task": "label",
        "data": {"train": [file]},
        "training": {"steps": 1, "learning_rate": 1e-9, "device": "cpu", "precision": "float32"},
    }
    assert run.start(place / "more", given, print, labeller) == "steps"
    assert valid_lines(place / "more")[-1]["f1"] == 100.0
    with pytest.raises(OptionError, match=r"of the task label; it cannot be continued .* class"):
        run.start(place / "no", given | {"task": "class"}, print, labeller)


def slow_steps() -> None:
    trainer: Any = importlib.import_module("dragoman.training.trainer")
    rate = trainer.learning_rate

    def slowly(*arguments: Any) -> float:
        time.sleep(0.05)
        return rate(*arguments)

    trainer.learning_rate = slowly


WRITERS = {"label": write_names, "embed": write_numbers}


def words_of(place: Path, task: str, name: str, *more: str) -> list[str]:
    file = WRITERS[task](place / f"{task}.resumed.tsv", 120)
    recipe = place / f"{task}.toml"
    model = "\n".join(f"{key} = {value}" for key, value in SHAPE.items())
    recipe.write_text(
        f'preset = "tiny"\n[tokenizer]\nvocab_size = 300\n[model]\n{model}\n[training]\n'
        "steps = 12\nsave_every = 5\nlog_every = 1\nbatch_tokens = 300\n"
        'device = "cpu"\nprecision = "float32"\n',
        encoding="utf-8",
    )
    out = ["--out", str(place / name), "--config", str(recipe)]
    return ["train", "--task", task, file, *out, *more]


@pytest.mark.parametrize("task", ["label", "embed"])
def test_killed_and_resumed(place: Path, task: str) -> None:
    dropout = ("--set", "model.dropout=0.1")
    whole = place / f"unbroken-{task}"
    assert tiny.run(words_of(place, task, whole.name, *dropout), place).wait() == 0
    folder = place / f"killed-{task}"
    command = tiny.Command(words_of(place, task, folder.name, *dropout), place, slow_steps)
    command.until(lambda: (folder / "metrics.jsonl").exists() and len(tiny.losses(folder)) >= 7)
    command.kill()
    assert command.wait() == -signal.SIGKILL
    assert tiny.run(["train", "--resume", str(folder)], place).wait() == 0
    assert [step for step, _, _ in tiny.losses(folder)] == list(range(1, 13))
    assert tiny.losses(folder) == tiny.losses(whole)
    assert valid_lines(folder) == valid_lines(whole)
    assert (folder / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def join_world(rank: int, port: int) -> None:
    import os

    world = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": 2,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    os.environ.update({name: str(value) for name, value in world.items()})


@pytest.mark.parametrize("task", ["label", "embed"])
def test_two_processes_have_the_losses_of_one(place: Path, task: str) -> None:
    """A batch of pairs is one, whoever computes it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    two = place / f"two-{task}"
    words = words_of(place, task, two.name, "--steps", "6")
    commands = [tiny.Command(words, place, join_world, rank, port) for rank in (0, 1)]
    one = place / f"one-{task}"
    assert tiny.run(words_of(place, task, one.name, "--steps", "6"), place).wait() == 0
    for command in commands:
        assert command.wait() == 0, command.errors
    np.testing.assert_allclose(tiny.losses(two), tiny.losses(one), rtol=1e-4)


@pytest.mark.parametrize(
    ("task", "content", "said"),
    [
        ("label", "ada\tB-PER\nsings\n", r"x\.tsv, line 2: 'sings' is not a word with a label"),
        ("label", "ada\tO\n\nkurt\tO\n", r"x\.tsv has fewer than two labels"),
        ("label", "ada\tO\nkurt\tX\n", r"x\.tsv has fewer than two sentences; give more"),
        ("label", "", r"x\.tsv has no words"),
        ("class", "a\tb\na\tb\tc\n", r"x\.tsv, line 2: it has 3 columns"),
        ("embed", "one\n", r"x\.tsv, line 1: one; write source, tab, target"),
        ("embed", "one\teins\n", r"x\.tsv has fewer than two pairs; give more"),
        ("embed", "", r"x\.tsv has fewer than two pairs"),
        ("embed", "one\teins\none\tzwei\n", r"each pair of .*x\.tsv shares a text with one to"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, task: str, content: str, said: str) -> None:
    file = tmp_path / "x.tsv"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=said) as caught:
        run.start(tmp_path / "out", tables(task, str(file)), print)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("task", "section", "values", "said"),
    [
        ("label", "training", {"select": "bleu"}, "must be one of loss, accuracy, f1"),
        ("embed", "training", {"select": "f1"}, "must be one of loss, accuracy"),
        ("embed", "training", {"r_drop": 1.0}, "training.r_drop is not for the task embed"),
        ("embed", "training", {"temperature": 0.0}, "training.temperature is 0.0 and margin 0.0"),
        ("embed", "training", {"margin": 1.0}, "training.temperature is 0.05 and margin 1.0"),
        ("embed", "data", {"weights": [1.0]}, "not for the task embed"),
        ("label", "model", {"decoder_layers": 1}, "is not for the task label"),
    ],
)
def test_options_that_cannot_be_used(
    tmp_path: Path, task: str, section: str, values: dict[str, Any], said: str
) -> None:
    given = tables(task, WRITERS[task](tmp_path / "x.tsv", 30))
    given[section] |= values
    with pytest.raises(DragomanError, match=said):
        run.start(tmp_path / "out", given, print)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("task", ["label", "embed"])
def test_a_damaged_run_is_refused(tmp_path: Path, task: str) -> None:
    file = WRITERS[task](tmp_path / "x.tsv", 60)
    assert run.start(tmp_path / "out", tables(task, file, steps=2, save_every=1), print) == "steps"
    tokens = tmp_path / "out" / "state" / "data" / "train" / "target.bin"
    content = np.fromfile(tokens, "<u2")
    content[3] = 60_000
    content.tofile(tokens)
    with pytest.raises(ModelFolderError, match=r"target\.bin is damaged: it has the token 60,000"):
        run.resume(tmp_path / "out", {"training": {"steps": 4}}, print)
