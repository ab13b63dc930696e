"""What a model folder says is checked before it is used, and never run; what is saved is loaded."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch
from safetensors.torch import load_file, save_file

from dragoman.errors import ModelFolderError
from dragoman.folder.description import Description, load_description, save_description
from dragoman.folder.weights import load_model, save_weights
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.tasks.translate import Translator
from dragoman.text.tokenizer import Frame, Tokenizer, TokenizerOptions, learn

CPU = torch.device("cpu")
LINES = [" ".join(tiny.ENGLISH[i] for i in (a, b)) for a in range(10) for b in range(10)]


def make_tokenizer(joint: bool = True, size: int = 290) -> Tokenizer:
    german = [" ".join(tiny.GERMAN[i] for i in (a, b)) for a in range(10) for b in range(10)]
    return learn(TokenizerOptions(vocab_size=size, joint=joint), LINES, german)[0]


def make_model(tokenizer: Tokenizer, **changes: Any) -> Transformer:
    sizes = {
        "vocab_size": tokenizer.target_size,
        "source_vocab_size": 0 if tokenizer.joint else tokenizer.source_size,
    }
    shape = {
        "d_model": 16,
        "d_ff": 32,
        "n_heads": 2,
        "encoder_layers": 2,
        "decoder_layers": 1,
        "max_length": 128,
    }
    torch.manual_seed(3)
    return Transformer(ModelConfig(**{**sizes, **shape, **changes})).eval()


def save(folder: Path, model: Transformer, tokenizer: Tokenizer) -> None:
    save_description(folder, Description(model.config, "en", "de", 64), tokenizer)
    save_weights(folder, dict(model.named_parameters()))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("description") / "model"
    tokenizer = make_tokenizer()
    save(folder, make_model(tokenizer), tokenizer)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "model"))


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_what_is_saved_is_loaded(tmp_path: Path, joint: bool, norm_first: bool) -> None:
    tokenizer = make_tokenizer(joint)
    model = make_model(tokenizer, norm_first=norm_first)
    save(tmp_path / "model", model, tokenizer)
    description, read = load_description(tmp_path / "model")
    assert description == Description(model.config, "en", "de", 64)
    assert read.encode(LINES, "target") == tokenizer.encode(LINES, "target")
    loaded = load_model(tmp_path / "model", description.model, CPU)
    source = loaded.encoder.embeddings.tokens
    assert isinstance(source, torch.nn.Embedding)
    shared = source.weight is loaded.decoder.embeddings.tokens.weight
    assert shared == joint
    assert loaded.output_weight is loaded.decoder.embeddings.tokens.weight
    assert not loaded.training
    source, target = torch.randint(4, 200, (3, 9)), torch.randint(4, 200, (3, 7))
    lengths = torch.tensor([9, 4, 1])
    assert torch.equal(loaded(source, target, lengths), model(source, target, lengths))


def test_the_schema_of_config_json(folder: Path) -> None:
    """Format 1: other versions of dragoman read and write it, so it stays as it is."""
    text = (folder / "config.json").read_text(encoding="utf-8")
    values = json.loads(text)
    assert values.pop("model").keys() == {field.name for field in fields(ModelConfig)}
    assert values == {
        "format": 1,
        "task": "translate",
        "source_language": "en",
        "target_language": "de",
        "longest": 64,
        "labels": [],
        "start": 2,
        "end": 3,
        "source_start": [],
        "source_end": [3],
        "forced": [],
    }
    edit_config(start=4, end=5, source_start=[6], source_end=[7, 8], forced=[9])(folder)
    assert load_description(folder)[0].frame == Frame(4, 5, (6,), (7, 8), (9,))


def test_a_shared_matrix_is_stored_once(original: Path) -> None:
    names = load_file(original / "model.safetensors").keys()
    assert sum("tokens" in name for name in names) == 1


def test_others_may_read_what_the_mask_lets_them(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        save_weights(tmp_path, {"a": torch.zeros(2)})
    finally:
        os.umask(before)
    assert (tmp_path / "model.safetensors").stat().st_mode & 0o777 == 0o640


def edit_config(**changes: Any) -> Callable[[Path], None]:
    """Changes config.json; `model` is a table of changes to its table."""

    def edit(folder: Path) -> None:
        values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        model = {**values["model"], **changes.get("model", {})}
        (folder / "config.json").write_text(
            json.dumps({**values, **changes, "model": model}), encoding="utf-8"
        )

    return edit


def write_config(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "config.json").write_text(text, encoding="utf-8")


def edit_weights(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors")

    return edit


def cut(name: str, keep: float) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(len(content) * keep)])

    return edit


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def swap_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.model").write_bytes(make_tokenizer(size=300).serialised()[0])


def devise(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


NORM = "encoder.layers.0.after_attention.norm.weight"
DAMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no folder": (shutil.rmtree, "is not a folder; name a model folder"),
    "no config": (remove("config.json"), "config.json is missing, so .* is not a model folder"),
    "no weights": (remove("model.safetensors"), "model.safetensors is missing"),
    "no tokeniser": (remove("tokenizer.model"), r"tokenizer\.\S*model is missing"),
    "weights cut short": (cut("model.safetensors", 0.7), "model.safetensors is damaged"),
    "weights' head cut": (cut("model.safetensors", 0.01), "model.safetensors is damaged"),
    "weights empty": (cut("model.safetensors", 0), "model.safetensors is damaged"),
    "tokeniser cut short": (cut("tokenizer.model", 0.5), "the tokeniser file is damaged"),
    "tokeniser empty": (cut("tokenizer.model", 0), "tokeniser file"),
    "tokeniser of another size": (
        swap_tokenizer,
        "the tokeniser in .* has 300 pieces and config.json says 290",
    ),
    "weight missing": (edit_weights(lambda tensors: tensors.pop(NORM)), f"has no weight '{NORM}'"),
    "weight too many": (
        edit_weights(lambda tensors: tensors.update(more=torch.zeros(1))),
        "has a weight 'more' that",
    ),
    "weight of another shape": (
        edit_weights(lambda tensors: tensors.update({NORM: torch.zeros(17)})),
        rf"weight '{NORM}' in .* has shape \(17,\); config.json asks for \(16,\)",
    ),
    "config cut short": (cut("config.json", 0.5), "config.json is damaged: it is not JSON"),
    "config not UTF-8": (
        lambda folder: (folder / "config.json").write_bytes(
            b'{"format": 1, "source_language": "\xff"}'
        ),
        "it is not JSON",
    ),
    "config a list": (write_config("[1]"), "config.json is damaged: it is not a JSON object"),
    "config deep": (write_config("[" * 100_000), "config.json is damaged"),
    "config huge": (write_config('{"a": "' + "x" * 2**21 + '"}'), "is larger than any such file"),
    "config of somebody else": (
        write_config('{"model_type": "marian"}'),
        "was not written by dragoman",
    ),
    "newer format": (
        edit_config(format=2),
        "has format 2, and this dragoman reads up to 1; install a newer dragoman",
    ),
    "format in words": (edit_config(format="1"), "was not written by dragoman"),
    "unknown field": (
        edit_config(model={"rotary": True}),
        "does not describe a model: unknown option 'model.rotary'",
    ),
    "field of another type": (
        edit_config(model={"d_model": "16"}),
        r"'model.d_model' must be a whole number",
    ),
    "frame's field of another type": (edit_config(start="2"), "'start' must be a whole number"),
    "frame's token too large": (
        edit_config(forced=[290]),
        r"config\.json does not describe a model: 'forced' has the token 290, and the model's",
    ),
    "frame as a table": (edit_config(frame={"start": 2}), "unknown option 'frame'"),
    "model no table": (edit_config(longest=None), "'longest' must be a whole number"),
    "field missing": (
        write_config('{"format": 1, "model": {}}'),
        "does not describe a model: .*source_language",
    ),
    "absurd width": (edit_config(model={"d_model": 2**40}), "model.d_model is 1099511627776"),
    "large width": (
        edit_config(model={"d_model": 65_536, "max_length": 512}),
        "config.json asks for",
    ),
    "large table": (
        edit_config(model={"max_length": 2**20, "d_model": 64}),
        "its table of sines would be too large",
    ),
    "config a device": (
        lambda folder: devise(folder / "config.json"),
        "config.json is not a regular file",
    ),
    "tokeniser huge": (
        lambda folder: os.truncate(folder / "tokenizer.model", 2**27 + 1),
        "larger than any such file",
    ),
    "negative layers": (edit_config(model={"decoder_layers": -1}), "model.decoder_layers is -1"),
    "no room for a sentence": (
        edit_config(longest=1),
        "longest is 1; it must lie between 2 and model.max_length, 128",
    ),
    "longest beyond the table": (edit_config(longest=129), "longest is 129"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_gets_one_sentence(folder: Path, damage: str) -> None:
    change, sentence = DAMAGES[damage]
    change(folder)
    with pytest.raises(ModelFolderError, match=sentence) as caught:
        Translator.load(folder, "cpu")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("kind", ["pickle", "torch"])
def test_a_pickle_is_refused_and_not_run(folder: Path, tmp_path: Path, kind: str) -> None:
    mark = tmp_path / "was run"
    if kind == "pickle":
        (folder / "model.safetensors").write_bytes(pickle.dumps(Bomb(mark)))
    else:
        torch.save({"weight": Bomb(mark)}, folder / "model.safetensors")
    with pytest.raises(ModelFolderError, match=r"model\.safetensors is damaged"):
        Translator.load(folder, "cpu")
    assert not mark.exists()
