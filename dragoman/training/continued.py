"""A run that starts from a trained model: what it takes over, and what it keeps of it. Knows folders and options, no loop."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from dragoman import checkpoint
from dragoman.config import build, load_toml, merge
from dragoman.data.corpus import corpora, languages
from dragoman.data.options import DataOptions
from dragoman.errors import ModelFolderError, OptionError
from dragoman.training.options import Options
from dragoman.training.presets import named

FREE = ("dropout", "max_length", "sampling")  # what may change although weights and tokeniser stay


def taken_over(old: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the user named, on top of what a run has from the model folder `old`; refuses what does not go together."""
    data, (description, _) = build(Options, given).data, checkpoint.load_description(old)
    if not (old / checkpoint.WEIGHTS).exists():
        raise ModelFolderError(f"{old} has no {checkpoint.WEIGHTS} to continue from; int8 weights are for translating alone")
    shape = {name: value for name, value in asdict(description.model).items() if not name.endswith("vocab_size")}
    saved = load_toml(old / "training.toml") if (old / "training.toml").exists() else {}
    taken: dict[str, Any] = {"model": shape, "tokenizer": saved.get("tokenizer", {})}
    preset = str(given.get("preset", "auto"))
    asked = given if preset == "auto" else merge({"model": named(preset)["model"]}, given)
    for section, table in taken.items():
        for name, value in asked.get(section, {}).items():
            if name not in FREE and value != table.get(name, value):
                has = f"{section}.{name} is {value}, but the model in {old} has {table[name]}"
                raise OptionError(f"{has}; leave it away, or train without --continue")
    if preset == "auto":
        taken["training"] = {"learning_rate": 3e-4}  # auto's own is for weights that know nothing yet
    return merge(taken, given, {"data": _languages(data, old, description)})


def keep_start(folder: Path, old: Path | None) -> None:
    """Copies the model to start from into a run's folder, which alone is then enough to go on anywhere."""
    start = start_of(folder)
    shutil.rmtree(start, ignore_errors=True)  # of a run that was killed before it was one
    if old is not None:
        description, tokenizer = checkpoint.load_description(old)
        model = checkpoint.load_model(old, description.model, torch.device("cpu"))
        checkpoint.save_description(start, description, tokenizer)
        checkpoint.save_weights(start, dict(model.named_parameters()))


def start_of(folder: Path) -> Path:
    """Where a run keeps the model that it started from; not there if it started from nothing."""
    return folder / "state" / "start"


def _languages(data: DataOptions, old: Path, description: checkpoint.Description) -> dict[str, str]:
    """As the user said, or as the model has them where the names of the files do not say something else."""
    asked = {"source_language": data.source_language, "target_language": data.target_language}
    told = languages(corpora(data.train) + corpora(data.valid), *asked.values())
    for side, new in zip(asked, told, strict=True):
        known = getattr(description, side)
        if new and known and new != known and not asked[side]:
            raise OptionError(
                f"the files are named as {new}, but {side} of the model in {old} is {known}; "
                f"add --set {side}={new} if it is to learn another"
            )
        asked[side] = new or known
    return asked
