"""The export to ONNX: onnxruntime computes what our model does, in every family that has a decoder
of text, and an export that does not is never left behind."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from random_models import make

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import MissingDependencyError, ModelFolderError, OptionError
from dragoman.folder.description import Description, save_description
from dragoman.folder.weights import save_weights
from dragoman.formats import export_onnx as exporter
from dragoman.formats import onnx_graph, verify
from dragoman.formats.onnx_layers import Layers
from dragoman.model.families import FAMILIES
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.tasks.translate import Translator
from dragoman.text.foreign import Foreign
from dragoman.text.tokenizer import Frame

onnxruntime = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")
DOCS = Path(__file__).parents[2] / "docs" / "howto" / "convert.md"
SIZE = 60
SAME = "12 of 12 outputs of onnxruntime have the same tokens as ours"
# The families with a decoder over text, and others that only this table makes.
SHAPES: dict[str, dict[str, Any]] = {
    name: FAMILIES[name]
    for name in ("marian", "bart", "mbart", "pegasus", "m2m_100", "t5", "gpt2", "llama")
} | {
    "grouped": FAMILIES["llama"] | {"n_heads": 4, "kv_heads": 2, "head_size": 6},
    "rotary pairs": {"positions": "rotary", "kv_heads": 1, "decoder_d_ff": 20, "tied": False},
    "gated t5": FAMILIES["t5"] | {"gated": True, "activation": "gelu_tanh", "head_size": 12},
}


@pytest.fixture(autouse=True)
def few_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_SENTENCES", 6)
    monkeypatch.setattr(exporter, "_EXTRA", 10)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("format") / "model"
    make(folder)
    return folder


def family(folder: Path, fields: dict[str, Any]) -> Transformer:
    """A folder with a model of these fields and random weights; its text is ids."""
    sizes = {"vocab_size": SIZE, "d_model": 16, "d_ff": 24, "n_heads": 2, "max_length": 100}
    layers = {"encoder_layers": 2, "decoder_layers": 2}
    config = ModelConfig(**{**sizes, **layers, **fields})
    torch.manual_seed(1)
    model = Transformer(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
    frame = Frame(start=5, end=6, source_start=(7,), source_end=(6, 8), forced=(9, 10))
    task = "translate" if config.encoder_layers else "lm"
    description = Description(config, "en", "de", 40, task=task, frame=frame)
    save_description(folder, description, Foreign({}, SIZE, frame=frame))
    save_weights(folder, dict(model.named_parameters()))
    return model


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_a_model_of_the_paper_says_the_same(tmp_path: Path, joint: bool, norm_first: bool) -> None:
    make(tmp_path / "model", joint, norm_first)
    said: list[str] = []
    exporter.export(tmp_path / "model", tmp_path / "out", "float32", said.append)
    assert said == [SAME]


@pytest.mark.parametrize("name", SHAPES)
def test_the_family_says_the_same(tmp_path: Path, name: str) -> None:
    family(tmp_path / "model", SHAPES[name])
    said: list[str] = []
    exporter.export(tmp_path / "model", tmp_path / "out", "float32", said.append)
    assert said == [SAME]


def test_the_logits_are_those_of_the_whole_target(original: Path, tmp_path: Path) -> None:
    """By onnxruntime alone: padding, several rows and a growing past."""
    model, _ = make(tmp_path / "model")
    exporter.export(original, tmp_path / "out", "float32")
    encoder = onnxruntime.InferenceSession(tmp_path / "out" / "encoder.onnx")
    decoder = onnxruntime.InferenceSession(tmp_path / "out" / "decoder.onnx")
    draw = np.random.default_rng(2)
    source = draw.integers(4, 200, (3, 9))
    lengths = np.array([9, 4, 1])
    target = draw.integers(4, 200, (3, 6))
    with torch.no_grad():
        expected = model(*map(torch.from_numpy, (source, target, lengths))).numpy()
    names = [one.name for one in encoder.get_outputs()]
    found = encoder.run(names, {"source": source, "lengths": lengths})
    memory = dict(zip(names, found, strict=True))
    assert memory["memory_keys_2"].shape == (3, 2, 9, 8)
    past = {name.replace("memory", "past"): np.zeros((3, 2, 0, 8), np.float32) for name in names}
    for position in range(6):
        given = {"tokens": target[:, position], "lengths": lengths, **memory, **past}
        logits, *present = decoder.run(None, given)
        np.testing.assert_allclose(logits, expected[:, position], atol=1e-4)
        past = dict(zip(past, present, strict=True))
    assert past["past_values_0"].shape == (3, 2, 6, 8)


def test_int8_has_our_rounded_weights(original: Path, tmp_path: Path) -> None:
    said: list[str] = []
    exporter.export(original, tmp_path / "float32", "float32")
    exporter.export(original, tmp_path / "int8", say=said.append)
    assert said[0] == SAME
    assert re.fullmatch(r"int8: \d+ of 12 outputs are those of the float32 weights", said[1])
    weights = {}
    for kind in ("float32", "int8"):
        graph = onnx.load(tmp_path / kind / "decoder.onnx").graph
        weights[kind] = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    name = "decoder.layers.1.feedforward.inner.weight"
    assert weights["int8"][name].dtype == np.int8
    scale = weights["int8"][f"{name}.scale"]
    exact = weights["float32"][name]
    assert np.abs(weights["int8"][name] * scale - exact).max() <= scale.max() / 2 + 1e-6


@pytest.mark.parametrize(
    ("kind", "name"), [("feedforward", "a layer"), ("attend", "attention"), ("bias", "distances")]
)
def test_a_wrong_graph_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    family(tmp_path / "model", FAMILIES["t5"])
    real = getattr(Layers, kind)

    def spoilt(self: Layers, *given: Any) -> str:
        half = self.graph.constant(0.8, np.float32)
        return self.graph("Mul", real(self, *given), half)

    monkeypatch.setattr(Layers, kind, spoilt)
    with pytest.raises(ModelFolderError, match="another log-probability than our model does, by"):
        exporter.export(tmp_path / "model", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["model"], name


def test_large_weights_go_to_a_file_beside_the_graph(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_graph, "LARGEST_FILE", 10_000)
    said: list[str] = []
    exporter.export(original, tmp_path / "out", "float32", said.append)
    assert said == [SAME]
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "out").iterdir()}
    assert sizes["decoder.weights"] > 40_000
    assert set(sizes) == {
        *("encoder.onnx", "encoder.weights", "decoder.onnx", "decoder.weights"),
        *("config.json", "tokenizer.model"),
    }
    exporter.export(original, tmp_path / "out", "float32")  # over an export of its own


def test_what_is_in_the_way_is_not_overwritten(original: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    exporter.export(original, tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("Dear diary", encoding="utf-8")
    for place in (tmp_path / "mine", tmp_path / "mine" / "diary.txt", original):
        with pytest.raises(OptionError, match="exists and is not an ONNX folder of ours"):
            exporter.export(original, place)
    (tmp_path / "out" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(OptionError, match=r"holds notes.txt, which is no part of an export"):
        exporter.export(original, tmp_path / "out")
    assert (tmp_path / "mine" / "diary.txt").read_text(encoding="utf-8") == "Dear diary"
    assert (tmp_path / "out" / "notes.txt").exists()


def test_what_cannot_be_exported_is_refused(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OptionError, match="compute_type is 'int4'; it must be one of int8, float"):
        exporter.export(original, tmp_path / "out", "int4")
    family(tmp_path / "bert", FAMILIES["bert"])
    with pytest.raises(ModelFolderError, match=r"bert holds an encoder alone \(task translate\)"):
        exporter.export(tmp_path / "bert", tmp_path / "out")
    whisper = FAMILIES["whisper"] | {"input_size": 8, "source_length": 20}
    family(tmp_path / "whisper", whisper)
    with pytest.raises(ModelFolderError, match="cannot write this model to ONNX: it has input sou"):
        exporter.export(tmp_path / "whisper", tmp_path / "out")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(
        MissingDependencyError, match="ONNX needs packages that are missing; run: pip"
    ):
        exporter.export(original, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_example_of_the_docs_translates_without_torch(trained: Path, tmp_path: Path) -> None:
    """With nothing but numpy, sentencepiece and onnxruntime, as we do."""
    exporter.export(trained, tmp_path / "en-de-onnx", "float32")
    page = DOCS.read_text(encoding="utf-8")
    (example,) = re.findall(r"```py\n(import json.*?)```", page, re.DOTALL)
    assert len(example.splitlines()) <= 35
    sources = ["one two three", "nine", "four four seven one"]
    code = (
        f"import sys\nfor name in ('torch', 'dragoman'):\n    sys.modules[name] = None\n{example}"
    )
    once = 'print(translate("The cat is sleeping on the chair."))'
    assert once in code
    code = code.replace(once, f"for line in {sources!r}:\n    print(translate(line))")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    translator = Translator.load(trained, "cpu", "torch")
    expected = [one.text for one in translator.translate(sources, SearchOptions(beam=1))]
    assert done.stdout.splitlines() == expected
