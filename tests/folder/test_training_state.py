"""The checkpoints of a run: whole or not there, also on a full disk."""

from __future__ import annotations

import errno
import importlib
import os
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch

from dragoman.errors import FullDiskError
from dragoman.folder.training_state import (
    Checkpoint,
    average_weights,
    latest_state,
    remove_leftovers,
    save_state,
)
from dragoman.folder.weights import save_weights
from dragoman.tasks.translate import Translator


def save_step(folder: Path, step: int, keep: int = 2, temporary: bool = False) -> None:
    weights = {"a": torch.full((3,), float(step))}
    moments = {"exp_avg/a": torch.zeros(3)}
    save_state(folder, Checkpoint(step, weights, moments, {"step": step}, temporary), keep)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "state").iterdir())


def test_the_last_checkpoints_stay(tmp_path: Path) -> None:
    for step in (5, 10, 15):
        save_step(tmp_path, step)
    assert names(tmp_path) == ["step-00000010", "step-00000015"]
    older = tmp_path / "state" / "step-00000010"
    assert sorted(path.name for path in older.iterdir()) == ["model.safetensors", "progress.json"]
    state = latest_state(tmp_path)
    assert state is not None
    assert state.progress == {"step": 15}
    assert state.weights()["a"].tolist() == [15.0] * 3
    assert state.optimizer()["exp_avg/a"].tolist() == [0.0] * 3


def test_a_stop_leaves_no_trace(tmp_path: Path) -> None:
    """The one that a signal made is the newest until the next is made; it never takes the place
    of another."""
    for step in (5, 10):
        save_step(tmp_path, step)
    save_step(tmp_path, 12, temporary=True)
    assert names(tmp_path) == ["step-00000005", "step-00000010", "stop-00000012"]
    state = latest_state(tmp_path)
    assert state is not None
    assert state.progress == {"step": 12}
    average, count = average_weights(tmp_path, 2)
    assert (average["a"].tolist(), count) == ([7.5] * 3, 2)
    save_step(tmp_path, 15)
    assert names(tmp_path) == ["step-00000010", "step-00000015"]


def test_one_checkpoint_kept(tmp_path: Path) -> None:
    for step in (5, 10):
        save_step(tmp_path, step, keep=1)
    assert names(tmp_path) == ["step-00000010"]


def test_half_a_checkpoint_is_none(tmp_path: Path) -> None:
    save_step(tmp_path, 5)
    half = tmp_path / "state" / ".step-00000010.abcd_123.partial"
    (half / "step-00000010").mkdir(parents=True)
    (half / "step-00000010" / "model.safetensors").write_bytes(b"half")
    state = latest_state(tmp_path)
    assert state is not None
    assert state.progress == {"step": 5}
    remove_leftovers(tmp_path)
    save_step(tmp_path, 10)
    assert names(tmp_path) == ["step-00000005", "step-00000010"]


def test_only_what_training_left_unfinished_is_removed(tmp_path: Path) -> None:
    save_step(tmp_path, 5)
    ours = [
        ".model.safetensors.abcdefgh.partial",
        ".state.abc_0123.partial",
        "state/.step-00000010.01234567.partial",
        "state/.stop-00000012.01234567.partial",
        "state/data/.manifest.json.01234567.partial",
    ]
    others = [
        "model.safetensors.tmp",
        ".thesis.abcdefgh.partial",
        ".model.safetensors.partial",
        ".model.safetensors.abcdefghi.partial",
        ".model.int8.safetensors.abcdefgh.partial",  # a translator's, perhaps at work right now
        ".step-00000010.01234567.partial",
        "state/writing",
        "state/.step-10.01234567.partial",
        "state/.model.safetensors.abcdefgh.partial",
        "state/step-00000005.old",
        "state/data/.thesis.abcdefgh.partial",
    ]
    for name in ours + others:
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text("content", encoding="utf-8")
    remove_leftovers(tmp_path)
    assert [name for name in ours if (tmp_path / name).exists()] == []
    assert [name for name in others if not (tmp_path / name / "file").exists()] == []
    assert latest_state(tmp_path) is not None


def test_the_average_of_more_than_there_are(tmp_path: Path) -> None:
    for step in (1, 2, 6):
        save_step(tmp_path, step, keep=3)
    average, count = average_weights(tmp_path, 5)
    assert (average["a"].tolist(), count) == ([3.0] * 3, 3)


