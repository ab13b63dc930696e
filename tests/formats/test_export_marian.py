"""The export to Hugging Face: transformers reads the folder and computes what our model does;
nothing is left of a failure."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from random_models import make

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder import quantised
from dragoman.folder.description import load_description
from dragoman.folder.extras import save_int8
from dragoman.folder.layout import WEIGHTS
from dragoman.folder.weights import load_model, read_tensors
from dragoman.formats import export_marian as marian
from dragoman.formats.verify import best
from dragoman.model.transformer import Transformer
from dragoman.text.tokenizer import BOS, EOS, Tokenizer

transformers = pytest.importorskip("transformers", reason="needs transformers")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("format") / "model"
    make(folder)
    return folder


@pytest.mark.parametrize(
    ("joint", "norm_first", "name"),
    [
        (True, False, "MarianMTModel"),
        (False, False, "MarianMTModel"),
        (True, True, "PegasusForConditionalGeneration"),
    ],
)
@torch.no_grad()
def test_transformers_computes_what_we_do(
    tmp_path: Path, joint: bool, norm_first: bool, name: str
) -> None:
    model, tokenizer = make(tmp_path / "model", joint, norm_first)
    said: list[str] = []
    marian.export(tmp_path / "model", tmp_path / "new" / "out", said.append)
    assert said[0] == "the folder read again: 40 of 40 translations have the same tokens as ours"
    assert said[1].startswith(f"transformers {transformers.__version__}: ")
    assert int(said[1].split()[2]) > 30
    theirs, report = getattr(transformers, name).from_pretrained(
        tmp_path / "new" / "out", output_loading_info=True
    )
    assert not any(report.values())
    texts = ["one two seven", "nine", "Größe 😀 zero"]
    cut = transformers.AutoTokenizer.from_pretrained(tmp_path / "new" / "out")
    batch = cut(texts, padding=True, return_tensors="pt")
    rows = tokenizer.encode(texts, "source")
    assert [row[row > 0].tolist() for row in batch["input_ids"]] == [[*row, EOS] for row in rows]
    target = torch.tensor([[BOS, 20, 30, 40], [BOS, 50, 60, 70], [BOS, 280, 270, 260]])
    expected = theirs.eval()(**batch, decoder_input_ids=target).logits
    lengths = torch.tensor([len(row) + 1 for row in rows])
    torch.testing.assert_close(
        model(batch["input_ids"], target, lengths), expected, atol=1e-4, rtol=1e-4
    )
    ours = best(model, rows, SearchOptions(beam=1), 20)
    found = theirs.generate(**batch, num_beams=1, max_new_tokens=20)
    assert [one.tokens for one in ours] == [
        tuple(row[1:].tolist())[: len(one.tokens)] for one, row in zip(ours, found, strict=True)
    ]
    german = ["fünf eins", "Größe 😀 zwei"]
    assert cut.batch_decode(tokenizer.encode(german, "target"), skip_special_tokens=True) == german


def test_a_folder_with_int8_weights_alone(original: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(original, tmp_path / "model"))
    model = load_model(folder, load_description(folder)[0].model, torch.device("cpu"))
    save_int8(folder, quantised.quantise(model))
    (folder / WEIGHTS).unlink()
    marian.export(folder, tmp_path / "out", lambda line: None)
    stored = read_tensors(tmp_path / "out" / "model.safetensors")["model.shared.weight"]
    ours = quantised.dequantise(quantised.quantise(model))["encoder.embeddings.tokens.weight"]
    torch.testing.assert_close(
        stored[:, 8:], ours[:, 1::2]
    )  # what meets cosines comes after what meets sines


def test_without_transformers_it_is_read_back_and_said(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    said: list[str] = []
    marian.export(original, tmp_path / "out", said.append)
    assert said[0].startswith("the folder read again: 40 of 40")
    assert said[1:] == ["transformers is not installed, so the folder was not tried with it"]


@pytest.mark.parametrize(
    "name", ["model.decoder.layers.2.encoder_attn.v_proj.bias", "model.shared.weight"]
)
@pytest.mark.parametrize("installed", [True, False])
def test_a_spoiled_weight_is_found(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, installed: bool
) -> None:
    weights = marian._weights

    def spoil(*arguments: Any) -> dict[str, torch.Tensor]:
        found = weights(*arguments)
        found[name] = found[name].clone()  # some are the model's own
        found[name][-1] += 0.5
        return found

    monkeypatch.setattr(marian, "_weights", spoil)
    if not installed:
        monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(
        ModelFolderError, match=r"the folder read again \w+ some sentences in another way than ours"
    ):
        marian.export(original, tmp_path / "deep" / "out", lambda line: None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("file", "key", "value", "message"),
    [
        ("config.json", "scale_embedding", False, "the folder read again translates"),
        (
            "generation_config.json",
            "decoder_start_token_id",
            EOS,
            "the folder read again tokenises",
        ),
        ("generation_config.json", "forced_eos_token_id", 5, "transformers .* translates"),
        ("vocab.json", "▁", 7, "the folder read again tokenises"),
    ],
)
def test_a_spoiled_setting_is_found(
    original: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    key: str,
    value: int,
    message: str,
) -> None:
    check = marian._check

    def spoil(
        model: Transformer, tokenizer: Tokenizer, rows: list[list[int]], folder: Path, *rest: Any
    ) -> None:
        values = json.loads((folder / file).read_text(encoding="utf-8"))
        assert key in values
        (folder / file).write_text(json.dumps(values | {key: value}), encoding="utf-8")
        check(model, tokenizer, rows, folder, *rest)

    monkeypatch.setattr(marian, "_check", spoil)
    with pytest.raises(ModelFolderError, match=message):
        marian.export(original, tmp_path / "out", lambda line: None)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_is_refused(original: Path, tmp_path: Path) -> None:
    make(tmp_path / "both", joint=False, norm_first=True)
    with pytest.raises(
        ModelFolderError, match="norms come first, and Pegasus none with a vocabulary for each side"
    ):
        marian.export(tmp_path / "both", tmp_path / "out", lambda line: None)
    other = Path(shutil.copytree(original, tmp_path / "other"))
    values = json.loads((other / "config.json").read_text(encoding="utf-8"))
    values["model"]["activation"] = "gelu"
    (other / "config.json").write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(
        ModelFolderError,
        match="writes models of the paper's kind to Marian, and this one is another of",
    ):
        marian.export(other, tmp_path / "out", lambda line: None)
    with pytest.raises(OptionError, match="other exists; name a folder that is new"):
        marian.export(original, other, lambda line: None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["both", "other"]
