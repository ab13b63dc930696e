"""What a run of another task than translation reads, and what it says at its end. Loop and
folder are those of every run."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from dragoman.config import build, merge, to_toml
from dragoman.data.batches import Draw, Examples, Pairs
from dragoman.data.blocks import (
    Blocks,
    Masking,
    map_tokens,
    read_labelled,
    sample,
    size_of,
    write_blocks,
    write_labelled,
)
from dragoman.data.images import Images, find_images, write_images
from dragoman.errors import InputError, ModelFolderError, OptionError
from dragoman.folder import layout
from dragoman.folder.description import Description, load_description, save_description
from dragoman.folder.files import write_file
from dragoman.folder.weights import read_tensors
from dragoman.text.foreign import Foreign
from dragoman.text.tokenizer import BOS, Frame, Tokenizer, learn
from dragoman.training.presets import resolve
from dragoman.training.training_options import Options

TRY = {
    "lm": 'generate "Once upon"',
    "mlm": 'fill "One [MASK] two"',
    "class": 'classify "A text"',
    "image": "classify one.png",
}
Known = tuple[Description, Tokenizer]  # what is continued
Labelled = list[tuple[str, Any]]  # label, and text or image


def prepare(
    folder: Path,
    given: Mapping[str, Any],
    on_gpu: bool,
    known: Known | None,
    say: Callable[[str], None],
) -> None:
    """Examples into the folder, and the files that make it one from which training can begin."""
    place = folder / layout.DATA
    shutil.rmtree(place, ignore_errors=True)
    for part in (layout.TRAIN, layout.VALID):
        (place / part).mkdir(parents=True)
    options, why, found = _read(given, on_gpu)
    if why:
        say(
            f"auto preset for {why.replace(' pairs', ' times 25 tokens', 1)}; what you named or continue comes first."
        )
    tokenizer, frame, note = _tokens(options, found, known)
    names = tuple(sorted({label for label, _ in found}))
    model = replace(options.model, vocab_size=tokenizer.target_size, classes=len(names))
    longest = (
        options.data.block
        if options.task in ("lm", "mlm")
        else min(options.data.max_length, model.max_length)
    )
    description = Description(model, "", "", longest, task=options.task, labels=names, frame=frame)
    if found:
        counts = _write(place, options, description, found, tokenizer)
    else:
        end = frame.end if options.task == "lm" else frame.source_end[-1]
        counts = write_blocks(options.data, place, tokenizer, end, _dtype(tokenizer))
    unit = f"examples of {len(names)} labels" if found else "tokens"
    told = f"{counts[0]:,} {unit} to train on, {counts[1]:,} to validate with. {note}".strip()
    count = len(examples(folder, options, description, tokenizer, layout.TRAIN))
    train = [{"files": list(options.data.train), "weight": 1.0, "pairs": count}]
    write_file(place / layout.REPORT, f"{told}\n".encode())
    manifest = json.dumps({"version": 1, "train": train})
    write_file(place / layout.MANIFEST, manifest.encode())
    write_file(folder / layout.OPTIONS, to_toml(options).encode())
    save_description(folder, description, tokenizer)
    say(told)


def examples(
    folder: Path,
    options: Options,
    about: Description,
    tokenizer: Tokenizer,
    part: str,
    epoch: int | None = None,
) -> Examples:
    """What `prepare` has written: train, as an epoch shows it, or valid."""
    place, dtype, config = folder / layout.DATA / part, _dtype(tokenizer), about.model
    draw = None if epoch is None else Draw(options.training.seed, epoch)
    if options.task == "class":
        return Pairs(place, dtype)
    if options.task == "image":
        squares = (config.input_size // config.patch_size) ** 2
        return Images(place, config.input_size, 1 + squares, options.data.flip, draw)
    masking = Masking(tokenizer.mask or 0, tokenizer.target_size)
    return Blocks(
        map_tokens(place / layout.TOKENS, dtype),
        options.data.block,
        about.frame,
        draw,
        masking if options.task == "mlm" else None,
    )


def but_for_labels(start: Path, model: nn.Module, labels: tuple[str, ...]) -> dict[str, Tensor]:
    """The weights of the model that is continued; a classifier of other labels begins anew."""
    own, found = dict(model.named_parameters()), read_tensors(start / layout.WEIGHTS)
    if load_description(start)[0].labels != labels:
        found = {
            name: weight
            for name, weight in found.items()
            if not name.startswith("classifier.output.")
        }
    fitting = {
        name: found[name]
        for name in own.keys() & found.keys()
        if found[name].shape == own[name].shape
    }
    for name in (
        name for name in own if name not in fitting and not name.startswith("classifier.")
    ):
        raise ModelFolderError(
            f"{start} has no weight '{name}' of this model's shape; train without --continue"
        )
    return own | fitting


def _read(given: Mapping[str, Any], on_gpu: bool) -> tuple[Options, str, Labelled]:
    """Options, why `auto` chose them, and the labelled examples where the task has such."""
    asked, found = build(Options, given), Labelled()
    files = asked.data.train
    if not files:
        raise InputError(f"no training files were named; the task {asked.task} needs some")
    if asked.task == "image":
        found, size = find_images(files, asked.model.input_size)
        given, units = (
            merge(given, {"model": {"input_size": size}}),
            len(found) * 65 // 25,
        )  # about 64 squares each
    else:
        found, units = read_labelled(files) if asked.task == "class" else [], size_of(files) // 100
    if asked.task in ("class", "image") and len({label for label, _ in found}) < 2:
        raise InputError(
            f"{' and '.join(files)} has not two labels; give examples of what is to be told apart"
        )
    return *resolve(given, max(1, units), on_gpu), found


def _tokens(options: Options, found: Labelled, known: Known | None) -> tuple[Tokenizer, Frame, str]:
    """The tokeniser, what stands around a text (for an encoder, a token that stands for all of
    it), and a note for the user."""
    if known is not None:
        frame = known[0].frame
        if options.task == "mlm" and (
            known[1].mask is None or not (frame.source_start and frame.source_end)
        ):
            raise OptionError(
                "the tokeniser of the model to continue has no [MASK], start or end; train without --continue"
            )
        return known[1], frame, ""
    if options.task == "image":
        return Foreign({}, 0), Frame(), ""
    tokenizer, note = learn(
        options.tokenizer, [text for _, text in found] or sample(options.data.train), ()
    )
    return tokenizer, Frame() if options.task == "lm" else Frame(source_start=(BOS,)), note


def _write(
    place: Path, options: Options, about: Description, found: Labelled, tokenizer: Tokenizer
) -> tuple[int, int]:
    data, size = options.data, options.model.input_size
    random.Random(options.training.seed).shuffle(found)
    aside = 0 if data.valid else min(data.held_out, max(1, len(found) // 20))
    valid = found[:aside]
    if data.valid:
        valid = (
            find_images(data.valid, size)[0]
            if options.task == "image"
            else read_labelled(data.valid)
        )
    for label in {label for label, _ in valid} - set(about.labels):
        raise InputError(
            f"{data.valid[0]} has the label '{label}', which the training examples do not have; add some or mend it"
        )
    for part, some in ((layout.TRAIN, found[aside:]), (layout.VALID, valid)):
        labels = [about.labels.index(label) for label, _ in some]
        if options.task == "image":
            write_images(place / part, [image for _, image in some], labels, size)
        else:
            room = about.longest - len(about.frame.source(()))
            tokens = [
                about.frame.source(row[:room])
                for row in tokenizer.encode([text for _, text in some], "source")
            ]
            write_labelled(place / part, tokens, labels, _dtype(tokenizer))
    return len(found) - aside, len(valid)


def _dtype(tokenizer: Tokenizer) -> str:
    return "<u4" if tokenizer.target_size > 1 << 16 else "<u2"
