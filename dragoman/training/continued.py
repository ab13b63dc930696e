"""A run that starts from a trained model: what it takes over, and what it keeps of it. Knows
folders and options, no loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.config import build, load_toml, merge
from dragoman.data.corpus import corpora, languages
from dragoman.data.data_options import DataOptions
from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder import layout
from dragoman.folder.description import Description, load_description, save_description
from dragoman.folder.weights import load_model, read_tensors, save_weights, shapes
from dragoman.model.transformer import Transformer
from dragoman.text.tokenizer import Tokenizer, TokenizerOptions
from dragoman.training.presets import named
from dragoman.training.training_options import Options

FREE = (
    "dropout",
    "max_length",
    "sampling",
    "vocab_size",
)  # what may change although the weights stay


def taken_over(old: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the user named, on top of what a run has from the model folder `old`; refuses what
    does not go together."""
    options, (description, tokenizer) = build(Options, given), load_description(old)
    if not any((old / name).exists() for name in (layout.WEIGHTS, layout.INT8)):
        raise ModelFolderError(
            f"{old} has no {layout.WEIGHTS} to continue from; train it first, or copy the folder again"
        )
    task = options.task
    if description.task not in (task, "mlm" if task == "class" else task):
        raise OptionError(
            f"the model in {old} is of the task {description.task}; it cannot be continued with the task {task}"
        )
    shape = {
        name: value
        for name, value in asdict(description.model).items()
        if not name.endswith("vocab_size")
    }
    if task == "class":  # what filled in is not needed any more
        shape |= {"output_transform": False, "output_bias": False, "classes": 0}
    saved = load_toml(old / layout.OPTIONS) if (old / layout.OPTIONS).exists() else {}
    size, pieces = options.tokenizer.vocab_size, saved.get("tokenizer", {})
    if size not in (0, pieces.get("vocab_size"), tokenizer.target_size) and not (
        description.model.plain and tokenizer.joint
    ):
        raise OptionError(
            f"tokenizer.vocab_size is {size}, but the model in {old} has to keep its vocabulary; leave it away"
        )
    if options.tokenizer.sampling and not tokenizer.by_words:
        raise OptionError(
            "tokenizer.sampling cuts text by dragoman's own tokenisers, not by one from elsewhere; leave it at 0"
        )
    if description.model.plain and size in (0, pieces.get("vocab_size")):
        given = merge(
            given, {"tokenizer": {"vocab_size": tokenizer.target_size}}
        )  # what there is, not what was once asked for
    taken: dict[str, Any] = {"model": shape, "tokenizer": pieces}
    preset = str(given.get("preset", "auto"))
    asked = given if preset == "auto" else merge({"model": named(preset)["model"]}, given)
    for section, table in taken.items():
        for name, value in asked.get(section, {}).items():
            if name not in FREE and value != table.get(name, value):
                has = f"{section}.{name} is {value}, but the model in {old} has {table[name]}"
                raise OptionError(f"{has}; leave it away, or train without --continue")
    if preset == "auto":
        taken["training"] = {
            "learning_rate": 3e-4
        }  # auto's own is for weights that know nothing yet
    return merge(
        taken,
        given,
        {"data": _languages(options.data, old, description)} if task == "translate" else {},
    )


def keep_start(start: Path, old: Path) -> None:
    """Copy the model to start from into a run's folder, which alone is then enough to resume the
    run anywhere."""
    description, tokenizer = load_description(old)
    model = load_model(old, description.model, torch.device("cpu"))
    save_description(start, description, tokenizer)
    save_weights(start, dict(model.named_parameters()))


def start_of(folder: Path) -> Path:
    """Where a run keeps the model that it started from; not there if it started from nothing."""
    return folder / layout.START


def known(folder: Path, options: TokenizerOptions) -> tuple[Description, Tokenizer] | None:
    """What a run has already: its own tokeniser, or that of the model it starts from unless
    another vocabulary is wanted."""
    for path in (folder, start_of(folder)):
        if (path / layout.CONFIG).exists():
            about, tokenizer = load_description(path)
            if (
                path == folder
                or not about.model.plain
                or options.vocab_size in (0, tokenizer.target_size)
            ):
                return about, tokenizer
    return None


def start_weights(folder: Path, model: Transformer, tokenizer: Tokenizer) -> dict[str, Tensor]:
    """What the run starts from. Where the vocabulary is a new one, pieces that the old one had
    keep their rows, and the others have those that were drawn for the model (Kocmi and Bojar
    2018 continue so from one pair of languages to another)."""
    description, old = load_description(start_of(folder))
    with torch.device("meta"):
        expected = shapes(Transformer(description.model))
    weights = read_tensors(start_of(folder) / layout.WEIGHTS, expected)
    if description.model.plain and old.serialised() != tokenizer.serialised():
        name = "encoder.embeddings.tokens.weight"
        known = {
            piece: token for token, piece in enumerate(old.pieces(range(old.target_size), "target"))
        }
        places = [
            known.get(piece, -1)
            for piece in tokenizer.pieces(range(tokenizer.target_size), "target")
        ]
        rows = torch.tensor(places)
        drawn = model.get_parameter(name).detach().cpu()
        weights[name] = torch.where(rows[:, None] >= 0, weights[name][rows.clamp(min=0)], drawn)
    return weights


def _languages(data: DataOptions, old: Path, description: Description) -> dict[str, str]:
    """As the user said, or as the model has them where the names of the files do not say
    something else."""
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
