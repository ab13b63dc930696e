"""What was made for a model and lies beside its weights: int8 weights, a shortlist, a calibration.
Knows how they are stored, not what they mean. Importing this loads no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.errors import ModelFolderError
from dragoman.folder.files import read_json, write_file
from dragoman.folder.layout import CALIBRATION, INT8, SHORTLIST
from dragoman.folder.weights import Shapes, read_tensors, write_tensors

if TYPE_CHECKING:
    from torch import Tensor


def save_int8(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write model.int8.safetensors; what its tensors mean is the runtime's business."""
    write_tensors(folder / INT8, tensors)


def load_int8(folder: Path, expected: Shapes) -> dict[str, Tensor] | None:
    """Return the int8 weights, their shapes checked, or None where the folder has none."""
    path = folder / INT8
    return read_tensors(path, expected) if path.exists() else None


def save_shortlist(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write shortlist.safetensors."""
    write_tensors(folder / SHORTLIST, tensors)


def load_shortlist(folder: Path) -> dict[str, Tensor] | None:
    """Return the shortlist, or None where the folder has none."""
    path = folder / SHORTLIST
    return read_tensors(path) if path.exists() else None


def save_calibration(folder: Path, values: Mapping[str, Any]) -> None:
    """Write calibration.json."""
    content = json.dumps(values, indent=2, allow_nan=False) + "\n"
    write_file(folder / CALIBRATION, content.encode())


def load_calibration(folder: Path) -> dict[str, Any] | None:
    """Return numbers, lists of numbers and strings by name, or None where the model was never
    calibrated."""
    path = folder / CALIBRATION
    if not path.exists():
        return None
    values = read_json(path)
    for name, value in values.items():
        numbers = value if isinstance(value, list) else [value]
        if not isinstance(value, str) and not all(map(_is_number, numbers)):
            raise ModelFolderError(
                f"'{name}' in {path} is not a number; run `dragoman calibrate` again"
            )
    return values


def _is_number(value: Any) -> bool:
    """Whether the value is finite and of a sensible size; a bool is not a number."""
    return type(value) in (int, float) and abs(value) < 2**63
