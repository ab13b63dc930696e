"""Image files to pixels. Knows files and numbers; no model and no labels."""

from __future__ import annotations

from pathlib import Path

import numpy
import torch

from dragoman.errors import InputError, MissingDependencyError

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")
MOST_PIXELS = 10**8  # a small file can claim to be any size


def read_image(path: Path, size: int) -> torch.Tensor:
    """(3, size, size) from -1 to 1: red, green and blue, brought to the size by bilinear
    interpolation."""
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise MissingDependencyError(
            'reading images needs a package, pillow; run: pip install "dragoman[images]"'
        ) from None
    try:
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise InputError(
                    f"{path} has {image.width:,} x {image.height:,} pixels; at most {MOST_PIXELS:,} are read"
                )
            pixels = numpy.array(
                image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)
            )
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise InputError(
            f"{path} cannot be read as an image ({error}); give a whole file, such as a .png or .jpg"
        ) from None
    return torch.from_numpy(pixels).permute(2, 0, 1) / 127.5 - 1.0
