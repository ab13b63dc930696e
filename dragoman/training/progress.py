"""The counters of a run, as a checkpoint keeps them. Knows no weights and no files."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dragoman.errors import TrainingError


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


def read_progress(values: dict[str, Any]) -> Progress:
    """The progress that a checkpoint holds."""
    try:
        return Progress(**{**values, "window": tuple(values["window"])})
    except (TypeError, KeyError):
        raise TrainingError(
            "the checkpoint's progress.json is damaged or of another version; start the run again"
        ) from None
