"""Parsing from a treebank to a model that has learnt it, and what is said of files and options that
cannot be used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch
import treebank
from safetensors.torch import load_file
from torch import Tensor

from dragoman.data.treebank import read_all_trees
from dragoman.errors import DragomanError, InputError, OptionError
from dragoman.folder import layout
from dragoman.folder.description import load_description
from dragoman.tasks.bracket_scores import score_trees
from dragoman.tasks.parse import OPTIONS, Parser
from dragoman.text.trees import fault
from dragoman.training import run

SHAPE = {"d_model": 32, "d_ff": 64, "n_heads": 2, "dropout": 0.0, "norm_first": True}
FEW = replace(OPTIONS, beam=4, max_extra=60)


def given(folder: Path, *files: str, **training: Any) -> dict[str, Any]:
    tables = tiny.tables(schedule="cosine", learning_rate=0.01, warmup=20, **training)
    tables["model"] |= SHAPE
    tables["tokenizer"]["vocab_size"] = 330
    tables["data"] = {"train": list(files)}
    return {**tables, "task": "parse"}


@pytest.fixture(scope="module")
def parser_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("trees")
    file = treebank.write_treebank(place / "train.mrg", 500)
    folder = place / "model"
    wanted = given(place, file, steps=200, save_every=100, batch_tokens=1500, valid_sentences=10)
    wanted["training"]["select"] = "f1"
    assert run.start(folder, wanted, print) == "steps"
    return folder


def test_a_parser_learns_a_treebank(parser_folder: Path) -> None:
    lines = tiny.metrics(parser_folder)
    scored = [line for line in lines if "valid_loss" in line]
    assert all(0.0 <= line["f1"] <= 100.0 for line in scored)
    assert scored[-1]["samples"][0]["reference"].startswith("(S (NP ")
    parser = Parser.load(parser_folder, "cpu", "torch")
    gold = treebank.trees(30, seed=77)
    parses = parser.parse_words([tree.words for tree in gold], FEW)
    trees = [parse.tree for parse in parses]
    assert not any(fault(tree.symbols, len(tree.words)) for tree in trees if tree)
    scores = score_trees(trees, gold)
    assert scores.f1 > 60.0
    assert scores.tags > 75.0


def test_what_the_folder_says(parser_folder: Path) -> None:
    description, tokenizer = load_description(parser_folder)
    assert description.task == "parse"
    assert not tokenizer.joint
    report = (parser_folder / "report.md").read_text(encoding="utf-8")
    assert "476 trees to train on, 24 to validate with, 4 labels and 5 tags." in report
    assert "## Sample trees" in report
    assert "F1 " in report
    assert "beam 4" in report
    curve = (parser_folder / "learning-curve.svg").read_text(encoding="utf-8")
    assert "F1 (right)" in curve


def test_trees_of_a_model_are_more_text(parser_folder: Path, tmp_path: Path) -> None:
    """Semi-supervised, as the paper's second result: gold and silver with a weight for each, from
    the model that made the silver trees."""
    parser = Parser.load(parser_folder, "cpu", "torch")
    sentences = [" ".join(tree.words) for tree in treebank.trees(12, seed=5)]
    silver = tmp_path / "silver.mrg"
    found = parser.stream(sentences, FEW, tokenized=True)
    lines = [one.tree.bracketed() if one.tree else "" for one in found]
    silver.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert len(read_all_trees([str(silver)])) == 12
    gold = treebank.write_treebank(tmp_path / "gold.mrg", 40, seed=9)
    valid = treebank.write_treebank(tmp_path / "valid.mrg", 6, seed=10)
    wanted = given(tmp_path, gold, str(silver), steps=2, save_every=2, valid_sentences=2)
    wanted["data"] |= {"weights": [3.0, 1.0], "valid": [valid]}
    folder = tmp_path / "model"
    assert run.start(folder, wanted, print, continued=parser_folder) == "steps"
    manifest = json.loads((folder / "state" / "data" / "manifest.json").read_text())
    assert [(row["weight"], row["pairs"]) for row in manifest["train"]] == [(3.0, 40), (1.0, 12)]
    assert manifest["valid"] == 6
    old = load_description(parser_folder)[1].serialised()
    assert load_description(folder)[1].serialised() == old


def test_a_run_goes_on(tmp_path: Path) -> None:
    file = treebank.write_treebank(tmp_path / "train.mrg", 60)
    short = given(tmp_path, file, steps=6, save_every=3)
    assert run.start(tmp_path / "short", short, print) == "steps"
    assert run.resume(tmp_path / "short", {"training": {"steps": 12}}, print) == "steps"
    assert [step for step, _, _ in tiny.losses(tmp_path / "short")][-1] == 12


def test_held_out_sentences_are_not_trained_on(tmp_path: Path) -> None:
    """A sentence that stands in the treebank several times is on one side only."""
    from dragoman.data.data_options import DataOptions
    from dragoman.data.tree_pairs import read_treebanks

    file = tmp_path / "many.mrg"
    rows = [f"(S (NN w{number % 40}))" for number in range(400)]
    file.write_text("\n".join(rows), encoding="utf-8")
    text = read_treebanks(DataOptions(train=(str(file),)), tmp_path / "data", seed=1)
    train = {sentence for sentence, _ in text.lines("train.tsv")}
    valid = {sentence for sentence, _ in text.lines("valid.tsv")}
    assert text.valid == 20
    assert text.counts == [380]
    assert len(valid) == 2
    assert not train & valid


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"data": {"weights": [1.0, 2.0]}}, "2 numbers for 1 files"),
        ({"data": {"train": []}}, "no training files"),
        ({"data": {"max_length": 3}}, "every tree is longer"),
        ({"data": {"augment": True}}, "not for the task parse"),
        ({"tokenizer": {"sampling": 0.1}}, "not for the task parse"),
        ({"tokenizer": {"joint": True}}, "a vocabulary of their own"),
        ({"training": {"select": "bleu"}}, "training.select of the task parse"),
        ({"model": {"max_length": 600}}, r"at least data.max_length \+ 300"),
    ],
)
def test_options_that_do_not_go_with_trees(
    tmp_path: Path, change: dict[str, Any], complaint: str
) -> None:
    wanted = given(tmp_path, treebank.write_treebank(tmp_path / "train.mrg", 30))
    for section, table in change.items():
        wanted[section] = {**wanted.get(section, {}), **table}
    with pytest.raises(DragomanError, match=complaint):
        run.start(tmp_path / "model", wanted, print)
    assert not (tmp_path / "model").exists()


def test_a_file_of_too_many_labels(tmp_path: Path) -> None:
    file = tmp_path / "labels.mrg"
    rows = [f"(L{number} (T{number} word))" for number in range(2000)]
    file.write_text("\n".join(rows), encoding="utf-8")
    with pytest.raises(InputError, match="more than 5,000 labels and tags"):
        run.start(tmp_path / "model", given(tmp_path, str(file)), print)


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator after one step."""
    place = tmp_path_factory.mktemp("translator")
    wanted = {**tiny.tables(steps=1), "data": {"train": [words_file(place)]}}
    wanted["model"] |= {"norm_first": True}
    assert run.start(place / "model", wanted, print) == "steps"
    return place / "model"


