"""Whether the prepared files of a run are whole: no sentence ends before it begins, and no token is
outside its vocabulary. Knows bytes and numbers; knows no text, no batches and no model.

Whoever trains maps these files into memory and trusts them. A file that was cut, or that holds
something else, would otherwise show as a crash in the middle of a run, or as a run that hangs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dragoman.errors import ModelFolderError
from dragoman.folder import layout

_AT_ONCE = 1 << 20  # numbers
_OFFSETS = "<i8"
_SIDES = ("source", "target")


def check_pairs(folder: Path, dtype: str, sizes: Sequence[int]) -> int:
    """Refuse damaged files of `Pairs`, and return how many pairs they hold.

    `sizes` are the numbers of tokens that the source and the target may have.
    """
    counts = []
    for side, size in zip(_SIDES, sizes, strict=True):
        tokens = check_tokens(folder / layout.tokens(side), dtype, size)
        counts.append(_check_offsets(folder / layout.offsets(side), tokens))
    if counts[0] != counts[1]:
        raise _damaged(
            folder / layout.offsets("target"),
            f"it has {counts[1]:,} sentences, and {layout.offsets('source')} has {counts[0]:,}",
        )
    return counts[0]


def check_tokens(file: Path, dtype: str, size: int) -> int:
    """Refuse a file with a token that is not below `size`, and return how many tokens it has."""
    count = _count(file, np.dtype(dtype).newbyteorder("<").itemsize)
    with file.open("rb") as opened:
        for _ in range(0, count, _AT_ONCE):
            tokens = np.fromfile(opened, np.dtype(dtype).newbyteorder("<"), _AT_ONCE)
            largest = int(tokens.max())
            if largest >= size or int(tokens.min()) < 0:
                raise _damaged(file, f"it has the token {largest:,}, and there are {size:,}")
    return count


def check_images(folder: Path, pixels: int, labels: int) -> None:
    """Refuse damaged files of `Images`, each of so many pixel values."""
    count = check_tokens(folder / layout.LABELS, _OFFSETS, labels)
    size = _count(folder / layout.IMAGES, 1)
    if size != count * pixels:
        raise _damaged(
            folder / layout.IMAGES,
            f"it has {size:,} bytes, and {count:,} images take {count * pixels:,}",
        )


def _check_offsets(file: Path, tokens: int) -> int:
    """Refuse offsets that do not rise from 0 to the number of tokens; return how many sentences
    they bound."""
    count = _count(file, np.dtype(_OFFSETS).itemsize)
    last = 0
    with file.open("rb") as opened:
        for first in range(0, count, _AT_ONCE):
            offsets = np.fromfile(opened, _OFFSETS, _AT_ONCE)
            rises = bool((offsets[1:] > offsets[:-1]).all())
            begins = offsets[0] > last if first else offsets[0] == 0
            if not (rises and begins):
                raise _damaged(file, "its offsets do not rise from 0")
            last = int(offsets[-1])
    if not count or last != tokens:
        raise _damaged(file, f"it ends at token {last:,}, and there are {tokens:,}")
    return count - 1


def _count(file: Path, width: int) -> int:
    """How many numbers of so many bytes a file has."""
    if not file.is_file():
        raise ModelFolderError(f"{file} is missing")
    size = file.stat().st_size
    if size % width:
        raise _damaged(file, f"it has {size:,} bytes, not a multiple of {width}")
    return size // width


def _damaged(file: Path, why: str) -> ModelFolderError:
    return ModelFolderError(f"{file} is damaged: {why}")
