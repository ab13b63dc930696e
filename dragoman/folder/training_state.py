"""The checkpoints of a run, in state/ of its model folder: what continuing the run needs. Knows no
loop and no options.

A checkpoint is written beside the others and renamed, so that a kill at any moment leaves whole
ones alone. What a killed run left unfinished is removed when the run is resumed.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.errors import FullDiskError, ModelFolderError, TrainingError
from dragoman.folder import layout
from dragoman.folder.files import (
    aside,
    partial_of,
    read_json,
    remove_folder,
    space_for,
    write_file,
)
from dragoman.folder.weights import Shapes, read_tensors, save_tensors

if TYPE_CHECKING:
    from torch import Tensor

# What training writes while it holds the lock of the folder, and where.
_WRITTEN = {
    "": (
        layout.CONFIG,
        layout.WEIGHTS,
        layout.CTRANSLATE2,
        layout.TOKENIZER,
        layout.SOURCE_TOKENIZER,
        layout.TARGET_TOKENIZER,
        layout.GENERATION,
        layout.OPTIONS,
        layout.METRICS,
        layout.REPORT,
        layout.CURVE,
        layout.STATE,
    ),
    layout.STATE: (Path(layout.GIVEN).name, Path(layout.START).name),
    layout.DATA: (layout.MANIFEST, layout.REPORT),
}

_READ_BY_ALL = (
    layout.CONFIG,
    layout.TOKENIZER,
    layout.SOURCE_TOKENIZER,
    layout.TARGET_TOKENIZER,
    layout.FOREIGN_TOKENIZER,
    layout.GENERATION,
    layout.OPTIONS,
    layout.GIVEN,
    layout.START,
    f"{layout.DATA}/{layout.MANIFEST}",
    f"{layout.DATA}/{layout.TRAIN}",
    f"{layout.DATA}/{layout.VALID}",
)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint to be saved. A `temporary` one, which a signal caused, is replaced by the next
    regular one and never averaged, so that the final average is the same with it and without."""

    step: int
    weights: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    progress: dict[str, Any]
    temporary: bool = False


@dataclass(frozen=True)
class TrainingState:
    """A checkpoint from which training goes on; its tensors are read when they are asked for."""

    folder: Path
    progress: dict[str, Any]

    def weights(self, expected: Shapes | None = None) -> dict[str, Tensor]:
        """Return the weights at this checkpoint."""
        return read_tensors(self.folder / layout.WEIGHTS, expected)

    def optimizer(self, expected: Shapes | None = None) -> dict[str, Tensor]:
        """Return the tensors of the optimiser, named "moment/weight": each is as large as its
        weight, or one number. Where the shapes of the weights are known, others are refused."""
        path = self.folder / layout.OPTIMIZER
        tensors = read_tensors(path)
        for key, tensor in tensors.items():
            shape = None if expected is None else expected.get(key.partition("/")[2])
            if expected is not None and tensor.numel() != 1 and tuple(tensor.shape) != shape:
                raise ModelFolderError(
                    f"{path} is not of this run: '{key}' has shape {tuple(tensor.shape)}"
                )
        return tensors


def save_state(folder: Path, checkpoint: Checkpoint, keep: int) -> None:
    """Save a checkpoint. Of those before it, the last `keep` stay, without what only resuming
    needs."""
    name = layout.checkpoint(checkpoint.step, checkpoint.temporary)
    final = folder / layout.STATE / name
    with aside(final) as new:
        new.mkdir()
        save_tensors(new / layout.WEIGHTS, checkpoint.weights)
        save_tensors(new / layout.OPTIMIZER, checkpoint.optimizer)
        (new / layout.PROGRESS).write_bytes(json.dumps(checkpoint.progress).encode())
    tidy(folder, keep)


def tidy(folder: Path, keep: int) -> None:
    """Remove checkpoints that are no longer needed: all but the newest and the last `keep`. These
    lose what only resuming needs."""
    checkpoints = _checkpoints(folder)
    kept = _regular(folder)[-keep:]
    for old in checkpoints[:-1]:
        if old in kept:
            (old / layout.OPTIMIZER).unlink(missing_ok=True)
        else:
            remove_folder(old)


