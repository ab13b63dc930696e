"""Images: one file to pixels, and labelled images (a folder for each label, or an .npz file) to one
file of pixels and to batches. Knows files and pixels; knows no model.

In training an image is shifted by up to an eighth of its side, and mirrored if asked for; this
follows from (seed, epoch).
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.data.batches import Batch, Draw, Rows
from dragoman.errors import InputError, MissingDependencyError
from dragoman.folder import layout

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")
MOST_PIXELS = 10**8  # a small file can claim to be any size
ENDINGS = (".png", ".jpg", ".jpeg")
LARGEST = 2**33  # bytes of an .npz file's arrays
DEFAULT_SIZE = 64  # pixels a side
Pixels = NDArray[np.uint8]
Image = Path | Pixels  # pixels are (H, H) or (H, H, 3)
Labelled = tuple[str, Image]

_UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_image(path: Path, size: int) -> torch.Tensor:
    """Return an image file as (3, size, size) from -1 to 1: red, green and blue.

    It is brought to the size by bilinear interpolation.
    """
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise MissingDependencyError.for_extra("reading images", "images") from None
    try:
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise InputError(
                    f"{path} has {image.width:,} x {image.height:,} pixels; "
                    f"at most {MOST_PIXELS:,} are read"
                )
            resized = image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)
            pixels = np.array(resized)
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise InputError(
            f"{path} cannot be read as an image ({error}); "
            "give a whole file, such as a .png or .jpg"
        ) from None
    by_colour = torch.from_numpy(pixels).permute(2, 0, 1)
    return by_colour / 127.5 - 1.0


class Images:
    """The images of one prepared split, `tokens` patches each; shifted if there is a draw."""

    def __init__(
        self,
        folder: Path,
        size: int,
        tokens: int,
        flip: bool,
        draw: Draw | None,
    ) -> None:
        self._labels = np.fromfile(folder / layout.LABELS, "<i8")
        pixels = np.zeros(0, np.uint8)
        if len(self._labels):  # an empty file cannot be mapped
            pixels = np.memmap(folder / layout.IMAGES, np.uint8, "r")
        self._pixels = pixels.reshape(-1, 3, size, size)
        self._tokens = tokens
        self._flip = flip
        self._draw = draw

    def __len__(self) -> int:
        return len(self._labels)

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return the patches of each image, and the one label to be predicted from it."""
        return np.full(len(rows), self._tokens), np.ones_like(rows)

    def batch(self, rows: Rows) -> Batch:
        """Return pixels (B, 3, H, H) between -1 and 1, and their labels."""
        labels = torch.from_numpy(self._labels[rows])
        pixels = self._pixels[rows] if self._draw is None else self._moved(rows, self._draw)
        return Batch(
            source=torch.from_numpy(pixels) / 127.5 - 1,
            target=labels[:0],
            lengths=None,
            positions=torch.arange(len(rows)),
            labels=labels,
        )

    def _moved(self, rows: Rows, draw: Draw) -> Pixels:
        size = self._pixels.shape[-1]
        draws = np.stack([_three_numbers(draw, row) for row in rows.tolist()])  # (B, 3)
        farthest = size // 8 + 0.5
        directions = 2 * draws[:, :2] - 1  # from -1 to 1
        distances = directions * farthest
        shifts = distances.round().astype(np.int64)  # (B, 2)
        every = np.arange(size)
        shifted = every[:, None, None] + shifts  # (H, B, 2)
        inside = shifted.clip(0, size - 1)
        down, right = inside.transpose(2, 1, 0)  # (B, H) each
        mirrored = (draws[:, 2:] < 0.5) & self._flip
        right = np.where(mirrored, right[:, ::-1], right)
        # Four indices that together have the shape (B, 3, H, H).
        image = rows[:, None, None, None]
        colour = np.arange(3)[:, None, None]
        line = down[:, None, :, None]
        column = right[:, None, None]
        return self._pixels[image, colour, line, column]


def find_images(folders: Sequence[str], size: int) -> tuple[list[Labelled], int]:
    """Return label and image of all labelled images, and the size of their sides.

    They are the files FOLDER/label/*.png or .jpg, to be brought to the size, by default 64; or
    those of one .npz file, which has "images", (N, H, H) or (N, H, H, 3), whose size is H, and
    "labels" (N).
    """
    if len(folders) == 1 and folders[0].endswith(".npz"):
        return _read_arrays(folders[0], size)
    files: list[Path] = []
    for folder in folders:
        files += sorted(Path(folder).glob("*/*"))
    labelled: list[Labelled] = [
        (file.parent.name, file) for file in files if file.suffix.lower() in ENDINGS
    ]
    if not labelled:
        names = " and ".join(folders)
        raise InputError(
            f"{names} has no images; name one .npz file, or a folder with a folder "
            "of .png or .jpg for each label"
        )
    return labelled, size or DEFAULT_SIZE


def write_images(
    folder: Path,
    images: Sequence[Image],
    labels: list[int],
    size: int,
) -> None:
    """Write images.bin and labels.bin."""
    with (folder / layout.IMAGES).open("wb") as out:
        for image in images:
            out.write(_pixel_bytes(image, size))
    np.array(labels, "<i8").tofile(folder / layout.LABELS)


def _three_numbers(draw: Draw, row: int) -> NDArray[np.float64]:
    """Return how far an image goes down and right, and whether it is mirrored."""
    return np.random.default_rng([*draw, 4, row]).random(3)


def _pixel_bytes(image: Image, size: int) -> bytes:
    """Return an image as (3, size, size) bytes."""
    if isinstance(image, Path):
        pixels = (read_image(image, size) + 1) * 127.5
        rounded = pixels.round().byte()
        return rounded.numpy().tobytes()
    channels_last = image.reshape(size, size, -1)
    coloured = np.broadcast_to(channels_last, (size, size, 3))
    return coloured.transpose(2, 0, 1).tobytes()


def _read_arrays(file: str, size: int) -> tuple[list[Labelled], int]:
    images, labels = _load_arrays(file)
    side = size or next(iter(images.shape[1:]), 0)
    expected = (*labels.shape, side, side, 3)[: max(3, images.ndim)]
    if images.shape != expected or images.dtype != np.uint8 or labels.ndim != 1:
        raise InputError(
            f"{file} has images {images.shape} of {images.dtype} and labels {labels.shape}; "
            "they must be (N, H, H) or (N, H, H, 3) of uint8, H being model.input_size "
            "where it is named, and (N)"
        )
    names = map(str, labels.tolist())
    labelled = list(zip(names, images, strict=True))
    return labelled, side


def _load_arrays(file: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return "images" and "labels" of an .npz file."""
    try:
        with zipfile.ZipFile(file) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > LARGEST:
                raise InputError(
                    f"{file} holds more than {LARGEST / 2**30:.0f} GiB; "
                    "give a folder of images instead"
                )
        with np.load(file, allow_pickle=False) as arrays:
            return arrays["images"], arrays["labels"]
    except _UNREADABLE as error:
        raise InputError(
            f"{file} cannot be read ({error}); write it by numpy.savez(file, images=…, labels=…)"
        ) from None
