"""Which of its weights a model takes from another with more, fewer or other layers, and that it is
the better for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch

from dragoman.errors import DragomanError
from dragoman.folder.description import load_description
from dragoman.folder.weights import load_model
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.training import run
from dragoman.training.start_from import (
    can_change_layers,
    fitted,
    inheritance,
    origins,
    with_layers,
)

TEACHER = ModelConfig(
    vocab_size=40,
    d_model=16,
    d_ff=32,
    n_heads=2,
    encoder_layers=6,
    decoder_layers=6,
    norm_first=True,
)
CPU = torch.device("cpu")


def parameters(config: ModelConfig, seed: int = 1) -> dict[str, torch.Tensor]:
    torch.manual_seed(seed)
    return {name: one.detach() for name, one in Transformer(config).named_parameters()}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (6, 6, [0, 1, 2, 3, 4, 5]),
        (6, 3, [0, 2, 5]),
        (6, 2, [0, 5]),
        (6, 1, [5]),
        (12, 4, [0, 4, 7, 11]),
        (2, 5, [0, 0, 0, 1, 1]),
        (1, 3, [0, 0, 0]),
        (0, 0, []),
    ],
)
def test_layers_lie_evenly_among_the_old_ones(before: int, after: int, expected: Any) -> None:
    assert origins(before, after) == expected


def test_each_layer_is_the_one_that_was_chosen() -> None:
    student = replace(TEACHER, encoder_layers=3, decoder_layers=1)
    of_teacher = parameters(TEACHER)
    drawn = parameters(student, seed=2)
    taken = fitted(of_teacher, TEACHER, student, drawn)
    assert taken.keys() == drawn.keys()
    for stack, chosen in (("encoder", [0, 2, 5]), ("decoder", [5])):
        for number, origin in enumerate(chosen):
            names = [name for name in taken if name.startswith(f"{stack}.layers.{number}.")]
            assert len(names) >= 10
            for name in names:
                old = name.replace(f".layers.{number}.", f".layers.{origin}.")
                assert torch.equal(taken[name], of_teacher[old]), name
    shared = "encoder.embeddings.tokens.weight"
    assert torch.equal(taken[shared], of_teacher[shared])
    assert not torch.equal(taken[shared], drawn[shared])
    found = inheritance(TEACHER, student)
    assert found.share == 1.0
    assert "encoder layers 1, 3, 6 of 6 and decoder layer 6 of 6" in found.sentence


def test_of_another_inner_width_the_feedforward_is_drawn() -> None:
    student = replace(TEACHER, d_ff=64, decoder_layers=1)
    of_teacher = parameters(TEACHER)
    drawn = parameters(student, seed=2)
    taken = fitted(of_teacher, TEACHER, student, drawn)
    inner = [name for name in drawn if "feedforward" in name and "weight" in name]
    matrices = [name for name in inner if drawn[name].dim() == 2]
    assert matrices
    assert all(torch.equal(taken[name], drawn[name]) for name in matrices)
    attention = [name for name in drawn if name.startswith("encoder.") and "attention" in name]
    assert attention
    assert all(torch.equal(taken[name], of_teacher[name]) for name in attention)
    found = inheritance(TEACHER, student)
    assert 0 < found.share < 1
    assert "its d_ff is 64 and not 32" in found.sentence


@pytest.mark.parametrize(("name", "value"), [("norm_first", False), ("n_heads", 4)])
def test_layers_that_compute_otherwise_are_drawn(name: str, value: Any) -> None:
    """Although all names and shapes are the same."""
    student = replace(TEACHER, **{name: value})
    of_teacher = parameters(TEACHER)
    drawn = parameters(student, seed=2)
    taken = fitted(of_teacher, TEACHER, student, drawn)
    for key in drawn:
        origin = of_teacher if ".embeddings." in key else drawn
        assert torch.equal(taken[key], origin[key]), key
    assert "starts from its teacher: the embeddings" in inheritance(TEACHER, student).sentence


def test_of_another_width_everything_is_drawn() -> None:
    student = replace(TEACHER, d_model=32)
    drawn = parameters(student, seed=2)
    taken = fitted(parameters(TEACHER), TEACHER, student, drawn)
    assert all(torch.equal(taken[name], drawn[name]) for name in drawn)
    found = inheritance(TEACHER, student)
    assert found.share == 0
    assert found.sentence == "starts from random weights, since its d_model is 32 and not 16"


def test_new_layers_pass_on_what_they_get() -> None:
    deep = replace(TEACHER, encoder_layers=8)
    grown = with_layers(parameters(TEACHER), TEACHER, deep)
    outer = "encoder.layers.{}.feedforward.outer.weight"
    assert origins(6, 8) == [0, 0, 1, 2, 3, 3, 4, 5]
    empty = [number for number in range(8) if not grown[outer.format(number)].any()]
    assert empty == [1, 5]


def test_how_many_layers_a_continued_model_may_have() -> None:
    assert can_change_layers(TEACHER, {"encoder_layers": 3, "decoder_layers": 9})
    assert not can_change_layers(TEACHER, {"decoder_layers": 0})
    post_norm = replace(TEACHER, norm_first=False)
    assert can_change_layers(post_norm, {"encoder_layers": 3})
    assert not can_change_layers(post_norm, {"encoder_layers": 7})


@pytest.mark.parametrize("norm_first", [True, False])
def test_fewer_layers_start_better_than_none(tmp_path: Path, norm_first: bool) -> None:
    """A step of 1e-12 changes nothing that could be seen: what is validated after it are the
    weights that the run started with."""
    text = tiny.write_corpus(tmp_path, "text", 400, seed=1, longest=6, turned=False)
    valid = tiny.write_corpus(tmp_path, "valid", 60, seed=2, longest=6, turned=False)
    data = {"train": text, "valid": valid}
    tables = tiny.tables(steps=60, learning_rate=3e-3, schedule="constant", warmup=5, average=1)
    tables["model"] |= {"norm_first": norm_first, "encoder_layers": 3, "decoder_layers": 2}
    run.start(tmp_path / "teacher", {**tables, "data": data}, lambda sentence: None)
    still = {"steps": 1, "schedule": "constant", "learning_rate": 1e-12, "warmup": 1}
    fewer = {"encoder_layers": 2, "decoder_layers": 1}
    given = {"data": data, "model": fewer, "training": tables["training"] | still}
    run.start(tmp_path / "taken", given, lambda sentence: None, tmp_path / "teacher")
    fresh = {**tables, **given, "model": tables["model"] | fewer}
    run.start(tmp_path / "fresh", fresh, lambda sentence: None)
    shape = load_description(tmp_path / "taken")[0].model
    assert (shape.encoder_layers, shape.decoder_layers) == (2, 1)
    own = load_model(tmp_path / "taken", shape, CPU)
    of_teacher = load_description(tmp_path / "teacher")[0].model
    teacher = load_model(tmp_path / "teacher", of_teacher, CPU)
    key = "feedforward.outer.weight"
    pairs = {"encoder.layers.1": "encoder.layers.2", "decoder.layers.0": "decoder.layers.1"}
    for new, old in pairs.items():
        copied = own.get_parameter(f"{new}.{key}")
        assert torch.allclose(copied, teacher.get_parameter(f"{old}.{key}"), atol=1e-6)
    taken = tiny.validations(tmp_path / "taken")[0][1]
    drawn = tiny.validations(tmp_path / "fresh")[0][1]
    assert taken < drawn - 0.2


def test_a_post_norm_model_does_not_grow(tmp_path: Path) -> None:
    text = tiny.write_corpus(tmp_path, "text", 60, seed=1)
    tables = tiny.tables(steps=1)
    tables["data"] = {"train": text, "held_out": 0}
    run.start(tmp_path / "old", tables, lambda sentence: None)
    given = {"data": tables["data"], "model": {"encoder_layers": 2}}
    with pytest.raises(DragomanError, match=r"model\.encoder_layers is 2, but"):
        run.start(tmp_path / "new", given, lambda sentence: None, tmp_path / "old")