def save_progress(folder: Path, progress: dict[str, Any]) -> None:
    """Replace the counters of the newest checkpoint."""
    state = latest_state(folder)
    assert state is not None
    write_file(state.folder / layout.PROGRESS, json.dumps(progress).encode())


def latest_state(folder: Path) -> TrainingState | None:
    """Return the newest checkpoint, or None where there is none."""
    checkpoints = _checkpoints(folder)
    if not checkpoints:
        return None
    newest = checkpoints[-1]
    if not (newest / layout.OPTIMIZER).exists():
        raise ModelFolderError(
            f"{newest / layout.OPTIMIZER} is missing, without which a run cannot be resumed"
        )
    path = newest / layout.PROGRESS
    progress = read_json(path)
    if progress.get("step") != int(_step(newest)):
        raise ModelFolderError(f"{path} is damaged: its step is not that of its folder")
    return TrainingState(newest, progress)


def needed_by_all(folder: Path) -> list[Path]:
    """The files that every process of a run reads, not the main one alone, by their paths in the
    folder: what the model is, the prepared text, and what training begins or continues from."""
    state = latest_state(folder)
    wholes = [*_READ_BY_ALL]
    if state is not None:
        wholes.append(str(state.folder.relative_to(folder)))
    found = []
    for name in wholes:
        path = folder / name
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        found += [one.relative_to(folder) for one in inside if one.is_file()]
    return found


def average_weights(folder: Path, count: int) -> tuple[dict[str, Tensor], int]:
    """Return the mean of the last checkpoints' weights (§6.1), and the number of checkpoints; two
    are in memory at a time."""
    paths = _regular(folder)[-count:]
    mean = read_tensors(paths[0] / layout.WEIGHTS)
    for path in paths[1:]:
        for name, tensor in read_tensors(path / layout.WEIGHTS).items():
            mean[name] += tensor
    return {name: tensor / len(paths) for name, tensor in mean.items()}, len(paths)


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed run of this folder left unfinished. The caller holds the folder's lock.

    These are hidden folders `.NAME.XXXXXXXX.partial` in the model folder, in state/ and in
    state/data/, where NAME is a file or folder that training writes. Checkpoints that lack their
    weights are what an interrupted deletion left; they go as well, except the newest. Nothing else
    is touched.
    """
    for place, names in _WRITTEN.items():
        for path in _partials(folder / place):
            if partial_of(path) in names:
                shutil.rmtree(path, ignore_errors=True)
    for path in _partials(folder / layout.STATE):
        name = partial_of(path) or ""
        if layout.CHECKPOINT.fullmatch(name):
            shutil.rmtree(path, ignore_errors=True)
    for path in _checkpoints(folder)[:-1]:
        if not (path / layout.WEIGHTS).exists():
            remove_folder(path)


@contextlib.contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """Turn a full disk into a TrainingError that says how to go on, once there is a run."""
    try:
        with space_for(folder):
            yield
    except FullDiskError:
        if not (folder / layout.GIVEN).exists():
            raise
        raise TrainingError(
            f"no space is left for {folder}; what was saved before is intact: free some space, "
            f"then continue with --resume {folder}"
        ) from None


def _checkpoints(folder: Path) -> list[Path]:
    """All checkpoints in the order of their steps."""
    state = folder / layout.STATE
    if not state.is_dir():
        return []
    paths = [path for path in state.iterdir() if layout.CHECKPOINT.fullmatch(path.name)]
    return sorted(paths, key=_step)


def _step(path: Path) -> str:
    return path.name.partition("-")[2]


def _regular(folder: Path) -> list[Path]:
    """The checkpoints that may be averaged; a kill may have left one half removed."""
    steps = [path for path in _checkpoints(folder) if path.name.startswith("step")]
    return [path for path in steps if (path / layout.WEIGHTS).exists()]


def _partials(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if partial_of(path) is not None]
