"""Draws handmade digits for recipes/vit-digits.toml: 28 x 28 pixels, turned, slanted, scaled,
blurred and noisy.

    python demo/handmade_digits.py FOLDER

writes FOLDER/train.npz (8,000 images) and FOLDER/valid.npz (1,000), always the same.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# Seven rows of five dots for each digit.
FONT = """
01110 00100 01110 11111 00010 11111 00110 11111 01110 01110
10001 01100 10001 00010 00110 10000 01000 00001 10001 10001
10011 00100 00001 00100 01010 11110 10000 00010 10001 10001
10101 00100 00010 00010 10010 00001 11110 00100 01110 01111
11001 00100 00100 00001 11111 00001 10001 01000 10001 00001
10001 00100 01000 10001 00010 10001 10001 01000 10001 00010
01110 01110 11111 01110 00010 01110 01110 01000 01110 01100
"""
SIZE = 28


def digits() -> NDArray[np.float64]:
    """The font as (10, 9, 7), a dark frame around each digit."""
    rows = [
        [[int(dot) for dot in cell] for cell in line.split()] for line in FONT.split("\n") if line
    ]
    return np.pad(np.array(rows, float).transpose(1, 0, 2), ((0, 0), (1, 1), (1, 1)))


def draw(font: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.uint8]:
    """One digit: each pixel asks, through a random turn, slant, size and shift, which part of
    the font it shows."""
    angle = random.uniform(-0.35, 0.35)
    slant = random.uniform(-0.3, 0.3)
    scale = random.uniform(0.32, 0.5, 2)  # dots a pixel
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ np.array(
        [[1, 0], [slant, 1]]
    )
    grid = (
        np.stack(np.meshgrid(np.arange(SIZE), np.arange(SIZE), indexing="ij"), -1)
        - SIZE / 2
        + random.uniform(-4, 4, 2)
    )
    places = grid @ turn * scale + (np.array(font.shape) - 1) / 2
    low = np.floor(places).astype(int)
    share = places - low
    limits = np.array(font.shape) - 1
    ink = np.zeros((SIZE, SIZE))
    for down, right in ((0, 0), (0, 1), (1, 0), (1, 1)):  # bilinear
        corner = np.clip(low + np.array((down, right)), 0, limits)
        weight = np.abs(1 - down - share[..., 0]) * np.abs(1 - right - share[..., 1])
        ink += weight * font[corner[..., 0], corner[..., 1]]
    paper = random.uniform(0, 90)
    pen = random.uniform(130, 255)
    noise = random.normal(0, random.uniform(5, 45), ink.shape)
    return np.clip(paper + ink * (pen - paper) + noise, 0, 255).astype(np.uint8)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    font = digits()
    for seed, (name, count) in enumerate((("train", 8000), ("valid", 1000))):
        random = np.random.default_rng(seed)
        labels = random.integers(0, 10, count)
        np.savez_compressed(
            folder / f"{name}.npz",
            images=np.stack([draw(font[n], random) for n in labels]),
            labels=labels,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
