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
from dragoman.folder import files, layout
from dragoman.folder.description import Description, load_description, save_description
from dragoman.folder.weights import (
    load_model,
    read_tensors,
    read_weights,
    save_weights,
    shapes,
)
from dragoman.model.transformer import Transformer
from dragoman.tasks.whisper_rules import read_steering
from dragoman.text.prompts import Prompts
from dragoman.text.tokenizer import Tokenizer, TokenizerOptions
from dragoman.training.presets import LABEL_HEAD, named
from dragoman.training.start_from import LAYERS, can_change_layers, fitted
from dragoman.training.training_data import RunSetup
from dragoman.training.training_options import Options

# What may change although the weights stay.
FREE = ("dropout", "max_length", "sampling", "vocab_size")
# The tasks of models that another task can start from.
_FROM = {
    "class": ("mlm", "embed"),
    "label": ("mlm", "embed"),
    "embed": ("mlm",),
    "text": ("translate",),
    "parse": ("translate",),
}
# Of which another stands on the encoder than on the one that is continued.
_HEADS: dict[str, dict[str, Any]] = {
    "class": {"classes": 0},
    "label": {"classes": 0, **LABEL_HEAD},
    "embed": {},
}
LEARNING_RATE = 3e-4  # where `auto` chooses; its usual rate is for weights that know nothing yet
# Each size of Whisper was trained with a rate of its own, and 1/40 of it is right for continuing: a
# number that falls with the square of the width.
_SPEECH_RATE = 7.4
_EMBEDDING = "encoder.embeddings.tokens.weight"
_OF_PAIRS = ("translate", "text", "parse")
_WITH_OTHER_LAYERS = (*_OF_PAIRS, "lm")  # may have other numbers of layers than before


