"""A run of a task other than translation before its first step: text, labelled text or images
become examples, and the folder one from which training can begin. Knows no loop."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.config import merge, to_toml
from dragoman.data.blocks import sample, size_of, write_blocks
from dragoman.data.images import find_images
from dragoman.errors import InputError, OptionError
from dragoman.folder import layout
from dragoman.folder.description import Description, save_description
from dragoman.folder.files import write_file
from dragoman.text.foreign import Foreign
from dragoman.text.tokenizer import BOS, Frame, Tokenizer, TokenizerOptions, learn
from dragoman.training.continued import known
from dragoman.training.example_kinds import (
    CHARACTERS_PER_PAIR,
    KINDS,
    TOKENS_PER_PAIR,
    Example,
    Examples,
    Kind,
)
from dragoman.training.presets import resolve
from dragoman.training.training_data import RunSetup, read_examples, token_dtype
from dragoman.training.training_options import Options

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
    text = _read(given, asked, on_gpu)
    options = text.options
    examples = text.examples
    tokenizer, frame, note = _tokens(folder, options, examples)
    if text.why:
        amount = text.why.replace(" pairs", f" times {TOKENS_PER_PAIR} tokens", 1)
        say(f"auto preset for {amount}; what you named or continue comes first.")
    description = _describe(options, examples, tokenizer, frame)
    setup = RunSetup(folder, options, description, tokenizer)
    if options.task in KINDS:
        n_train, n_valid = _write_examples(setup, text)
        labels = f" of {len(description.labels)} labels" if description.labels else ""
        unit = f"{KINDS[options.task].unit}{labels}"
    else:
        end = frame.end if options.task == "lm" else frame.source_end[-1]
        dtype = token_dtype(tokenizer)
        n_train, n_valid = write_blocks(options.data, data, tokenizer, end, dtype)
        unit = "tokens"
    report = f"{n_train:,} {unit} to train on, {n_valid:,} to validate with. {note}"
    report = report.strip()
    _write_description(setup, report)
    say(report)


@dataclass(frozen=True)
class _Text:
    """The options, why `auto` chose them, and the examples where the task reads them whole: those
    of the training files, and those of validation files if there are such."""

    options: Options
    why: str
    examples: Examples
    valid: Examples


def _read(given: Mapping[str, Any], asked: Options, on_gpu: bool) -> _Text:
    files = asked.data.train
    if not files:
        raise InputError(f"no training files were named; the task {asked.task} needs some")
    kind = KINDS.get(asked.task)
    examples: Examples = []
    pairs = 0
    if asked.task == "image":
        named = given.get("model", {})
        found, size = find_images(files, named.get("input_size", 0))
        examples = [Example((label,), image) for label, image in found]
        given = merge(given, {"model": {"input_size": size}})
    elif kind is not None:
        examples = kind.read(files, 0)
    else:
        pairs = size_of(files) // CHARACTERS_PER_PAIR
    if kind is not None:
        _check(kind, files, examples)
        pairs = kind.pairs(examples)
    options, why = resolve(given, max(1, pairs), on_gpu)
    valid: Examples = []
    if kind is not None and options.data.valid:
        valid = kind.read(options.data.valid, options.model.input_size)
        _check_valid(options, examples, valid)
    return _Text(options, why, examples, valid)


def _check(kind: Kind, files: Sequence[str], examples: Examples) -> None:
    """Refuses examples from which nothing can be learnt."""
    names = " and ".join(files)
    if kind.labelled and len(_labels(examples)) < 2:
        raise InputError(f"{names} has fewer than two labels; give examples of at least two")
    if len(examples) < 2:
        raise InputError(f"{names} has fewer than two {kind.unit}; give more")


def _tokens(folder: Path, options: Options, examples: Examples) -> tuple[Tokenizer, Frame, str]:
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
        return tokenizer, _with_pairs(frame, tokenizer, options, examples), ""
    if options.task == "image":
        return Foreign({}, 0), Frame(), ""
    kind = KINDS.get(options.task)
    texts = sample(options.data.train) if kind is None else _texts(kind, examples)
    tokenizer, note = learn(options.tokenizer, texts, ())
    frame = Frame() if options.task == "lm" else Frame(source_start=(BOS,))
    return tokenizer, _with_pairs(frame, tokenizer, options, examples), note


def _texts(kind: Kind, examples: Examples) -> list[str]:
    return [text for example in examples for text in kind.texts(example)]


def _with_pairs(frame: Frame, tokenizer: Tokenizer, options: Options, examples: Examples) -> Frame:
    """With what stands between two texts, where a label is for both of them."""
    if frame.between or options.task != "class" or not _are_pairs(examples):
        return frame
    if not tokenizer.by_words:
        raise OptionError(
            "the model to continue does not say what stands between two texts; give single "
            "texts, or train without --continue"
        )
    return replace(frame, between=frame.source_end)


def _are_pairs(examples: Examples) -> bool:
    return bool(examples) and len(examples[0].content) == 2


def _describe(
    options: Options, examples: Examples, tokenizer: Tokenizer, frame: Frame
) -> Description:
    labels = tuple(sorted(_labels(examples)))
    model = replace(options.model, vocab_size=tokenizer.target_size, classes=len(labels))
    longest = options.data.block
    if options.task in KINDS:
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


def _labels(examples: Examples) -> set[str]:
    return {label for example in examples for label in example.labels}


def _write_examples(setup: RunSetup, text: _Text) -> tuple[int, int]:
    """Writes both parts; returns how many examples each has."""
    options = setup.options
    data = options.data
    kind = KINDS[options.task]
    examples = text.examples
    order = random.Random(options.training.seed)
    order.shuffle(examples)
    held_out = 0
    if not data.valid:
        share = max(1, len(examples) // 20)
        held_out = min(data.held_out, share)
    train = examples[held_out:]
    valid = text.valid if data.valid else examples[:held_out]
    if options.task == "embed":
        test = kind.read(data.test, 0) if data.test else []
        train = _without(train, valid + test)
        if not train:
            names = " and ".join(data.train)
            raise InputError(
                f"each pair of {names} shares a text with one to validate or test with, and none "
                "is left to train on; give more pairs, or other validation files"
            )
    for part, of_part in ((layout.TRAIN, train), (layout.VALID, valid)):
        kind.write(setup, setup.data / part, of_part)
    return len(train), len(valid)


def _without(train: Examples, valid: Examples) -> Examples:
    """Pairs that share no text with those to validate or test with: what is learnt by heart would
    be found."""
    used = {text for example in valid for text in example.content}
    return [example for example in train if not used & set(example.content)]


def _check_valid(options: Options, examples: Examples, valid: Examples) -> None:
    """Refuses examples to validate with that the model could not get right."""
    file = options.data.valid[0]
    for label in sorted(_labels(valid) - _labels(examples)):
        raise InputError(
            f"{file} has the label '{label}', which no training example has; add some or correct it"
        )
    if options.task == "class" and valid and _are_pairs(valid) != _are_pairs(examples):
        raise InputError(
            f"{file} and the training text differ: one has pairs of texts and the other single "
            "texts; write the same number of texts behind each label"
        )


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
