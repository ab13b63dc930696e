"""What is kept in the model folder beside the weights: int8 weights, a shortlist, a calibration,
a conversion."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.errors import ModelFolderError
from dragoman.folder import extras, weights
from dragoman.model.model_config import ModelConfig

TENSORS = {"a": torch.arange(6, dtype=torch.int8).view(2, 3), "a.scale": torch.tensor([0.5, 2.0])}
SHAPES = {"a": (2, 3), "a.scale": (2,)}


def test_int8_weights_and_a_shortlist_are_read_back(tmp_path: Path) -> None:
    assert extras.load_int8(tmp_path, SHAPES) is None
    assert extras.load_shortlist(tmp_path) is None
    extras.save_int8(tmp_path, TENSORS)
    extras.save_shortlist(tmp_path, {"table": torch.tensor([[1, -1]])})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "model.int8.safetensors",
        "shortlist.safetensors",
    ]
    read = extras.load_int8(tmp_path, SHAPES)
    assert read is not None
    assert all(
        torch.equal(read[name], tensor) and read[name].dtype == tensor.dtype
        for name, tensor in TENSORS.items()
    )
    assert {
        name: table.tolist() for name, table in (extras.load_shortlist(tmp_path) or {}).items()
    } == {"table": [[1, -1]]}
    with pytest.raises(
        ModelFolderError,
        match=r"weight 'a' in .* has shape \(2, 3\); config.json asks for \(3, 3\)",
    ):
        extras.load_int8(tmp_path, {**SHAPES, "a": (3, 3)})
    (tmp_path / "shortlist.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(ModelFolderError, match="is damaged"):
        extras.load_shortlist(tmp_path)


def test_int8_weights_alone_are_held_against_the_config(tmp_path: Path) -> None:
    extras.save_int8(tmp_path, TENSORS)
    with pytest.raises(ModelFolderError, match=r"model.int8.safetensors has no weight 'decoder"):
        weights.load_model(tmp_path, ModelConfig(vocab_size=300), torch.device("cpu"))


def test_new_weights_do_away_with_what_was_made_from_the_old(tmp_path: Path) -> None:
    extras.save_int8(tmp_path, TENSORS)
    extras.save_shortlist(tmp_path, {"table": torch.tensor([[1, -1]])})
    extras.save_calibration(tmp_path, {"error": 0.1})
    (tmp_path / "ctranslate2").mkdir()
    (tmp_path / "ctranslate2" / "model.bin").write_bytes(b"old")
    weights.save_weights(tmp_path, {"a": torch.zeros(2)})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "model.safetensors",
        "shortlist.safetensors",
    ]


def test_a_calibration_is_read_back(tmp_path: Path) -> None:
    assert extras.load_calibration(tmp_path) is None
    extras.save_calibration(tmp_path, {"knots": (-1.5, 2), "signature": "chrF2", "count": 3})
    assert extras.load_calibration(tmp_path) == {
        "knots": [-1.5, 2],
        "signature": "chrF2",
        "count": 3,
    }


@pytest.mark.parametrize(
    "value", [None, True, {"a": 1}, [[1]], ["1"], [1, float("nan")], float("inf"), 10**400]
)
def test_a_calibration_holds_numbers_and_text(tmp_path: Path, value: Any) -> None:
    (tmp_path / "calibration.json").write_text(json.dumps({"knots": value}), encoding="utf-8")
    with pytest.raises(
        ModelFolderError, match=r"'knots' in .* is not a number; run `dragoman calibrate` again"
    ):
        extras.load_calibration(tmp_path)


def test_a_calibration_has_a_sensible_size(tmp_path: Path) -> None:
    (tmp_path / "calibration.json").write_text(json.dumps({"knots": [0] * 2**20}), encoding="utf-8")
    with pytest.raises(ModelFolderError, match="larger than any such file"):
        extras.load_calibration(tmp_path)


def test_the_folder_is_known_without_torch() -> None:
    modules = "dragoman.folder.description, dragoman.folder.extras, dragoman.folder.training_state"
    program = f"import sys, {modules}; print('torch' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
        == "False\n"
    )
