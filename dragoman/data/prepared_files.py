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
        sentences = _check_offsets(folder / layout.offsets(side), tokens)
        counts.append(sentences)
    n_source, n_target = counts
    if n_source != n_target:
        of_source = layout.offsets("source")
        of_target = layout.offsets("target")
        raise _damaged(
            folder / of_target,
            f"it has {n_target:,} sentences, and {of_source} has {n_source:,}",
        )
    return n_source


def check_tokens(file: Path, dtype: str, size: int) -> int:
    """Refuse a file with a token that is not below `size`, and return how many tokens it has."""
    kind = np.dtype(dtype).newbyteorder("<")
    count = _count(file, kind.itemsize)
    with file.open("rb") as opened:
        for _ in range(0, count, _AT_ONCE):
            tokens = np.fromfile(opened, kind, _AT_ONCE)
            largest = int(tokens.max())
            smallest = int(tokens.min())
            if largest >= size or smallest < 0:
                raise _damaged(file, f"it has the token {largest:,}, and there are {size:,}")
    return count


def check_images(folder: Path, pixels: int, labels: int) -> None:
    """Refuse damaged files of `Images`, each of so many pixel values."""
    count = check_tokens(folder / layout.LABELS, _OFFSETS, labels)
    images = folder / layout.IMAGES
    size = _count(images, 1)
    wanted = count * pixels
    if size != wanted:
        raise _damaged(
            images,
            f"it has {size:,} bytes, and {count:,} images take {wanted:,}",
        )


def check_speech(folder: Path, dtype: str, tokens: int, longest: int) -> None:
    """Refuse damaged files of `Speech`: targets of tokens below `tokens`, and sounds of at most
    `longest` samples."""
    count = check_tokens(folder / layout.tokens("target"), dtype, tokens)
    targets = _check_offsets(folder / layout.offsets("target"), count)
    samples = _count(folder / layout.tokens("sound"), 2)
    sounds = folder / layout.offsets("sound")
    recordings = _check_offsets(sounds, samples)
    if recordings != targets:
        raise _damaged(sounds, f"it has {recordings:,} recordings, and there are {targets:,} texts")
    lengths = np.diff(np.fromfile(sounds, _OFFSETS))
    if lengths.max(initial=0) > longest:
        raise _damaged(sounds, f"a recording has {lengths.max():,} samples; at most {longest:,}")


def _check_offsets(file: Path, tokens: int) -> int:
    """Refuse offsets that do not rise from 0 to the number of tokens; return how many sentences
    they bound."""
    kind = np.dtype(_OFFSETS)
    count = _count(file, kind.itemsize)
    last = 0
    with file.open("rb") as opened:
        for first in range(0, count, _AT_ONCE):
            offsets = np.fromfile(opened, kind, _AT_ONCE)
            begins = offsets[0] > last if first else offsets[0] == 0
            rises = offsets[1:] > offsets[:-1]
            if not begins or not rises.all():
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