@pytest.mark.parametrize("deed", ["weights.save_file", "os.fsync", "os.replace", "os.rename"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: str, number: int
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    save_step(tmp_path, 5)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with monkeypatch.context() as patch:
        owner = "dragoman.folder." + ("files." if deed.startswith("os") else "")
        patch.setattr(owner + deed, fail)
        if deed != "os.replace":
            with pytest.raises(FullDiskError, match=f"no space is left to write {tmp_path}"):
                save_step(tmp_path, 10)
        if deed != "os.rename":
            with pytest.raises(FullDiskError, match=f"no space is left to write {tmp_path}"):
                save_weights(tmp_path, {"a": torch.ones(2)})
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    save_step(tmp_path, 10)
    assert names(tmp_path) == ["step-00000005", "step-00000010"]


def test_another_failure_is_not_called_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("dragoman.folder.weights.save_file", fail)
    with pytest.raises(PermissionError):
        save_step(tmp_path, 5)


def limit_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def no_room_to_append() -> None:
    files = importlib.import_module("dragoman.folder.files")

    def fail(path: Path, mode: str, **named: Any) -> Any:
        if mode == "a":
            raise OSError(errno.ENOSPC, "No space left on device")
        return open(path, mode, **named)

    vars(files)["open"] = fail


def test_a_run_on_a_full_disk_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """The optimiser's state is larger than the largest file allowed; then even a line of metrics
    finds no room."""
    files, model = tiny.write_corpus(tmp_path, "a", 100), tmp_path / "model"
    (tmp_path / "recipe.toml").write_text(
        tiny.RECIPE.replace("steps = 24", "steps = 6"), encoding="utf-8"
    )
    assert (
        tiny.run(
            ["train", *files, "--out", str(model), "--config", str(tmp_path / "recipe.toml")],
            tmp_path,
        ).wait()
        == 0
    )
    state = {path: path.read_bytes() for path in (model / "state").rglob("step-*/*")}
    weights = (model / "model.safetensors").read_bytes()
    on = ["train", "--resume", str(model), "--steps", "12"]
    limit = len(weights) + 5000
    assert limit < len((model / "state" / "step-00000006" / "optimizer.safetensors").read_bytes())
    for before in ((limit_files, limit), (no_room_to_append,)):
        command = tiny.run(on, tmp_path, *before)
        assert command.wait() == 2, command.errors
        sentence = (
            f"no space is left for {model}; what was saved before is intact: free some space, "
            f"then continue with --resume {model}"
        )
        assert command.errors.splitlines()[-1] == f"error: {sentence}"
        assert "Traceback" not in command.errors
        assert {path: path.read_bytes() for path in (model / "state").rglob("step-*/*")} == state
        assert not list(model.rglob(".*"))
        assert Translator.load(model, "cpu").translate(["one"])
    assert tiny.run(on, tmp_path).wait() == 0
    assert [step for step, _, _ in tiny.losses(model)] == list(range(1, 13))


def test_a_full_disk_while_preparing(tmp_path: Path) -> None:
    files, model = tiny.write_corpus(tmp_path, "a", 3000, longest=30), tmp_path / "model"
    (tmp_path / "recipe.toml").write_text(
        tiny.RECIPE.replace("steps = 24", "steps = 1"), encoding="utf-8"
    )
    given = ["train", *files, "--out", str(model), "--config", str(tmp_path / "recipe.toml")]
    command = tiny.run(given, tmp_path, limit_files, 100_000)
    assert command.wait() == 2
    assert command.errors.splitlines()[-1].startswith(f"error: no space is left for {model};")
    assert "Traceback" not in command.errors
    assert tiny.run(["train", "--resume", str(model)], tmp_path).wait() == 0


def test_what_an_interrupted_deletion_left_goes(tmp_path: Path) -> None:
    """An empty folder of an old checkpoint, or one without its weights, does not stay for ever."""
    save_step(tmp_path, 2)
    shutil.rmtree(tmp_path / "state" / "step-00000002")
    for step in (6, 8):
        save_step(tmp_path, step)
    (tmp_path / "state" / "step-00000002").mkdir()
    (tmp_path / "state" / "step-00000004").mkdir()
    (tmp_path / "state" / "step-00000004" / "progress.json").write_text("{}", encoding="utf-8")
    remove_leftovers(tmp_path)
    assert names(tmp_path) == ["step-00000006", "step-00000008"]
