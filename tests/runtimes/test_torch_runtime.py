"""Our own runtimes, with the model that puts English digits into German: float, int8, with a
shortlist, picked by name."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch

from dragoman import Glossary, SearchOptions, Translator
from dragoman.decoding.coverage import coverage_penalty
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder import quantised, weights
from dragoman.folder.description import load_description
from dragoman.folder.extras import save_int8, save_shortlist
from dragoman.folder.weights import read_tensors, save_weights
from dragoman.inspection.look import look_inside
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.runtimes import int8
from dragoman.runtimes import load as pick
from dragoman.runtimes.runtime import (
    DECODE,
    GRAMMAR,
    GRAPHS,
    HEADS,
    INT8,
    SHORTLIST,
    TERMS,
    Request,
    abilities,
)
from dragoman.runtimes.torch_runtime import TorchRuntime
from dragoman.text.glossary import Term

LINES = ["one two three four five", "nine three eight", "zero", "six seven one two three four"]
WANTED = ["eins zwei drei vier fünf", "neun drei acht", "null", "sechs sieben eins zwei drei vier"]


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    shutil.copytree(
        trained,
        tmp_path / "model",
        ignore=shutil.ignore_patterns("state", "model.int8*", "ctranslate2*"),
    )
    return tmp_path / "model"


def texts(translator: Translator, options: SearchOptions | None = None) -> list[str]:
    return [one.text for one in translator.translate(LINES, options)]


@pytest.mark.skipif(not int8.available(), reason="this CPU has no 8-bit kernels in torch")
def test_int8_is_made_once_and_kept(folder: Path) -> None:
    assert texts(Translator.load(folder, "cpu", "int8")) == WANTED
    made = (folder / "model.int8.safetensors").stat().st_mtime_ns
    translator = Translator.load(folder, "cpu")
    assert translator.runtime.name == "int8"  # the default on a CPU
    assert texts(translator) == WANTED
    assert (folder / "model.int8.safetensors").stat().st_mtime_ns == made
    weights = read_tensors(folder / "model.safetensors")
    save_weights(folder, weights)
    assert not (folder / "model.int8.safetensors").exists()  # new weights make it stale


@pytest.mark.skipif(not int8.available(), reason="this CPU has no 8-bit kernels in torch")
def test_int8_of_weights_that_were_replaced_meanwhile_is_not_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quantise = quantised.quantise

    def slow(model: Transformer) -> Any:
        save_weights(folder, read_tensors(folder / "model.safetensors"))
        return quantise(model)

    monkeypatch.setattr(quantised, "quantise", slow)
    assert texts(Translator.load(folder, "cpu", "int8")) == WANTED
    assert not (folder / "model.int8.safetensors").exists()


def test_int8_that_is_made_while_weights_are_written_goes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tensors = weights.write_tensors

    def raced(path: Path, tensors: Any) -> None:
        path.with_name("model.int8.safetensors").write_bytes(b"of the weights before")
        write_tensors(path, tensors)

    monkeypatch.setattr(weights, "write_tensors", raced)
    save_weights(folder, read_tensors(folder / "model.safetensors"))
    assert not (folder / "model.int8.safetensors").exists()


@pytest.mark.skipif(not int8.available(), reason="this CPU has no 8-bit kernels in torch")
def test_int8_weights_of_another_type(folder: Path) -> None:
    Translator.load(folder, "cpu", "int8")
    tensors = read_tensors(folder / "model.int8.safetensors")
    scale = next(name for name in tensors if name.endswith(".scale"))
    save_int8(folder, tensors | {scale: tensors[scale].double()})
    with pytest.raises(ModelFolderError, match=f"{scale} among the int8 weights is torch.float64"):
        Translator.load(folder, "cpu", "int8")


@pytest.mark.skipif(not int8.available(), reason="this CPU has no 8-bit kernels in torch")
def test_a_folder_with_int8_weights_alone(folder: Path) -> None:
    Translator.load(folder, "cpu", "int8")
    (folder / "model.safetensors").unlink()
    assert texts(Translator.load(folder, "cpu")) == WANTED
    assert texts(Translator.load(folder, "cpu", "torch")) == WANTED


def test_runtimes_are_picked_by_name(folder: Path) -> None:
    assert Translator.load(folder, "cpu", "torch").runtime.name == "torch"
    with pytest.raises(
        OptionError, match="runtime is 'onnx'; it must be one of auto, torch, int8, ctranslate2"
    ):
        Translator.load(folder, "cpu", "onnx")
    with pytest.raises(
        OptionError, match="runtime ctranslate2 runs on the CPU and device is 'cuda'"
    ):
        Translator.load(folder, "cuda", "ctranslate2")


@pytest.mark.parametrize("runtime", ["torch", "int8"])
def test_a_shortlist_of_everything_changes_nothing_and_one_of_little_is_kept_to(
    folder: Path, runtime: str
) -> None:
    with pytest.raises(ModelFolderError, match="holds no shortlist"):
        Translator.load(folder, "cpu", runtime, shortlist=True)
    size = load_description(folder)[0].model.vocab_size
    nothing = torch.full((size, 2), -1, dtype=torch.int32)
    save_shortlist(folder, {"frequent": torch.arange(size), "table": nothing})
    assert texts(Translator.load(folder, "cpu", runtime, shortlist=True)) == WANTED
    tokenizer = load_description(folder)[1]
    known = [token for row in tokenizer.encode(tiny.GERMAN[:5], "target") for token in row]
    save_shortlist(folder, {"frequent": torch.tensor(sorted(set(known))), "table": nothing})
    few = Translator.load(folder, "cpu", runtime, shortlist=True)
    found = few.translate(["one two three", "seven"])
    assert found[0].text == "eins zwei drei"
    assert "sieben" not in found[1].text
    assert few.translate(["one"], prefix="neun")[0].text.startswith(
        "neun"
    )  # what is forced is in any shortlist
    save_shortlist(folder, {"frequent": torch.tensor([size]), "table": nothing})
    with pytest.raises(ModelFolderError, match="shortlist is not of this model"):
        Translator.load(folder, "cpu", runtime, shortlist=True)


def test_attention_is_where_each_token_looked(folder: Path) -> None:
    translator = Translator.load(folder, "cpu", "torch")
    sources = translator.tokenizer.encode(LINES, "source")
    targets = translator.tokenizer.encode(WANTED, "target")
    for source, target, table in zip(
        sources, targets, translator.runtime.attention(sources, targets), strict=True
    ):
        assert table.shape == (len(target) + 1, len(source) + 1)
        np.testing.assert_allclose(table.sum(1), 1.0, atol=1e-5)
    (alone,) = translator.runtime.attention(sources[:1], targets[:1])
    np.testing.assert_allclose(alone, translator.runtime.attention(sources, targets)[0], atol=1e-5)


def test_the_coverage_penalty_by_hand() -> None:
    table = np.array([[0.5, 0.5, 0.0], [0.9, 0.0, 0.1]])
    assert coverage_penalty(table) == pytest.approx(
        np.log(0.5) + np.log(0.1)
    )  # the first is covered: 1.4 counts as 1


def test_coverage_ranks_anew(folder: Path) -> None:
    """With a penalty for what is left unread, an output that reads all comes before one that the
    model prefers."""
    runtime = Translator.load(folder, "cpu", "torch").runtime
    assert isinstance(runtime, TorchRuntime)
    tokens = load_description(folder)[1].encode(["one two three four"], "source")[0]
    (plain,) = runtime.search([Request(tokens)], SearchOptions(beam=8, nbest=8))
    (ranked,) = runtime.search([Request(tokens)], SearchOptions(beam=8, nbest=8, coverage=50.0))
    assert {one.tokens for one in plain} == {one.tokens for one in ranked}
    tables = runtime.attention([tokens] * 8, [one.tokens for one in plain])
    penalties = {
        one.tokens: coverage_penalty(table) for one, table in zip(plain, tables, strict=True)
    }
    expected = sorted(
        plain, key=lambda one: (one.finished, one.score + 50 * penalties[one.tokens]), reverse=True
    )
    assert [one.tokens for one in ranked] == [one.tokens for one in expected]
    assert ranked != plain


def test_terms_do_not_go_with_drawing(folder: Path) -> None:
    runtime = Translator.load(folder, "cpu", "torch").runtime
    with pytest.raises(OptionError, match="a glossary needs a search"):
        runtime.search([Request([300], terms=[[[301]]])], SearchOptions(sample=True))


def test_terms_that_cannot_be_said_are_given_up(folder: Path) -> None:
    """Rather no term than no translation: here the term is longer than any output."""
    translator = Translator.load(folder, "cpu", "torch")
    tokens = translator.tokenizer.encode(["one two"], "source")[0]
    impossible = [
        [
            translator.tokenizer.encode(["neun"], "target")[0]
            * translator.description.model.max_length
        ]
    ]
    (row,) = translator.runtime.search([Request(tokens, terms=impossible)], SearchOptions())
    assert translator.tokenizer.decode([row[0].tokens]) == ["eins zwei"]


def test_terms_may_repeat_themselves_and_one_another(folder: Path) -> None:
    """As the addresses of one site do; all else is said once, beside another sentence that has
    no terms."""
    translator = Translator.load(folder, "cpu", "torch")
    sources = translator.tokenizer.encode(["one two", "three three"], "source")
    neun, drei = translator.tokenizer.encode(["neun", "drei"], "target")
    batch = [Request(sources[0], terms=[[neun * 3], [[*neun, *neun, *drei]]]), Request(sources[1])]
    rows = translator.runtime.search(batch, SearchOptions(no_repeat_ngram=1))
    first, second = translator.tokenizer.decode([row[0].tokens for row in rows])
    assert {"neun neun neun", "neun neun drei"} <= {first[i : i + 14] for i in range(len(first))}
    assert second.split().count("drei") == 1


class Other:
    """A runtime that has one answer for all."""

    name = "ctranslate2"
    can = frozenset({"decode"})

    def __init__(self, said: list[int]) -> None:
        self.said = tuple(said)

    def search(self, batch: list[Request], options: SearchOptions) -> list[list[Hypothesis]]:
        return [[Hypothesis(self.said, -1.0, (-0.1,) * (len(self.said) + 1))] for _ in batch]


@pytest.mark.skipif(not int8.available(), reason="this CPU has no 8-bit kernels in torch")
@pytest.mark.parametrize("wins", [True, False])
def test_auto_is_the_faster_one_for_all_that_it_can_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch, wins: bool
) -> None:
    (folder / "ctranslate2").mkdir()
    (folder / "ctranslate2" / "model.bin").write_bytes(b"a conversion")
    seven = load_description(folder)[1].encode(["sieben"], "target")[0]
    monkeypatch.setattr(pick, "find_spec", lambda name: True)
    monkeypatch.setattr(pick, "_ctranslate2", lambda *arguments: Other(seven))
    monkeypatch.setattr(
        pick, "_seconds", lambda runtime, about: 1.0 if isinstance(runtime, Other) is wins else 2.0
    )
    translator = Translator.load(folder, "cpu")
    assert texts(translator) == (["sieben"] * len(LINES) if wins else WANTED)
    glossary = Glossary([Term("two", ("neun",))])
    assert translator.translate(["one two"], glossary=glossary)[0].text == "eins neun"
    assert look_inside(translator, "one two")["text"] == "eins zwei"


def test_what_a_runtime_can_is_told_by_model_and_device(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    translator = ModelConfig()
    reader = ModelConfig(decoder_layers=0)
    monkeypatch.setattr(int8, "available", lambda: True)
    assert abilities(translator, cpu) == {DECODE, GRAMMAR, HEADS, INT8, SHORTLIST, TERMS}
    assert abilities(translator, gpu) == {DECODE, GRAMMAR, GRAPHS, HEADS, SHORTLIST, TERMS}
    assert abilities(reader, cpu) == {HEADS, INT8}
    monkeypatch.setattr(int8, "available", lambda: False)
    assert INT8 not in abilities(translator, cpu)


def test_coverage_ranks_unfinished_outputs_last(folder: Path) -> None:
    """An output that was cut at its maximum length stands behind all that ended, however well it
    scores and however much it has read."""
    runtime = Translator.load(folder, "cpu", "torch").runtime
    assert isinstance(runtime, TorchRuntime)
    tokens = load_description(folder)[1].encode(["one two three"], "source")[0]
    cut = Hypothesis((300, 301), score=-0.1, log_probs=(-0.05, -0.05))
    ended = Hypothesis((300,), score=-90.0, log_probs=(-50.0, -40.0))
    options = SearchOptions(beam=2, nbest=2, coverage=0.1)
    (ranked,) = runtime._covered([Request(tokens)], [[cut, ended]], options)
    assert [one.finished for one in ranked] == [True, False]
    assert ranked[0].score < ranked[1].score
