"""What was made for a model, beside its weights in its folder: weights in int8, a shortlist, a
calibration. Knows how they are stored, not what they mean. Importing this loads no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.errors import ModelFolderError
from dragoman.folder.files import read_json, write_file
from dragoman.folder.layout import CALIBRATION, INT8, SHORTLIST
from dragoman.folder.weights import read_tensors, write_tensors

if TYPE_CHECKING:
    from torch import Tensor


def save_int8(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """model.int8.safetensors; what its tensors mean is the runtime's business."""
    write_tensors(folder / INT8, tensors)


def load_int8(folder: Path, expected: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor] | None:
    """None where there are none."""
    return read_tensors(folder / INT8, expected) if (folder / INT8).exists() else None


def save_shortlist(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """shortlist.safetensors."""
    write_tensors(folder / SHORTLIST, tensors)


def load_shortlist(folder: Path) -> dict[str, Tensor] | None:
    """None where there is none."""
    return read_tensors(folder / SHORTLIST) if (folder / SHORTLIST).exists() else None


def save_calibration(folder: Path, values: Mapping[str, Any]) -> None:
    """calibration.json."""
    write_file(
        folder / CALIBRATION, (json.dumps(values, indent=2, allow_nan=False) + "\n").encode()
    )


def load_calibration(folder: Path) -> dict[str, Any] | None:
    """Numbers, lists of numbers and strings by name; None where the model was never calibrated."""
    values = read_json(folder / CALIBRATION) if (folder / CALIBRATION).exists() else None
    for name, value in (values or {}).items():
        for item in value if isinstance(value, list) else [value]:
            if not (type(item) in (int, float) and abs(item) < 2**63) and not isinstance(
                value, str
            ):
                raise ModelFolderError(
                    f"'{name}' in {folder / CALIBRATION} is no number; run `dragoman calibrate` again"
                )
    return values