def taken_over(old: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the user named, on top of what a run has from the model folder `old`; refuses what
    does not go together."""
    options = build(Options, given)
    description, tokenizer = load_description(old)
    if not any((old / name).exists() for name in (layout.WEIGHTS, layout.INT8)):
        raise ModelFolderError(
            f"{old} has no {layout.WEIGHTS} to continue from; train it first, "
            "or copy the folder again"
        )
    _check_task(old, description, options.task)
    if options.task == "speech":
        read_steering(old / layout.GENERATION, description.model.vocab_size)
    saved = load_toml(old / layout.OPTIONS) if (old / layout.OPTIONS).exists() else {}
    pieces = saved.get("tokenizer", {})
    model = _model(description, options.task)
    _check_vocabulary(old, options.tokenizer, description, tokenizer, pieces)
    same_size = options.tokenizer.vocab_size in (0, pieces.get("vocab_size"))
    if not description.model.departures and same_size:
        # The size that there is, not the one that was once asked for.
        given = merge(given, {"tokenizer": {"vocab_size": tokenizer.target_size}})
    if options.task == "parse":
        pieces = {**pieces, "joint": False}  # the symbols of trees are a side of their own
    taken: dict[str, Any] = {"model": model, "tokenizer": pieces}
    _check_same(old, given, taken, _free_layers(description, options.task, given))
    if given.get("preset", "auto") == "auto":
        rate = LEARNING_RATE
        if options.task == "speech":
            rate = min(rate, _SPEECH_RATE / description.model.d_model**2)
        taken["training"] = {"learning_rate": rate}
        if options.task in _OF_PAIRS:  # the others have AdamW anyway
            taken["training"]["optimizer"] = "adam"
    if options.task == "text" and description.prompts != Prompts():
        taken["prompts"] = asdict(description.prompts)
    settled = merge(taken, given)
    if options.task == "translate":
        settled = merge(settled, {"data": _languages(options.data, old, description)})
    return settled


def keep_start(folder: Path, old: Path) -> None:
    """Copies the model to start from into a run's folder, which alone is then enough to resume the
    run anywhere."""
    description, tokenizer = load_description(old)
    model = load_model(old, description.model, torch.device("cpu"))
    with files.aside(start_of(folder)) as start:
        save_description(start, description, tokenizer)
        if (old / layout.GENERATION).exists():
            steering = files.read_bounded(old / layout.GENERATION)
            files.write_file(start / layout.GENERATION, steering)
        save_weights(start, dict(model.named_parameters()))


def start_of(folder: Path) -> Path:
    """Where a run keeps the model that it started from; it exists only if there was one."""
    return folder / layout.START


def known(folder: Path, options: TokenizerOptions) -> tuple[Description, Tokenizer] | None:
    """What a run has already: its own tokeniser, or that of the model it starts from unless
    another vocabulary is wanted."""
    if (folder / layout.CONFIG).exists():
        return load_description(folder)
    start = start_of(folder)
    if not (start / layout.CONFIG).exists():
        return None
    description, tokenizer = load_description(start)
    if not description.model.departures and options.vocab_size not in (0, tokenizer.target_size):
        return None
    return description, tokenizer


def start_weights(setup: RunSetup, model: Transformer) -> dict[str, Tensor]:
    """The weights that the run starts from, as they fit its model."""
    start = start_of(setup.folder)
    if setup.options.task in (*_HEADS, "image"):
        return _weights_without_labels(start, model, setup.description.labels)
    description, old = load_description(start)
    with torch.device("meta"):
        expected = shapes(Transformer(description.model))
    weights = read_weights(start / layout.WEIGHTS, expected)
    drawn = dict(model.named_parameters())
    # A tokeniser from elsewhere stays what it is.
    if old.by_words and old.serialised() != setup.tokenizer.serialised():
        weights = _for_vocabulary(weights, description, (old, setup.tokenizer), drawn)
    return fitted(weights, description.model, setup.description.model, drawn)


def _for_vocabulary(
    weights: dict[str, Tensor],
    description: Description,
    vocabularies: tuple[Tokenizer, Tokenizer],
    drawn: Mapping[str, Tensor],
) -> dict[str, Tensor]:
    """The weights of a model for a new vocabulary: its rows by their pieces. Where the sides of a
    vocabulary differ or it comes from elsewhere, only a source side that has stayed keeps its
    rows."""
    old, new = vocabularies
    name = _EMBEDDING
    if description.model.departures or not (old.joint and new.joint):
        layers = {key: weight for key, weight in weights.items() if ".layers." in key}
        if old.serialised()[0] == new.serialised()[0]:
            layers[name] = weights[name]
        return layers
    return {**weights, name: _rows_by_piece(weights[name], old, new, drawn[name].detach().cpu())}


def _rows_by_piece(rows: Tensor, old: Tokenizer, new: Tokenizer, drawn: Tensor) -> Tensor:
    """Pieces that the old vocabulary had keep their rows, and the others have those that were
    `drawn` for the model (Kocmi and Bojar 2018 continue so from one pair of languages to
    another)."""
    old_pieces = old.pieces(range(old.target_size), "target")
    old_tokens = {piece: token for token, piece in enumerate(old_pieces)}
    new_pieces = new.pieces(range(new.target_size), "target")
    origins = torch.tensor([old_tokens.get(piece, -1) for piece in new_pieces])
    kept = rows[origins.clamp(min=0)]
    return torch.where(origins[:, None] >= 0, kept, drawn)


def _weights_without_labels(
    start: Path, model: Transformer, labels: tuple[str, ...]
) -> dict[str, Tensor]:
    """The weights of the model that is continued; a classifier of other labels starts from the
    drawn ones."""
    own = dict(model.named_parameters())
    weights = read_tensors(start / layout.WEIGHTS)
    same_labels = load_description(start)[0].labels == labels
    fitting: dict[str, Tensor] = {}
    for name, drawn in own.items():
        of_labels = name.startswith("classifier.output.")
        if name in weights and weights[name].shape == drawn.shape:
            if same_labels or not of_labels:
                fitting[name] = weights[name]
        elif not name.startswith("classifier."):
            raise ModelFolderError(
                f"{start} has no weight '{name}' of this model's shape; train without --continue"
            )
    return own | fitting


def _check_task(old: Path, description: Description, task: str) -> None:
    if description.task not in (task, *_FROM.get(task, ())):
        raise OptionError(
            f"the model in {old} is of the task {description.task}; "
            f"it cannot be continued with the task {task}"
        )


def _check_vocabulary(
    old: Path,
    options: TokenizerOptions,
    description: Description,
    tokenizer: Tokenizer,
    pieces: Mapping[str, Any],
) -> None:
    size = options.vocab_size
    replaceable = not description.model.departures and tokenizer.joint
    if size not in (0, pieces.get("vocab_size"), tokenizer.target_size) and not replaceable:
        raise OptionError(
            f"tokenizer.vocab_size is {size}, but the model in {old} has to keep its vocabulary; "
            "omit it"
        )
    if options.sampling and not tokenizer.by_words:
        raise OptionError(
            "tokenizer.sampling needs one of dragoman's own tokenisers, and the model has one from "
            "elsewhere; leave it at 0"
        )


def _model(description: Description, task: str) -> dict[str, Any]:
    """The model's options, but for the sizes that follow from the tokeniser."""
    model = {
        name: value
        for name, value in asdict(description.model).items()
        if not name.endswith("vocab_size")
    }
    if task in _HEADS:  # in place of what filled in masked words
        model |= {"output_transform": False, "output_bias": False, **_HEADS[task]}
    return model


def _free_layers(description: Description, task: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    """The numbers of layers that may be other than they were."""
    asked = given.get("model", {})
    changeable = task in _WITH_OTHER_LAYERS and can_change_layers(description.model, asked)
    return LAYERS if changeable else ()


def _check_same(
    old: Path, given: Mapping[str, Any], taken: Mapping[str, Any], layers: tuple[str, ...]
) -> None:
    """Refuses options, also those of a named preset, that the old model has otherwise."""
    preset = str(given.get("preset", "auto"))
    asked = given if preset == "auto" else merge({"model": named(preset)["model"]}, given)
    for section, table in taken.items():
        for name, value in asked.get(section, {}).items():
            if name not in (*FREE, *layers) and value != table.get(name, value):
                raise OptionError(
                    f"{section}.{name} is {value}, but the model in {old} has {table[name]}; "
                    "omit it, or train without --continue"
                )


def _languages(data: DataOptions, old: Path, description: Description) -> dict[str, str]:
    """The languages that the user named, or else those of the files' names, or of the model."""
    asked = {"source_language": data.source_language, "target_language": data.target_language}
    of_files = languages(corpora(data.train) + corpora(data.valid), *asked.values())
    for side, language in zip(asked, of_files, strict=True):
        before = getattr(description, side)
        if language and before and language != before and not asked[side]:
            raise OptionError(
                f"the files are named as {language}, but {side} of the model in {old} is "
                f"{before}; add --set {side}={language} if it is to learn another"
            )
        asked[side] = language or before
    return asked
