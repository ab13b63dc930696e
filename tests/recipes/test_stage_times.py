"""recipes/stage_times.py: how minutes are shared out, and pieces that make a whole again."""

from __future__ import annotations

import importlib.util
import sys
import tarfile
import time
from io import BytesIO
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import load_file, save_file

from dragoman.folder import layout

RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.fixture(scope="module")
def times() -> ModuleType:
    spec = importlib.util.spec_from_file_location("stage_times", RECIPES / "stage_times.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for it
    spec.loader.exec_module(module)
    return module


def test_shares_of_the_time(times: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one stage took too much is taken from all that follow."""
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    clock = times.Clock.of({"a": 1.0, "b": 2.0, "c": 1.0}, 8.0)
    assert clock.seconds("a", []) == pytest.approx(120)
    now += 240  # twice as long as it may
    assert clock.seconds("b", ["a"]) == pytest.approx(160)
    now += 160
    assert clock.seconds("c", ["a", "b"]) == pytest.approx(80)
    now += 500
    assert clock.seconds("c", ["a", "b"]) == 0


def test_minutes_of_what_is_done_go_to_the_rest(
    times: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    clock = times.Clock.of({"a": 3.0, "b": 1.0, "c": 1.0, "d": 2.0}, 0)
    assert clock.seconds("b", ["a", "c"]) == pytest.approx(7 * 60 / 3)


def test_pieces_make_the_model_again(times: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "first"
    folder.mkdir()
    weights = {"a": torch.randn(300, 20), "b": torch.ones(3)}
    save_file(weights, folder / layout.WEIGHTS)
    (folder / layout.CONFIG).write_text("{}")
    out = tmp_path / "kept"
    times.keep_weights(folder, out, 0.005)
    pieces = sorted(out.iterdir())
    assert [piece.name for piece in pieces[:2]] == ["first.tar.00", "first.tar.01"]
    assert all(piece.stat().st_size <= 5000 for piece in pieces)
    whole = BytesIO(b"".join(piece.read_bytes() for piece in pieces))
    with tarfile.open(fileobj=whole) as tar:
        tar.extractall(tmp_path / "again", filter="data")
    again = load_file(tmp_path / "again" / "first" / layout.WEIGHTS)
    assert again["a"].dtype == torch.bfloat16
    assert torch.equal(again["a"], weights["a"].bfloat16())
    assert (tmp_path / "again" / "first" / layout.CONFIG).read_text() == "{}"


def test_fewer_pieces_leave_none_of_before(times: ModuleType, tmp_path: Path) -> None:
    times.write_pieces(b"x" * 5000, tmp_path, "n", 0.001)
    times.write_pieces(b"y" * 1500, tmp_path, "n", 0.001)
    assert sorted(piece.name for piece in tmp_path.iterdir()) == ["n.00", "n.01"]
    assert b"".join(one.read_bytes() for one in sorted(tmp_path.iterdir())) == b"y" * 1500
