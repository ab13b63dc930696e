"""Copies of what the stages made, in pieces that can be fetched while others go on. Knows results
and their names; does nothing unless a folder was named for it."""

from __future__ import annotations

from pathlib import Path

import packed_text
from bundled.workshop import DIRECTIONS, Direction, Keeping, Workshop
from stage_times import keep_int8, keep_weights, tar_of, write_pieces

from dragoman.folder import layout


def keep_model(shop: Workshop, folder: Path) -> None:
    """Keep a model with weights in bfloat16."""
    if shop.keeping and (folder / layout.WEIGHTS).exists():
        keep_weights(folder, shop.keeping.folder, shop.keeping.megabytes)


def keep_integers(shop: Workshop, folder: Path) -> None:
    """Keep a model with weights in 8-bit integers."""
    if shop.keeping:
        keep_int8(folder, shop.keeping.folder, shop.keeping.megabytes)


def keep_text(shop: Workshop, use: str) -> None:
    """Keep text that a model wrote as packed text, which another run takes as its own."""
    if shop.keeping:
        for direction in DIRECTIONS:
            if shop.made.text(use, direction).exists():
                _keep_text_of(shop, shop.keeping, use, direction)


def _keep_text_of(shop: Workshop, keeping: Keeping, use: str, direction: Direction) -> None:
    packed = shop.made.folder / "kept"
    packed.mkdir(exist_ok=True)
    text = shop.made.text(use, direction)
    jobs = []
    for number, portion in enumerate(packed_text.portions(text)):
        stem = f"{use}_{direction.name}.{use}-{number:02}"
        outs = {one: packed / f"{stem}.{one}.xz" for one in direction.languages}
        jobs.append(packed_text.Packing(portion, outs))
    for _ in shop.pool.imap(packed_text.pack, jobs):
        pass
    files = sorted(packed.glob(f"{use}_{direction.name}.*.xz"))
    name = f"{use}.{direction.name}.tar"
    write_pieces(tar_of(files), keeping.folder, name, keeping.megabytes)
