"""A run of a task other than translation before its first step: text, labelled text or images
become examples, and the folder one from which training can begin. Knows no loop."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.config import merge, to_toml
from dragoman.data.blocks import read_labelled, sample, size_of, write_blocks, write_labelled
from dragoman.data.images import find_images, write_images
from dragoman.errors import InputError, OptionError
from dragoman.folder import layout
from dragoman.folder.description import Description, save_description
from dragoman.folder.files import write_file
from dragoman.text.foreign import Foreign
from dragoman.text.tokenizer import BOS, Frame, Tokenizer, TokenizerOptions, learn
from dragoman.training.continued import known
from dragoman.training.presets import resolve
from dragoman.training.training_data import RunSetup, read_examples, token_dtype
from dragoman.training.training_options import Options

BYTES_PER_PAIR = 100  # of text, which counts as much as a pair of sentences when `auto` chooses
PATCHES = 65  # of an image, about; as many tokens
TOKENS_PER_PAIR = 25
Labelled = list[tuple[str, Any]]  # label, and text or image
Say = Callable[[str], None]


def prepare_task(
    folder: Path,
    given: Mapping[str, Any],
    asked: Options,
    on_gpu: bool,
    say: Say,
) -> None:
    """Writes the examples, and the files that make the folder one from which training can
    begin."""
    data = folder / layout.DATA
    shutil.rmtree(data, ignore_errors=True)
    for part in (layout.TRAIN, layout.VALID):
        (data / part).mkdir(parents=True)
    options, why, labelled = _read(given, asked, on_gpu)
    tokenizer, frame, note = _tokens(folder, options, labelled)
    if why:
        amount = why.replace(" pairs", f" times {TOKENS_PER_PAIR} tokens", 1)
        say(f"auto preset for {amount}; what you named or continue comes first.")
    description = _describe(options, labelled, tokenizer, frame)
    setup = RunSetup(folder, options, description, tokenizer)
    if labelled:
        counts = _write_labelled(setup, labelled)
        unit = f"examples of {len(description.labels)} labels"
    else:
        end = frame.end if options.task == "lm" else frame.source_end[-1]
        counts = write_blocks(options.data, data, tokenizer, end, token_dtype(tokenizer))
        unit = "tokens"
    n_train, n_valid = counts
    report = f"{n_train:,} {unit} to train on, {n_valid:,} to validate with. {note}"
    report = report.strip()
    _write_description(setup, report)
    say(report)


def _read(given: Mapping[str, Any], asked: Options, on_gpu: bool) -> tuple[Options, str, Labelled]:
    """The options, why `auto` chose them, and the labelled examples where the task has such."""
    files = asked.data.train
    if not files:
        raise InputError(f"no training files were named; the task {asked.task} needs some")
    labelled: Labelled = []
    if asked.task == "image":
        named = given.get("model", {})
        labelled, size = find_images(files, named.get("input_size", 0))
        given = merge(given, {"model": {"input_size": size}})
        pairs = len(labelled) * PATCHES // TOKENS_PER_PAIR
    else:
        if asked.task == "class":
            labelled = read_labelled(files)
        pairs = size_of(files) // BYTES_PER_PAIR
    has_labels = asked.task in ("class", "image")
    if has_labels and len(_labels(labelled)) < 2:
        names = " and ".join(files)
        raise InputError(f"{names} has fewer than two labels; give examples of at least two")
    options, why = resolve(given, max(1, pairs), on_gpu)
    return options, why, labelled


def _tokens(folder: Path, options: Options, labelled: Labelled) -> tuple[Tokenizer, Frame, str]:
    """The tokeniser, what stands around a text (for an encoder, a token that stands for all of
    it), and a note for the user."""
    continued = known(folder, TokenizerOptions())
    if continued is not None:
        description, tokenizer = continued
        frame = description.frame
        complete = tokenizer.mask is not None and frame.source_start and frame.source_end
        if options.task == "mlm" and not complete:
            raise OptionError(
                "the tokeniser of the model to continue has no [MASK], start or end; "
                "train without --continue"
            )
        return tokenizer, frame, ""
    if options.task == "image":
        return Foreign({}, 0), Frame(), ""
    texts = [text for _, text in labelled] or sample(options.data.train)
    tokenizer, note = learn(options.tokenizer, texts, ())
    frame = Frame() if options.task == "lm" else Frame(source_start=(BOS,))
    return tokenizer, frame, note


def _describe(
    options: Options, labelled: Labelled, tokenizer: Tokenizer, frame: Frame
) -> Description:
    labels = tuple(sorted(_labels(labelled)))
    model = replace(options.model, vocab_size=tokenizer.target_size, classes=len(labels))
    longest = options.data.block
    if options.task in ("class", "image"):
        longest = min(options.data.max_length, model.max_length)
    return Description(
        model=model,
        source_language="",
        target_language="",
        longest=longest,
        task=options.task,
        labels=labels,
        frame=frame,
    )


def _labels(labelled: Labelled) -> set[str]:
    return {label for label, _ in labelled}


def _write_labelled(setup: RunSetup, labelled: Labelled) -> tuple[int, int]:
    """Writes both parts; returns how many examples each has."""
    options = setup.options
    data = options.data
    order = random.Random(options.training.seed)
    order.shuffle(labelled)
    held_out = 0
    if not data.valid:
        share = max(1, len(labelled) // 20)
        held_out = min(data.held_out, share)
    train = labelled[held_out:]
    valid = labelled[:held_out]
    if data.valid and options.task == "image":
        valid, _ = find_images(data.valid, options.model.input_size)
    elif data.valid:
        valid = read_labelled(data.valid)
    known_labels = set(setup.description.labels)
    for label in _labels(valid) - known_labels:
        raise InputError(
            f"{data.valid[0]} has the label '{label}', which no training example has; "
            "add some or correct it"
        )
    _write_part(setup, layout.TRAIN, train)
    _write_part(setup, layout.VALID, valid)
    return len(train), len(valid)


def _write_part(setup: RunSetup, part: str, labelled: Labelled) -> None:
    description = setup.description
    options = setup.options
    folder = setup.data / part
    labels = [description.labels.index(label) for label, _ in labelled]
    contents = [content for _, content in labelled]
    if options.task == "image":
        write_images(folder, contents, labels, options.model.input_size)
        return
    frame = description.frame
    around = frame.source(())
    most = description.longest - len(around)
    rows = setup.tokenizer.encode(contents, "source")
    tokens = [frame.source(row[:most]) for row in rows]
    write_labelled(folder, tokens, labels, token_dtype(setup.tokenizer))


def _write_description(setup: RunSetup, report: str) -> None:
    options = setup.options
    examples = read_examples(setup, layout.TRAIN)
    corpus = {
        "files": list(options.data.train),
        "weight": 1.0,
        "pairs": len(examples),
    }
    manifest = json.dumps({"version": 1, "train": [corpus]})
    write_file(setup.data / layout.REPORT, f"{report}\n".encode())
    write_file(setup.data / layout.MANIFEST, manifest.encode())
    write_file(setup.folder / layout.OPTIONS, to_toml(options).encode())
    save_description(setup.folder, setup.description, setup.tokenizer)
