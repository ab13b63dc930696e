"""Copies of what the stages made, in pieces that can be fetched while others go on. Knows results
and their names; does nothing unless a folder was named for it."""

from __future__ import annotations

from pathlib import Path

from bundled.workshop import Workshop, is_model
from stage_times import keep_int8, keep_weights


def keep_model(shop: Workshop, folder: Path) -> None:
    """Keep a model with weights in bfloat16."""
    if shop.keeping and is_model(folder):
        keep_weights(folder, shop.keeping.folder, shop.keeping.megabytes)


def keep_integers(shop: Workshop, folder: Path) -> None:
    """Keep a model with weights in 8-bit integers."""
    if shop.keeping:
        keep_int8(folder, shop.keeping.folder, shop.keeping.megabytes)
