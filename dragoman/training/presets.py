"""Presets: what a name stands for, what `auto` picks from the amount of text and the device, and
what a task makes of both."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from typing import Any

from dragoman.config import build, merge
from dragoman.data.data_options import DataOptions
from dragoman.errors import OptionError
from dragoman.model.families import FAMILIES, SHAPES
from dragoman.training.training_options import Options

Tables = dict[str, Any]

# §5.1-5.4 and §6.1 for base and big: a checkpoint each ten minutes, at 0.4 and 1.0 seconds a step.
_TRAINING: dict[str, Tables] = {
    "tiny": {"steps": 3_000, "batch_tokens": 4096, "warmup": 1000, "save_every": 250},
    "small": {"steps": 20_000, "batch_tokens": 8192, "warmup": 4000, "save_every": 500},
    "base": {
        "steps": 100_000,
        "batch_tokens": 25_000,
        "warmup": 4000,
        "save_every": 1500,
        "average": 5,
    },
    "big": {
        "steps": 300_000,
        "batch_tokens": 25_000,
        "warmup": 4000,
        "save_every": 600,
        "average": 20,
    },
}
# 37,000 is the paper's for English-German.
_VOCABULARY = {"tiny": 4_000, "small": 8_000, "base": 37_000, "big": 37_000}


def resolve(given: Mapping[str, Any], pairs: int, on_gpu: bool) -> tuple[Options, str]:
    """Preset and task, then what the user named; with the reason where `auto` chose, from
    `pairs`, each of some 25 tokens."""
    preset, task = str(given.get("preset", "auto")), build(Options, given).task
    tables, why = automatic(pairs, on_gpu) if preset == "auto" else (named(preset), "")
    options = build(
        Options, merge(tables if task == "translate" else for_task(task, tables, given), given)
    )
    if options.model.vocab_size or options.model.source_vocab_size:
        raise OptionError(
            "model.vocab_size follows from the tokeniser; set tokenizer.vocab_size instead"
        )
    shape, wanted = (
        options.model,
        ("image" if task == "image" else "tokens", task != "lm", task in ("translate", "lm")),
    )
    fits = (shape.input, shape.encoder_layers > 0, shape.decoder_layers > 0) == wanted
    if not fits or (task == "lm" and shape.positions == "relative"):
        raise OptionError(
            f"model.input, positions, encoder_layers or decoder_layers is not for the task {task}; leave it away"
        )
    block = task in ("lm", "mlm")
    least, room = (
        ("data.block", options.data.block)
        if block
        else ("data.max_length + 50", options.data.max_length + 50)
    )
    if options.model.max_length < room and task not in ("class", "image"):
        raise OptionError(
            f"model.max_length is {options.model.max_length}; it must be at least {least}"
        )
    return options, why


def for_task(task: str, tables: Tables, given: Mapping[str, Any]) -> Tables:
    """What a preset of translation becomes for another task: one stack as high as both were, as
    the family has it but with the norm first, which needs no care with the rate; AdamW and a
    cosine."""
    shape, named = (
        tables["model"],
        merge({"data": {}, "model": {}, "training": tables["training"]}, given),
    )
    family = FAMILIES[{"lm": "gpt2", "mlm": "bert", "class": "bert", "image": "vit"}[task]]
    stack, limit = (
        "decoder_layers" if task == "lm" else "encoder_layers",
        "block" if task in ("lm", "mlm") else "max_length",
    )
    model = (
        shape
        | family
        | {"norm_first": True, stack: shape["encoder_layers"] + shape["decoder_layers"]}
    )
    model["max_length"] = named["data"].get(limit, getattr(DataOptions, limit))
    if task == "mlm":
        model |= {"output_transform": True, "output_bias": True}
    if task == "image":
        size = named["model"].get("input_size", 64)
        # Seven to fifteen squares a side, or more of 16 pixels; if they can be, without a rest.
        even = (n for n in range(min(16, size // 7), size // 16, -1) if size % n == 0)
        model |= {"input_size": size, "patch_size": next(even, min(16, max(1, size // 8)))}
    rate, warmup = (
        min(1e-3, 0.256 / shape["d_model"]),
        max(1, min(1000, named["training"]["steps"] // 10)),
    )
    better = {
        "optimizer": "adamw",
        "weight_decay": 0.1,
        "epsilon": 1e-8,
        "clip": 1.0,
        "label_smoothing": 0.0,
    }
    better |= {"schedule": "cosine", "learning_rate": rate, "warmup": warmup}
    better |= {"select": "accuracy"} if task in ("class", "image") else {}
    return merge(tables, {"tokenizer": {"mask": task == "mlm"}, "model": model, "training": better})


def named(name: str) -> Tables:
    """The tables that a preset's name stands for."""
    return {
        "preset": name,
        "tokenizer": {"kind": "bpe", "vocab_size": _VOCABULARY[name]},
        "model": dict(SHAPES[name]),
        "training": dict(_TRAINING[name]),
    }


def automatic(pairs: int, on_gpu: bool) -> tuple[Tables, str]:
    """What `auto` picks, and why in one sentence. Pairs alone decide how much a model can hold
    and how much noise it needs against learning the text by heart; the device decides how large
    a model can be trained in a day."""
    amount = bisect.bisect([10_000, 50_000, 200_000, 1_000_000], pairs)
    vocabulary = (2_000, 4_000, 8_000, 16_000, 32_000)[amount]
    dropout = (0.3, 0.3, 0.2, 0.1, 0.1)[amount]
    # Fewer passes over more text, yet never fewer tokens in all.
    epochs = min(60.0, max(8.0, 60 * (pairs / 10_000) ** -0.4))
    shape = (
        ("tiny", "small", "small", "base", "base")
        if on_gpu
        else ("tiny", "tiny", "small", "small", "small")
    )[amount]
    batch = (4096, 4096, 8192, 16_384, 25_000)[amount]
    # About 25 tokens a pair: real text rarely has fewer than 15 or more than 35 on average.
    steps = max(500, int(epochs * pairs * 25 / batch))
    tables = {
        "preset": "auto",
        "tokenizer": {"kind": "bpe", "vocab_size": vocabulary},
        "model": {**SHAPES[shape], "dropout": dropout, "norm_first": True},
        "training": {
            "steps": steps,
            "batch_tokens": batch,
            "schedule": "inverse_sqrt",
            "learning_rate": 1e-3 if shape in ("tiny", "small") else 7e-4,
            "warmup": min(4000, max(200, steps // 10)),
            "clip": 1.0,
            "save_every": max(100, min(2000, steps // 40)),
            "patience": 8,
        },
    }
    why = (
        f"{pairs:,} pairs on {'a GPU' if on_gpu else 'a CPU'}: the {shape} shape, {vocabulary:,} pieces, dropout {dropout}, "
        f"batches of {batch:,} tokens, at most {steps:,} steps (about {steps * batch / 25 / pairs:.0f} passes over the text), "
        "stopping when 8 validations in a row bring nothing better"
    )
    return tables, why