def words_file(place: Path) -> str:
    words = place / "words.tsv"
    rows = [f"one word of {row}\tein Wort von {row}\n" for row in range(60)]
    words.write_text("".join(rows), encoding="utf-8")
    return str(words)


def started_from(translator: Path, folder: Path, **model: Any) -> Mapping[str, Tensor]:
    """The weights of a parser that starts from a translator and hardly learns."""
    file = treebank.write_treebank(folder / "train.mrg", 30)
    training = tiny.tables(steps=1, schedule="cosine", learning_rate=1e-12, warmup=1)["training"]
    wanted = {"task": "parse", "data": {"train": [file]}, "model": model, "training": training}
    assert run.start(folder / "model", wanted, print, continued=translator) == "steps"
    return load_file(folder / "model" / layout.WEIGHTS)


def test_a_parser_starts_from_a_translator_of_its_language(
    translator: Path, tmp_path: Path
) -> None:
    """It takes over what reads: source pieces, their rows and the encoder, and the layers of the
    decoder; the symbols of trees are new."""
    old = load_file(translator / layout.WEIGHTS)
    new = started_from(translator, tmp_path)
    taken = [name for name in old if ".layers." in name]
    assert {name.split(".")[0] for name in taken} == {"encoder", "decoder"}
    for name in (*taken, "encoder.embeddings.tokens.weight"):
        assert torch.allclose(new[name], old[name], atol=1e-6), name
    _, of_translator = load_description(translator)
    description, tokenizer = load_description(tmp_path / "model")
    assert tokenizer.serialised()[0] == of_translator.serialised()[0]
    assert description.task == "parse"
    assert description.model.vocab_size == tokenizer.target_size < of_translator.target_size
    symbols = tokenizer.encode_normalised(["(NP NN )NP"], "target")[0]
    assert tokenizer.pieces(symbols, "target") == ["▁(NP", "▁NN", "▁)NP"]


def test_it_may_have_more_layers_than_the_translator(translator: Path, tmp_path: Path) -> None:
    layers = load_description(translator)[0].model.decoder_layers
    new = started_from(translator, tmp_path, decoder_layers=layers + 1)
    old = load_file(translator / layout.WEIGHTS)
    inner = "decoder.layers.{}.feedforward.inner.weight"
    outer = "decoder.layers.{}.feedforward.outer.weight"
    added = [
        number for number in range(layers + 1) if not new[outer.format(number)].abs().max() > 1e-6
    ]
    assert len(added) == 1
    last = old[inner.format(layers - 1)]
    assert torch.allclose(new[inner.format(layers)], last, atol=1e-6)


def test_a_parser_starts_from_no_other_task(parser_folder: Path, tmp_path: Path) -> None:
    """Nor does a translator start from a parser."""
    wanted = {**tiny.tables(steps=1), "data": {"train": [words_file(tmp_path)]}}
    with pytest.raises(OptionError, match="cannot be continued with the task translate"):
        run.start(tmp_path / "model", wanted, print, continued=parser_folder)
