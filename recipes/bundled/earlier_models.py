"""The models that a run of the recipe begins with: those of before, as the plan names them."""

from __future__ import annotations

from pathlib import Path

import torch
from bundled.workshop import DIRECTIONS, Workshop, is_model

from dragoman.folder import files
from dragoman.folder.description import load_description, save_description
from dragoman.folder.weights import load_model, save_weights


def take_over(shop: Workshop) -> None:
    """Write the models of before into the folder of models, with weights that can be trained. What
    is not there is left out: then teachers begin with random weights."""
    named = shop.plan.get("before")
    if not named:
        return
    for direction in DIRECTIONS:
        old = Path(named) / direction.name
        new = shop.made.before(direction)
        if old.exists() and not is_model(new):
            _unpack(old, new)


def _unpack(old: Path, new: Path) -> None:
    """The same model, whose weights may have been 8-bit integers, in full precision."""
    description, tokenizer = load_description(old)
    model = load_model(old, description.model, torch.device("cpu"))
    with files.aside(new) as unfinished:
        save_description(unfinished, description, tokenizer)
        save_weights(unfinished, dict(model.named_parameters()))
