"""What a run learns from, and what it is measured by: the examples of each epoch, as the folder of
the run holds them. Knows no loop and no optimiser."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.data.batches import Draw, Examples, Pairs
from dragoman.data.blocks import Blocks, Masking, map_tokens
from dragoman.data.epoch_text import EpochText
from dragoman.data.epochs import Epochs, processes_for
from dragoman.data.images import Images
from dragoman.data.prepared_files import (
    check_images,
    check_pairs,
    check_speech,
    check_tokens,
)
from dragoman.data.speech import Hearing, Masks, Speech
from dragoman.data.word_examples import TextPairs, WordExamples
from dragoman.errors import ModelFolderError
from dragoman.folder import layout
from dragoman.folder.description import PAIR_TASKS, Description
from dragoman.folder.files import read_json
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.distributed import World
from dragoman.training.training_options import Options
from dragoman.training.validation import ValidPairs, ValidSet
from dragoman.training.validation_encoders import ValidLabels, ValidVectors
from dragoman.training.validation_speech import Unloaded, ValidSpeech
from dragoman.training.validation_text import ValidText
from dragoman.training.validation_trees import ValidTrees

_FILES_OF_PAIRS: dict[str, Callable[[Path, str], Pairs]] = {
    "class": Pairs,
    "label": WordExamples,
    "embed": TextPairs,
}
_VALID_SETS = {"translate": ValidPairs, "text": ValidText, "parse": ValidTrees}


@dataclass(frozen=True)
class TrainingData:
    """The examples of a run."""

    folder: Path  # where they were read from, for messages
    task: str
    epochs: Callable[[int], Examples]  # the examples of an epoch, by its number
    corpora: list[tuple[int, float]]  # examples and weight of each corpus, in file order
    valid: ValidSet

    @property
    def decodes(self) -> bool:
        """Whether every token is predicted from those before it."""
        return self.task in (*PAIR_TASKS, "lm", "speech")

    @property
    def contrasts(self) -> bool:
        """Whether what is learnt from an example depends on the others of its batch, which then
        stays whole."""
        return self.task == "embed"

    @property
    def one_length(self) -> bool:
        """Whether all examples have the same number of tokens: blocks of text, and images."""
        return self.task in ("lm", "mlm", "image")


@dataclass(frozen=True)
class RunSetup:
    """What is known of a run once its text has been prepared."""

    folder: Path
    options: Options
    description: Description
    tokenizer: Tokenizer

    @property
    def data(self) -> Path:
        return self.folder / layout.DATA

    def manifest(self) -> dict[str, Any]:
        return read_json(self.data / layout.MANIFEST)


def read_data(setup: RunSetup, world: World) -> TrainingData:
    """Everything that the trainer learns from."""
    task = setup.options.task
    corpora = corpora_of(setup)
    world.once(lambda: _check_files(setup, sum(count for count, _ in corpora)))
    if task in PAIR_TASKS:
        dtype = _dtype(setup)
        epochs = _pairs_of_epochs(setup, dtype, world)
        valid: ValidSet = _VALID_SETS[task](
            setup.data / layout.VALID,
            dtype,
            setup.tokenizer,
            setup.description,
            setup.options.training.valid_sentences,
        )
        return TrainingData(setup.folder, task, epochs, corpora, valid)

    def examples_of(epoch: int) -> Examples:
        return read_examples(setup, layout.TRAIN, epoch)

    valid = _valid_set(setup, read_examples(setup, layout.VALID))
    return TrainingData(setup.folder, task, examples_of, corpora, valid)


def _valid_set(setup: RunSetup, examples: Examples) -> ValidSet:
    if isinstance(examples, WordExamples):
        return ValidLabels(examples, setup.description)
    if isinstance(examples, TextPairs):
        return ValidVectors(examples, setup.options.training)
    if isinstance(examples, Speech):
        loaded = Unloaded(setup.folder, setup.tokenizer, setup.description)
        return ValidSpeech(examples, loaded, setup.options.training.valid_sentences)
    return ValidSet(examples)


def read_examples(setup: RunSetup, part: str, epoch: int | None = None) -> Examples:
    """The examples of a task that has no pairs: `train`, as an epoch shows it, or `valid`."""
    folder = setup.data / part
    options = setup.options
    dtype = token_dtype(setup.tokenizer)
    draw = None if epoch is None else Draw(options.training.seed, epoch)
    if options.task in _FILES_OF_PAIRS:
        return _FILES_OF_PAIRS[options.task](folder, dtype)
    if options.task == "speech":
        hidden = None if draw is None else (Masks.of(options.data), draw)
        start = setup.description.frame.start
        return Speech(folder, dtype, start, hearing_of(setup.description), hidden)
    if options.task == "image":
        config = setup.description.model
        patches = (config.input_size // config.patch_size) ** 2
        return Images(folder, config.input_size, 1 + patches, options.data.flip, draw)
    masking = None
    if options.task == "mlm":
        masking = Masking(setup.tokenizer.mask or 0, setup.tokenizer.target_size)
    tokens = map_tokens(folder / layout.TOKENS, dtype)
    return Blocks(tokens, options.data.block, setup.description.frame, draw, masking)


def hearing_of(description: Description) -> Hearing:
    """What a model for speech hears at once."""
    return Hearing(description.model.input_size, description.model.source_length)


def corpora_of(setup: RunSetup) -> list[tuple[int, float]]:
    """Examples and weight of each corpus, as the manifest has them."""
    try:
        corpora = []
        for corpus in setup.manifest()["train"]:
            count = int(corpus["pairs"])
            weight = float(corpus["weight"])
            if count < 0 or not 0 <= weight < math.inf:
                raise ValueError
            corpora.append((count, weight))
        return corpora
    except (KeyError, TypeError, ValueError, OverflowError):
        path = setup.data / layout.MANIFEST
        raise ModelFolderError(
            f"{path} is damaged: it does not say how many pairs there are"
        ) from None


def _dtype(setup: RunSetup) -> str:
    """The type of the prepared tokens."""
    if setup.options.task not in PAIR_TASKS:
        return token_dtype(setup.tokenizer)
    dtype = setup.manifest().get("dtype")
    if dtype not in ("uint16", "uint32"):
        path = setup.data / layout.MANIFEST
        raise ModelFolderError(f"{path} is damaged: 'dtype' is {dtype!r}")
    return str(dtype)


def _check_files(setup: RunSetup, count: int) -> None:
    """Refuses prepared files that are damaged, or not as many as the manifest says."""
    task = setup.options.task
    model = setup.description.model
    tokenizer = setup.tokenizer
    dtype = _dtype(setup)
    for part in (layout.TRAIN, layout.VALID):
        folder = setup.data / part
        if task in ("lm", "mlm"):
            check_tokens(folder / layout.TOKENS, dtype, tokenizer.target_size)
        elif task == "speech":
            longest = hearing_of(setup.description).samples
            check_speech(folder, dtype, tokenizer.target_size, longest)
        elif task == "image":
            check_images(folder, 3 * model.input_size**2, model.classes)
        else:
            targets = {"class": model.classes, "label": model.classes + 1}
            size = targets.get(task, tokenizer.target_size)
            pairs = check_pairs(folder, dtype, (tokenizer.source_size, size))
            if part == layout.TRAIN and pairs != count:
                raise ModelFolderError(
                    f"{folder} is damaged: it has {pairs:,} pairs, "
                    f"and {layout.MANIFEST} says {count:,}"
                )


def token_dtype(tokenizer: Tokenizer) -> str:
    """The smallest type that holds every token of a task other than translation."""
    return "<u4" if tokenizer.target_size > 1 << 16 else "<u2"


def _pairs_of_epochs(setup: RunSetup, dtype: str, world: World) -> Callable[[int], Examples]:
    """The pairs of an epoch: always the same, unless subwords are sampled or pairs are changed."""
    tokenizer = setup.tokenizer
    options = setup.options
    if not options.varies_by_epoch:
        pairs = Pairs(setup.data / layout.TRAIN, dtype, tokenizer.frame.start)
        return lambda epoch: pairs

    text = EpochText(
        train=setup.data / layout.TRAIN,
        tokenizer=tokenizer,
        options=options.tokenizer,
        seed=options.training.seed,
        dtype=dtype,
        limit=options.data.max_length,
        augment=options.augment if options.data.augment else None,
        languages=(setup.description.source_language, setup.description.target_language),
    )
    processes = processes_for(text.pairs, (os.cpu_count() or 1) // world.size)
    epochs = Epochs(text, setup.data / layout.epoch(world.rank), processes)
    return lambda epoch: Pairs(epochs(epoch), dtype, tokenizer.frame.start)
