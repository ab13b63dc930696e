"""Tasks other than translation, from files to a model that has learnt something; and what is
said of files that cannot be used."""

from __future__ import annotations

import functools
import importlib
import math
import random
import signal
import socket
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
import torch.nn.functional as F

from dragoman.errors import InputError, OptionError
from dragoman.folder.description import load_description
from dragoman.folder.weights import load_model, read_tensors
from dragoman.training import run

CPU = torch.device("cpu")
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
SHAPE = {"d_model": 32, "d_ff": 64, "n_heads": 2, "dropout": 0.0}


def write_text(file: Path, lines: int, seed: int = 1) -> str:
    """Each line goes round the Greek alphabet from a letter drawn by lot: any word but the first
    follows from its neighbour."""
    draw = random.Random(seed)
    starts = [(draw.randrange(8), draw.randint(4, 8)) for _ in range(lines)]
    file.write_text(
        "".join(" ".join(WORDS[(k + i) % 8] for i in range(n)) + "\n" for k, n in starts),
        encoding="utf-8",
    )
    return str(file)


def write_reviews(file: Path, count: int, labels: tuple[str, ...] = ("bad", "good")) -> str:
    draw = random.Random(2)
    rows = [(draw.choice(labels), draw.sample(WORDS, 3)) for _ in range(count)]
    said = {"bad": "awful", "good": "splendid"}
    file.write_text(
        "".join(f"{label}\t{' '.join(words)} {said[label]}\n" for label, words in rows),
        encoding="utf-8",
    )
    return str(file)


