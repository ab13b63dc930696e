"""The commands of encoders through the front door: what `label`, `classify` and `evaluate` print of
small models, and what they refuse."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.cli import main as front_door
from dragoman.folder.description import Description, save_description
from dragoman.folder.weights import save_weights
from dragoman.model.families import FAMILIES
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.text.tokenizer import BOS, EOS, Frame, TokenizerOptions, learn

LABELS = ("B-PER", "I-PER", "O")
LINES = ["Ada Lovelace sleeps", "the rain falls", "Ada sat in the rain"] * 30
Call = Callable[..., tuple[int, str, str]]


def save_encoder(folder: Path, task: str, labels: tuple[str, ...], **fields: Any) -> None:
    """A random encoder, whose classifier has a bias so large that it decides alone."""
    tokenizer, _ = learn(TokenizerOptions(vocab_size=300), LINES, ())
    shape = {"vocab_size": tokenizer.target_size, "d_model": 16, "d_ff": 24, "n_heads": 2}
    config = ModelConfig(
        **(FAMILIES["bert"] | shape | {"encoder_layers": 1, "max_length": 20, "pooler": False}),
        classes=len(labels),
        **fields,
    )
    torch.manual_seed(2)
    model = Transformer(config)
    if model.classifier is not None:
        with torch.no_grad():
            model.classifier.output.bias.copy_(torch.arange(len(labels)) * -50.0)
    folder.mkdir()
    frame = Frame(source_start=(BOS,), between=(EOS,) if task == "class" else ())
    description = Description(config, "", "", 20, task=task, labels=labels, frame=frame)
    save_description(folder, description, tokenizer)
    save_weights(folder, dict(model.named_parameters()))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    save_encoder(folder / "labels", "label", LABELS, pooled="every")
    save_encoder(folder / "classes", "class", ("same", "other"))
    save_encoder(folder / "vectors", "embed", ())
    return folder


@pytest.fixture
def call(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*words: str, said: str = "") -> tuple[int, str, str]:
        monkeypatch.chdir(place)
        monkeypatch.setattr(sys, "argv", ["dragoman", *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(said.encode())))
        with pytest.raises(SystemExit) as stopped:
            front_door.main()
        found = capsys.readouterr()
        return int(stopped.value.code or 0), found.out, found.err

    return run


def test_words_and_their_labels(call: Call) -> None:
    code, out, _ = call("label", "-m", "labels", "Ada sleeps.", "Rain")
    assert (code, out) == (0, "Ada\tB-PER\nsleeps\tB-PER\n.\tB-PER\n\nRain\tB-PER\n\n")
    _, out, _ = call("label", "-m", "labels", "--tokenized", said="Ada sleeps.\n\n")
    assert out == "Ada\tB-PER\nsleeps.\tB-PER\n\n\n"
    _, out, _ = call("label", "-m", "labels", "--spans", "Ada sleeps")
    assert out == "Ada\tPER\nsleeps\tPER\n\n"
    _, out, _ = call("label", "-m", "labels", "--jsonl", "Ada, Ada")
    found = json.loads(out)
    assert found["text"] == "Ada, Ada"
    assert [(word["text"], word["start"], word["end"]) for word in found["words"]] == [
        ("Ada", 0, 3),
        (",", 3, 4),
        ("Ada", 5, 8),
    ]
    assert found["words"][0]["probability"] > 0.99
    assert found["spans"][2] == {"text": "Ada", "label": "PER", "start": 5, "end": 8}


def test_attention_of_encoders(call: Call, place: Path) -> None:
    """Beside what the model makes of the text; of a pair, both texts with what is between."""
    code, _, errors = call("inspect", "Ada sleeps", "-m", "labels", "--out", "view.json")
    assert code == 0, errors
    view = json.loads((place / "view.json").read_text(encoding="utf-8"))
    assert view["text"] == "Ada/B-PER sleeps/B-PER"
    assert len(view["encoder"][0][0]) == len(view["source"])
    code, _, errors = call("inspect", "Ada\tRain", "-m", "classes", "--out", "pair.json")
    assert code == 0, errors
    view = json.loads((place / "pair.json").read_text(encoding="utf-8"))
    assert view["text"] == "same (100.0%)"
    assert view["source"].count("</s>") == 2


def test_what_is_printed_can_be_read(call: Call, place: Path) -> None:
    """As a test set; all labels are then right."""
    _, out, _ = call("label", "-m", "labels", "Ada sleeps.", "Rain")
    (place / "own.tsv").write_text(out, encoding="utf-8")
    code, out, _ = call("evaluate", "-m", "labels", "own.tsv")
    assert code == 0
    assert out.splitlines()[:2] == [
        "F1 100.00 (95%: 100.00 to 100.00)  precision 100.00, recall 100.00",
        "accuracy 100.00, 2 sentences, 4 words; spans counted as conlleval does",
    ]


def test_classes_of_texts_and_pairs(call: Call, place: Path) -> None:
    code, out, _ = call("classify", "-m", "classes", said="rain\nthe rain\tfalls\n")
    assert (code, out) == (0, "rain\tsame 1.0000\nthe rain\tfalls\tsame 1.0000\n")
    (place / "pairs.tsv").write_text("same\ta\tb\nother\ta\tc\nsame\td\te\nnew\td\te\n")
    _, out, _ = call("evaluate", "-m", "classes", "--task", "class", "pairs.tsv", "--json")
    found = json.loads(out)
    assert (found["model"], found["accuracy"], found["examples"]) == ("classes", 50.0, 4)
    assert found["macro_f1"] == pytest.approx((200 * 2 / 6 + 0 + 0) / 3)


def test_vectors_of_pairs(call: Call, place: Path) -> None:
    (place / "twins.tsv").write_text("the rain\tthe rain\nAda\tAda\n")
    code, out, _ = call("evaluate", "-m", "vectors", "twins.tsv")
    assert code == 0
    assert out.splitlines()[0] == (
        "retrieval 100.0 (95%: 100.0 to 100.0)  first to second text 100.0, back 100.0, 2 pairs"
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("label -m classes one", "the task class; this needs one that was trained to label words"),
        ("label -m vectors one", "the task embed; this needs one that was trained to label words"),
        ("classify -m labels one", "the task label; this needs one that was trained to classify"),
        ("classify -m vectors one", "the task embed; this needs one that was trained to classify"),
        ("fill -m labels [MASK]", "this needs one that was trained to fill in"),
        ("evaluate -m vectors own.tsv --task label", "this needs one that was trained to label"),
        ("evaluate -m labels twins.tsv --task class", "this needs one that was trained to class"),
        ("evaluate -m labels own.tsv --beam 2", "--beam, --alpha and --against are not for the"),
        ("evaluate -m labels own.tsv --robust", "--lowercase, --robust and --glossary are for"),
        ("evaluate -m classes none.tsv", "none.tsv does not exist; name a text file"),
        ("evaluate -m labels none.tsv", "none.tsv does not exist; name a file with a word"),
        ("translate -m labels own.tsv", "the task label"),
        ("generate -m labels one", "label"),
        ("transcribe -m labels own.tsv", "label"),
        ("parse -m labels own.tsv", "for label; parsing needs one for parse"),
        ("embed -m vectors own.tsv", "name --out FILE.npy or --jsonl"),
    ],
)
def test_what_is_refused(call: Call, place: Path, line: str, said: str) -> None:
    (place / "own.tsv").write_text("Ada\tB-PER\n", encoding="utf-8")
    (place / "twins.tsv").write_text("the rain\tthe rain\nAda\tAda\n")
    code, _, errors = call(*line.split())
    assert code == 2
    assert said in errors
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1


def test_a_text_with_tabs_for_a_model_of_single_texts(place: Path, call: Call) -> None:
    save_encoder(place / "single", "class", ("a", "b"))
    config = (place / "single" / "config.json").read_text(encoding="utf-8")
    values = json.loads(config)
    del values["between"]
    (place / "single" / "config.json").write_text(json.dumps(values), encoding="utf-8")
    code, _, errors = call("classify", "-m", "single", said="one\none\ttwo\n")
    assert code == 2
    assert "item 2 has 2 texts with tabs between, and the model reads single texts" in errors
