"""The counters of a run, as a checkpoint keeps them, and whether those of a file can be true. Knows
no weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from dragoman.errors import ModelFolderError
from dragoman.folder import layout
from dragoman.folder.training_state import TrainingState

_MOST_STEPS = 10**12


@dataclass(frozen=True)
class Progress:
    """How far a run has come; with the weights and moments, all that it needs to go on."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # batches of this epoch that are done
    seconds: float = 0.0
    best: float = -math.inf  # the best value of all validations
    best_step: int = 0
    best_of: int = 1  # checkpoints averaged in the best weights
    validated: int = 0  # the step of the last validation
    stale: int = 0  # validations since the best one
    # Whether batches are filled without regard to padding; a run keeps to it, even where it goes
    # on in padded rows.
    packed_plan: bool = False
    # Smoothed loss, plain loss and tokens since the last line of metrics.
    window: tuple[float, float, float] = (0.0, 0.0, 0.0)


def read_progress(state: TrainingState) -> Progress:
    """The progress that a checkpoint holds; refuses what no run can have come to."""
    values = dict(state.progress)
    known = {field.name for field in fields(Progress)}
    problem = ""
    for name in sorted(values.keys() - known):
        problem = f"it has '{name[:40]}', which this version does not know"
    if isinstance(values.get("window"), list):
        values["window"] = tuple(values["window"])
    progress = Progress(**values) if not problem else Progress()
    problem = problem or _problem(progress)
    if problem:
        path = state.folder / layout.PROGRESS
        raise ModelFolderError(f"{path} is damaged or of another version: {problem}")
    return progress


def _problem(progress: Progress) -> str:
    """What cannot be true of some counters; empty if nothing."""
    if not _is_count(progress.step, _MOST_STEPS):
        return f"'step' is {progress.step!r}"
    # An epoch has a step or more, and so has whatever else is counted.
    for name in ("epoch", "batch", "best_step", "validated", "stale", "best_of"):
        value = getattr(progress, name)
        if not _is_count(value, max(1, progress.step)):
            return f"'{name}' is {value!r} at step {progress.step:,}"
    if not _is_amount(progress.seconds):
        return f"'seconds' is {progress.seconds!r}"
    if not isinstance(progress.best, int | float) or math.isnan(progress.best):
        return f"'best' is {progress.best!r}"
    if not isinstance(progress.packed_plan, bool):
        return f"'packed_plan' is {progress.packed_plan!r}"
    window = progress.window
    if not isinstance(window, tuple) or len(window) != 3 or not all(map(_is_amount, window)):
        return f"'window' is {window!r}"
    return ""


def _is_count(value: object, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


def _is_amount(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < math.inf  # type: ignore[operator]
