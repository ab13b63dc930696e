"""Labelled images, from a folder for each label or from an .npz file, to pixels in one file, and
these to batches. Knows files and pixels; knows no model.

In training an image is shifted by up to an eighth of its side, or mirrored as well; this follows
from (seed, epoch).
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.data.batches import Batch, Rows
from dragoman.data.pixels import read_image
from dragoman.errors import InputError
from dragoman.folder import layout

ENDINGS = (".png", ".jpg", ".jpeg")
LARGEST = 2**33  # bytes of an .npz file's arrays
Image = Path | NDArray[np.uint8]  # or (H, H) or (H, H, 3)


class Images:
    """The images of one prepared split; moved about where there is a draw."""

    def __init__(
        self, folder: Path, size: int, tokens: int, flip: bool, draw: tuple[int, int] | None
    ) -> None:
        self._labels = np.fromfile(folder / layout.LABELS, "<i8")
        pixels = (
            np.memmap(folder / layout.IMAGES, np.uint8, "r")
            if len(self._labels)
            else np.zeros(0, np.uint8)
        )
        self._pixels = pixels.reshape(-1, 3, size, size)
        self._tokens, self._flip, self._draw = tokens, flip, draw

    def __len__(self) -> int:
        return len(self._labels)

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        return np.full(len(rows), self._tokens), np.ones_like(rows)

    def batch(self, rows: Rows) -> Batch:
        """Pixels (B, 3, H, H) between -1 and 1."""
        labels = torch.from_numpy(self._labels[rows])
        pixels = torch.from_numpy(
            self._pixels[rows] if self._draw is None else self._moved(rows, self._draw)
        )
        return Batch(pixels / 127.5 - 1, labels[:0], None, torch.arange(len(rows)), labels)

    def _moved(self, rows: Rows, draw: tuple[int, int]) -> NDArray[np.uint8]:
        size = self._pixels.shape[-1]
        draws = np.stack(
            [np.random.default_rng([*draw, 4, row]).random(3) for row in rows.tolist()]
        )
        shift = ((2 * draws[:, :2] - 1) * (size // 8 + 0.5)).round().astype(np.int64)
        down, right = np.clip(np.arange(size)[:, None, None] + shift, 0, size - 1).transpose(
            2, 1, 0
        )  # (B, H) each
        right = np.where((draws[:, 2:] < 0.5) & self._flip, right[:, ::-1], right)
        colour = np.arange(3)[:, None, None]
        return self._pixels[
            rows[:, None, None, None], colour, down[:, None, :, None], right[:, None, None]
        ]


def find_images(places: Sequence[str], size: int) -> tuple[list[tuple[str, Image]], int]:
    """Label and image of each FOLDER/label/*.png or .jpg, to be brought to the size, by default
    64; or of one .npz file, which has "images", (N, H, H) or (N, H, H, 3), whose size is H, and
    "labels" (N). And that size."""
    if len(places) == 1 and places[0].endswith(".npz"):
        return _read_arrays(places[0], size)
    found = [
        file
        for place in places
        for file in sorted(Path(place).glob("*/*"))
        if file.suffix.lower() in ENDINGS
    ]
    if not found:
        where = " and ".join(places)
        raise InputError(
            f"{where} has no images; name one .npz file, or a folder with a folder of .png or .jpg for each label"
        )
    return [(file.parent.name, file) for file in found], size or 64


def write_images(folder: Path, images: Sequence[Image], labels: list[int], size: int) -> None:
    """images.bin and labels.bin."""
    with (folder / layout.IMAGES).open("wb") as out:
        for image in images:
            if isinstance(image, Path):
                out.write(((read_image(image, size) + 1) * 127.5).round().byte().numpy().tobytes())
            else:
                out.write(
                    np.broadcast_to(image.reshape(size, size, -1), (size, size, 3))
                    .transpose(2, 0, 1)
                    .tobytes()
                )
    np.array(labels, "<i8").tofile(folder / layout.LABELS)


def _read_arrays(file: str, size: int) -> tuple[list[tuple[str, Image]], int]:
    try:
        with zipfile.ZipFile(file) as archive:
            if sum(member.file_size for member in archive.infolist()) > LARGEST:
                raise InputError(
                    f"{file} holds more than {LARGEST / 2**30:.0f} GiB; give a folder of images instead"
                )
        with np.load(file, allow_pickle=False) as arrays:
            images, labels = arrays["images"], arrays["labels"]
    except (
        OSError,
        ValueError,
        KeyError,
        EOFError,
        MemoryError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise InputError(
            f"{file} cannot be read ({error}); write it by numpy.savez(file, images=…, labels=…)"
        ) from None
    side = size or next(iter(images.shape[1:]), 0)
    wanted = (*labels.shape, side, side, 3)[: max(3, images.ndim)]
    if images.shape != wanted or images.dtype != np.uint8 or labels.ndim != 1:
        raise InputError(
            f"{file} has images {images.shape} of {images.dtype} and labels {labels.shape}; they must be (N, H, H) or "
            "(N, H, H, 3) of uint8, H being model.input_size where it is named, and (N)"
        )
    return [(str(label), image) for label, image in zip(labels.tolist(), images, strict=True)], side
