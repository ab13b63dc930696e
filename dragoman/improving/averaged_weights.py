"""Several models as one: the average of their weights, for models that started from the same one
(Wortsman et al. 2022). Knows model folders; no text.

A model that was tuned on little text forgets some of what it knew; a share of the model that it
started from brings that back.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder import files, layout
from dragoman.folder.description import Description, load_description, save_description
from dragoman.folder.weights import load_model, save_weights

Part = tuple[Path, float]  # a model folder and its share
_CLOSE = 1e-6


def average(out: Path, parts: Sequence[Part], languages: tuple[str, str] | None = None) -> None:
    """Make the folder `out` from parts whose shares add up to 1. Its description and tokeniser are
    those of the first part, with other languages if they are named."""
    total = sum(share for _, share in parts)
    if abs(total - 1) > _CLOSE:
        raise OptionError(f"the shares add up to {total:g}; they must add up to 1")
    first = parts[0][0]
    description, tokenizer = load_description(first)
    weights = _summed(parts)
    if languages:
        source, target = languages
        description = replace(description, source_language=source, target_language=target)
    with files.aside(out, replace=False) as new:
        new.mkdir()
        save_description(new, description, tokenizer)
        save_weights(new, weights)
        if (first / layout.OPTIONS).exists():
            shutil.copyfile(first / layout.OPTIONS, new / layout.OPTIONS)
        shares = ", ".join(f"{share:g} of {folder}" for folder, share in parts)
        files.write_file(new / layout.REPORT, f"# {out.name}\n\nAverage: {shares}.\n".encode())


def can_average(one: Path, other: Path) -> bool:
    """Whether two models have the same shape and vocabulary."""
    description, tokenizer = load_description(one)
    of_other, its_tokenizer = load_description(other)
    same_shape = _shape(description) == _shape(of_other)
    return same_shape and tokenizer.serialised() == its_tokenizer.serialised()


def _summed(parts: Sequence[Part]) -> dict[str, Tensor]:
    first = parts[0][0]
    total: dict[str, Tensor] = {}
    for folder, share in parts:
        if not can_average(first, folder):
            raise ModelFolderError(
                f"{folder} has another shape or vocabulary than {first}; "
                "average models that began as one"
            )
        model = load_model(folder, load_description(folder)[0].model, torch.device("cpu"))
        for name, weight in model.named_parameters():
            part = share * weight.detach().float()
            total[name] = total[name] + part if name in total else part
    return total


def _shape(description: Description) -> object:
    """What the weights follow from; dropout leaves them as they are."""
    return replace(description.model, dropout=0.0)