def write_bars(file: Path, count: int) -> str:
    """Upright and lying bars anywhere in grey images of 16 pixels."""
    draw, images = np.random.default_rng(3), np.full((count, 16, 16), 40, np.uint8)
    for image in images[::2]:
        image[:, draw.integers(2, 14)] = 250
    for image in images[1::2]:
        image[draw.integers(2, 14)] = 250
    np.savez(file, images=images, labels=np.array(["upright", "lying"] * (count // 2)))
    return str(file)


def tables(task: str, files: list[str], **training: Any) -> dict[str, Any]:
    layers = {"decoder_layers" if task == "lm" else "encoder_layers": 1}
    rate = {"learning_rate": 1e-2, "device": "cpu", "precision": "float32", "log_every": 1}
    return {
        "task": task,
        "preset": "tiny",
        "data": {"train": files, "block": 16},
        "tokenizer": {} if task == "image" else {"vocab_size": 310},
        "model": SHAPE | layers,
        "training": {**rate, "batch_tokens": 1024, "save_every": 50, **training},
    }


def valid_lines(folder: Path) -> list[dict[str, Any]]:
    return [line for line in tiny.metrics(folder) if "valid_loss" in line]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tasks")


@pytest.fixture(scope="module")
def mlm(place: Path) -> Path:
    given = tables("mlm", [write_text(place / "mlm.txt", 1500)], steps=300, save_every=100)
    assert run.start(place / "mlm", given, print) == "steps"
    return place / "mlm"


def test_a_language_model(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The entropy of single tokens is all that can be had without looking back."""
    text, folder = write_text(place / "lm.txt", 600), place / "lm"
    assert run.start(folder, tables("lm", [text], steps=100), print) == "steps"
    description, tokenizer = load_description(folder)
    assert (description.task, description.longest, description.model.max_length) == ("lm", 16, 16)
    assert (description.model.encoder_layers, description.model.decoder_layers) == (0, 1)
    lines = Path(text).read_text(encoding="utf-8").splitlines()
    tokens = [
        token
        for row in tokenizer.encode(lines, "target")
        for token in (*row, description.frame.end)
    ]
    entropy = -sum(n / len(tokens) * math.log(n / len(tokens)) for n in Counter(tokens).values())
    last = valid_lines(folder)[-1]
    assert last["valid_loss"] < entropy / 2
    assert last["perplexity"] == pytest.approx(math.exp(last["valid_loss"]))
    stored = [
        np.fromfile(folder / "state" / "data" / part / "tokens.bin", "<u2")
        for part in ("train", "valid")
    ]
    assert (
        np.concatenate(stored).tolist() == tokens
    )  # the end of the text, from the beginning of a line, was set aside
    assert len(tokens) // 20 - 9 <= len(stored[1]) <= len(tokens) // 20
    assert stored[0][-1] == description.frame.end
    assert f'try it: dragoman generate "Once upon" -m {folder}' in capsys.readouterr().out


def test_the_loss_of_a_language_model_is_that_of_its_logits(tmp_path: Path) -> None:
    from dragoman.data.blocks import Blocks, map_tokens
    from dragoman.text.tokenizer import Frame
    from dragoman.training.validation import ValidSet

    folder = tmp_path / "lm"
    run.start(folder, tables("lm", [write_text(tmp_path / "lm.txt", 600)], steps=2), print)
    description, _ = load_description(folder)
    model = load_model(folder, description.model, CPU)
    file = folder / "state" / "data" / "valid" / "tokens.bin"
    rows = torch.from_numpy(np.fromfile(file, "<u2").astype(np.int64))
    rows = rows[: len(rows) // 16 * 16].view(-1, 16)
    read = torch.cat((torch.full((len(rows), 1), description.frame.start), rows[:, :-1]), 1)
    with torch.no_grad():
        wanted = F.cross_entropy(model(None, read).flatten(0, 1), rows.flatten()).item()
    found = ValidSet(Blocks(map_tokens(file, "<u2"), 16, Frame(), None, None))
    assert found.quality(model, CPU, "loss", torch.no_grad).metrics["valid_loss"] == pytest.approx(
        wanted, rel=1e-5
    )


@pytest.mark.parametrize("task", ["mlm", "class"])
def test_the_loss_has_the_output_layers_bias(task: str) -> None:
    """Loss and gradients are those of the model's own logits."""
    from dragoman.data.batches import Batch
    from dragoman.model.families import FAMILIES
    from dragoman.model.model_config import ModelConfig
    from dragoman.model.transformer import Transformer
    from dragoman.training.loss import ModelLoss

    torch.manual_seed(1)
    head: dict[str, Any] = (
        {"output_bias": True, "output_transform": True} if task == "mlm" else {"classes": 3}
    )
    model = Transformer(
        ModelConfig(
            vocab_size=11, **(SHAPE | FAMILIES["bert"] | head), encoder_layers=1, max_length=8
        )
    )
    source, none = torch.randint(11, (2, 5)), torch.zeros(2, 0, dtype=torch.long)
    places, labels = (
        (torch.tensor([1, 4, 8]), torch.tensor([7, 0, 10]))
        if task == "mlm"
        else (torch.arange(2), torch.tensor([2, 0]))
    )
    lengths = None if task == "mlm" else torch.tensor([5, 3])
    if model.output_bias is not None:
        torch.nn.init.normal_(model.output_bias)
    logits = (
        model(source).flatten(0, 1)[places] if task == "mlm" else model.classify(source, lengths)
    )
    F.cross_entropy(logits, labels, reduction="sum", label_smoothing=0.1).backward()
    wanted = {name: weight.grad for name, weight in model.named_parameters()}
    model.zero_grad()
    smoothed, plain = ModelLoss(model, 0.1)(Batch(source, none, lengths, places, labels))
    smoothed.backward()
    assert plain.item() == pytest.approx(
        F.cross_entropy(logits, labels, reduction="sum").item(), rel=1e-5
    )
    for name, weight in model.named_parameters():
        torch.testing.assert_close(weight.grad, wanted[name], atol=1e-5, rtol=1e-4, msg=name)


def test_masked_words_are_filled_in(mlm: Path) -> None:
    """All but those at the ends of a line follow from their neighbours."""
    description, tokenizer = load_description(mlm)
    model = load_model(mlm, description.model, CPU)
    assert valid_lines(mlm)[-1]["accuracy"] > 0.9
    for hidden in (2, 4):
        words = [WORDS[(5 + i) % 8] for i in range(6)]
        gold, words[hidden] = words[hidden], "[MASK]"
        source = torch.tensor(
            [description.frame.source(tokenizer.encode([" ".join(words)], "source")[0])]
        )
        assert source[0, 0] == 2  # the place that stands for the whole text
        with torch.no_grad():
            guess = model(source)[source == tokenizer.mask].argmax(-1)
        assert tokenizer.decode([guess.tolist()]) == [gold]


def test_a_classifier_from_nothing_and_from_an_encoder(place: Path, mlm: Path) -> None:
    reviews, more = write_reviews(place / "reviews.tsv", 300), write_reviews(place / "more.tsv", 40)
    given = tables("class", [reviews], steps=40, save_every=20)
    given["data"]["valid"] = [more]
    assert run.start(place / "class", given, print) == "steps"
    description, tokenizer = load_description(place / "class")
    assert (description.labels, description.model.classes, tokenizer.mask) == (
        ("bad", "good"),
        2,
        None,
    )
    assert valid_lines(place / "class")[-1]["accuracy"] == 1.0
    given = {
        "task": "class",
        "data": {"train": [reviews]},
        "training": {"steps": 1, "learning_rate": 1e-9, "device": "cpu", "precision": "float32"},
    }
    assert run.start(place / "tuned", given, print, mlm) == "steps"
    old, new = (read_tensors(folder / "model.safetensors") for folder in (mlm, place / "tuned"))
    assert {name for name in new if name not in old} == {
        f"classifier.{part}"
        for part in ("output.bias", "output.weight", "pooler.bias", "pooler.weight")
    }
    kept = [name for name in old if name.startswith("encoder.")]
    assert len(kept) > 10
    for name in kept:
        torch.testing.assert_close(new[name], old[name], atol=1e-6, rtol=0)
    others = place / "others.tsv"
    text = Path(reviews).read_text(encoding="utf-8")
    others.write_text(text.replace("good\t", "up\t").replace("bad\t", "down\t"), encoding="utf-8")
    old = read_tensors(place / "class" / "model.safetensors")
    for name, file in (("same", reviews), ("other", str(others))):
        given["data"] = {"train": [file]}
        assert run.start(place / name, given, print, place / "class") == "steps"
        new = read_tensors(place / name / "model.safetensors")
        close = torch.allclose(
            new["classifier.output.weight"], old["classifier.output.weight"], atol=1e-6, rtol=0
        )
        assert close == (name == "same")
    with pytest.raises(InputError, match="does not exist"):
        run.start(
            place / "none", {"task": "lm", "data": {"train": [str(place / "nowhere.txt")]}}, print
        )
    assert not (place / "none").exists()
    with pytest.raises(
        OptionError, match="is of the task mlm; it cannot be continued with the task lm"
    ):
        run.start(place / "no", {"task": "lm", "data": {"train": [reviews]}}, print, mlm)


def test_images(place: Path) -> None:
    given = tables("image", [write_bars(place / "bars.npz", 400)], steps=60, save_every=20)
    assert run.start(place / "image", given, print) == "steps"
    description, _ = load_description(place / "image")
    config = description.model
    assert (config.input, config.input_size, config.patch_size, config.classes) == (
        "image",
        16,
        2,
        2,
    )
    assert description.labels == ("lying", "upright")
    assert valid_lines(place / "image")[-1]["accuracy"] == 1.0
    assert "| accuracy |" in (place / "image" / "report.md").read_text(encoding="utf-8")


def test_a_folder_of_images(place: Path) -> None:
    pytest.importorskip("PIL")
    from PIL import Image

    for label, colour in (("red", (200, 0, 0)), ("blue", (0, 0, 200))):
        (place / "pictures" / label).mkdir(parents=True)
        for number in range(4):
            Image.new("RGB", (20, 10), colour).save(place / "pictures" / label / f"{number}.png")
    given = tables("image", [str(place / "pictures")], steps=2)
    given["model"] |= {"input_size": 8}
    assert run.start(place / "colours", given, print) == "steps"
    pixels = np.fromfile(
        place / "colours" / "state" / "data" / "train" / "images.bin", np.uint8
    ).reshape(-1, 3, 64)
    labels = np.fromfile(place / "colours" / "state" / "data" / "train" / "labels.bin", "<i8")
    assert len(pixels) == 7
    for image, label in zip(pixels, labels, strict=True):  # in the order of the alphabet, blue is 0
        assert (image == np.array([[[0], [0], [200]], [[200], [0], [0]]])[label]).all()


def slow_steps() -> None:
    trainer: Any = importlib.import_module("dragoman.training.trainer")
    rate = trainer.learning_rate

    def slowly(*arguments: Any) -> float:
        time.sleep(0.05)
        return rate(*arguments)

    trainer.learning_rate = slowly


RECIPE = "\n".join(f"{name} = {value}" for name, value in SHAPE.items()).replace(
    "dropout = 0.0", "dropout = 0.1"
)
SETTINGS = """
encoder_layers = 1
decoder_layers = 0
[training]
steps = 18
save_every = 5
log_every = 1
batch_tokens = 256
"""


def words_of(place: Path, task: str, name: str, precision: str = "float32") -> list[str]:
    settings = (
        SETTINGS
        if task == "mlm"
        else SETTINGS.replace("encoder_layers = 1\ndecoder_layers = 0", "decoder_layers = 1")
    )
    head = 'preset = "tiny"\n[data]\nblock = 16\n[tokenizer]\nvocab_size = 310\n[model]\n'
    recipe = f'{head}{RECIPE}{settings}device = "cpu"\n'
    (place / f"{task}.toml").write_text(recipe, encoding="utf-8")
    text = write_text(place / "resumed.txt", 120)
    return [
        "train",
        "--task",
        task,
        text,
        "--out",
        str(place / name),
        "--config",
        str(place / f"{task}.toml"),
        "--set",
        f"precision={precision}",
    ]


@functools.cache
def unbroken(place: Path, task: str, precision: str) -> Path:
    folder = place / f"unbroken-{task}-{precision}"
    assert tiny.run(words_of(place, task, folder.name, precision), place).wait() == 0
    return folder


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("task", ["lm", "mlm"])
def test_killed_and_resumed(place: Path, task: str, precision: str) -> None:
    folder = place / f"killed-{task}-{precision}"
    command = tiny.Command(words_of(place, task, folder.name, precision), place, slow_steps)
    command.until(lambda: (folder / "metrics.jsonl").exists() and len(tiny.losses(folder)) >= 8)
    command.kill()
    assert command.wait() == -signal.SIGKILL
    assert tiny.run(["train", "--resume", str(folder)], place).wait() == 0
    whole = unbroken(place, task, precision)
    assert [step for step, _, _ in tiny.losses(folder)] == list(range(1, 19))
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


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("bfloat16", 2e-3)])
@pytest.mark.parametrize("shard", ["false", "true"])
def test_two_processes_mask_like_one(
    place: Path, shard: str, precision: str, tolerance: float
) -> None:
    """In bfloat16, sums of other parts are rounded otherwise; six steps lower the loss by far more
    than that."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    short = ["--set", "model.dropout=0.0", "--steps", "6"]
    two = place / f"two-{shard}-{precision}"
    words = [*words_of(place, "mlm", two.name, precision), *short, "--set", f"shard={shard}"]
    commands = [tiny.Command(words, place, join_world, rank, port) for rank in (0, 1)]
    one = place / f"one-{shard}-{precision}"
    assert tiny.run([*words_of(place, "mlm", one.name, precision), *short], place).wait() == 0
    for command in commands:
        assert command.wait() == 0, command.errors
    np.testing.assert_allclose(tiny.losses(two), tiny.losses(one), rtol=tolerance)
    first, last = (tiny.losses(one)[step][1] for step in (0, -1))
    assert last < 0.95 * first


@pytest.mark.parametrize(
    ("task", "name", "content", "said"),
    [
        ("lm", "x.txt", "", "there is no text to learn a vocabulary from; the files are empty"),
        (
            "lm",
            "x.txt",
            "too little\n",
            "tokens of text to train on and .* to validate with, and a block takes 16; "
            "give more text",
        ),
        ("lm", "x.txt", "\xff", "x.txt, line 1: not UTF-8 .*; convert the file"),
        ("mlm", "gone.txt", None, "gone.txt does not exist; name a text file"),
        (
            "class",
            "x.tsv",
            "good\tall well\nno tab here\n",
            "x.tsv, line 2: no tab here; write .* label, tab, text",
        ),
        (
            "class",
            "x.tsv",
            "good\tall well\ngood\tas well\n",
            "x.tsv has fewer than two labels; give examples",
        ),
        ("class", "x.txt", "good\tall well\n", "x.txt is not a .tsv file; write label, tab, text"),
        ("image", "x.npz", "not a zip file", "x.npz cannot be read .*; write it by numpy.savez"),
        ("image", "empty", None, "empty has no images; name one .npz file, or a folder"),
    ],
)
def test_what_cannot_be_used_gets_one_sentence(
    tmp_path: Path, task: str, name: str, content: str | None, said: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=said) as caught:
        run.start(tmp_path / "out", tables(task, [str(tmp_path / name)]), print)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out" / "state").exists()  # so that the command can be given again


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        (np.zeros((4, 8, 9), np.uint8), np.arange(4)),
        (np.zeros((4, 8, 8), np.float32), np.arange(4)),
        (np.zeros((4, 8, 8, 2), np.uint8), np.arange(4)),
        (np.zeros((4, 8, 8), np.uint8), np.arange(3)),
        (np.zeros((4, 8, 8), np.uint8), np.zeros((4, 1))),
        (np.uint8(3), np.arange(4)),
        (np.array([{}], dtype=object), np.arange(1)),
    ],
)
def test_arrays_that_are_no_images(tmp_path: Path, images: Any, labels: Any) -> None:
    np.savez(tmp_path / "x.npz", images=images, labels=labels)
    with pytest.raises(InputError, match=r"x\.npz (has images|cannot be read)"):
        run.start(tmp_path / "out", tables("image", [str(tmp_path / "x.npz")]), print)


def test_an_image_that_is_none(tmp_path: Path) -> None:
    for label in ("a", "b"):
        (tmp_path / "pictures" / label).mkdir(parents=True)
        (tmp_path / "pictures" / label / "1.png").write_bytes(b"GIF89a and nothing more")
    pytest.importorskip("PIL")
    with pytest.raises(InputError, match=r"1\.png cannot be read as an image"):
        run.start(tmp_path / "out", tables("image", [str(tmp_path / "pictures")]), print)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"task": "singing"},
            "task is 'singing'; it must be one of translate, text, parse, lm, mlm, class, label, "
            "embed, image, speech",
        ),
        (
            {"task": "lm", "training": {"select": "accuracy"}},
            "training.select of the task lm is 'accuracy'; it must be one of loss",
        ),
        ({"task": "class", "training": {"select": "bleu"}}, "must be one of loss, accuracy"),
        ({"training": {"select": "accuracy"}}, "must be one of loss, bleu, chrf"),
        (
            {"task": "mlm", "tokenizer": {"sampling": 0.1}},
            "joint=false are for translation, not for the task mlm",
        ),
        (
            {"task": "lm", "data": {"block": 64}, "model": {"max_length": 32}},
            "model.max_length is 32; it must be at least data.block",
        ),
        ({"task": "lm", "data": {"block": 2}}, "data.block is 2; it must be at least 8"),
        ({"task": "lm", "model": {"encoder_layers": 1}}, "is not for the task lm"),
        ({"task": "lm", "model": {"positions": "relative"}}, "is not for the task lm"),
        ({"task": "class", "model": {"decoder_layers": 1}}, "is not for the task class"),
        ({"task": "image", "model": {"input": "tokens"}}, "is not for the task image"),
    ],
)
def test_options_that_do_not_go_together(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        run.start(tmp_path / "out", changes, print)


@pytest.mark.parametrize("task", ["lm", "mlm", "class", "label", "embed", "image"])
@pytest.mark.parametrize("preset", ["auto", "tiny", "small", "base", "big", "student"])
def test_presets(task: str, preset: str) -> None:
    from dragoman.training.presets import resolve

    options, why = resolve({"task": task, "preset": preset}, 50_000, True)
    layers = {"tiny": 4, "small": 8, "base": 12, "big": 12, "auto": 8, "student": 7}[preset]
    assert (options.model.encoder_layers, options.model.decoder_layers) == (
        (0, layers) if task == "lm" else (layers, 0)
    )
    assert options.model.norm_first
    assert options.training.label_smoothing == 0.0
    assert options.training.warmup < options.training.steps
    counts_right_ones = task in ("class", "label", "embed", "image")
    assert options.training.select == ("accuracy" if counts_right_ones else "loss")
    assert bool(why) == (preset == "auto")
