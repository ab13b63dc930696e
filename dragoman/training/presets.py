"""Presets: what a name stands for, what `auto` picks from the amount of text and the device, and
what a task makes of both."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dragoman.config import build, merge, one_of
from dragoman.data.data_options import DataOptions
from dragoman.errors import OptionError
from dragoman.folder.description import PAIR_TASKS, TRAINABLE_TASKS
from dragoman.model.families import FAMILIES, SHAPES
from dragoman.model.model_config import ModelConfig
from dragoman.text.prompts import FAMILY_PROMPTS
from dragoman.training.training_options import PRESETS, Options

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
    # What recipes/student.toml was trained with. The loss on human translations rises while a
    # student learns the teacher's, so the best checkpoint is the one of the best translations.
    "student": {
        "steps": 20_000,
        "batch_tokens": 25_000,
        "schedule": "cosine",
        "learning_rate": 1.5e-3,
        "warmup": 1000,
        "clip": 1.0,
        "save_every": 1000,
        "average": 1,
        "select": "bleu",
    },
}
# A tree has more symbols than its sentence has pieces, and a vocabulary of its own.
_FOR_TREES: Tables = {"data": {"max_length": 512}, "tokenizer": {"joint": False}}
_LONGEST_TEXT = 512  # tokens of either side of text to text, unless the user names another limit
# Whisper's bands of sound, the positions of its encoder in 30 seconds and those of its decoder.
_BANDS = 80
_POSITIONS = 1500
_LONGEST_SPEECH = 448
RECORDINGS_A_STEP = 16
_HEARD_AT_VALIDATION = 100  # recordings that are transcribed; a long one takes a CPU a second
LABEL_HEAD = {"pooler": False, "pooled": "every"}  # of a model that labels words, as BERT's
_CUTS_TEXT = ("class", "label", "embed", "image")  # instead of splitting it into blocks
_MORE = {"parse": 300}  # tokens that an output may have beyond its input; 50 for other tasks
# 37,000 is the paper's for English-German.
_VOCABULARY = {"tiny": 4_000, "small": 8_000, "base": 37_000, "big": 37_000, "student": 16_000}


def resolve(given: Mapping[str, Any], pairs: int, on_gpu: bool) -> tuple[Options, str]:
    """The options of a run: preset and task, then what the user named. With the reason where
    `auto` chose, from the number of `pairs`, each of some 25 tokens."""
    preset = str(given.get("preset", "auto"))
    task = str(given.get("task", "translate"))
    one_of("preset", preset, PRESETS)
    one_of("task", task, TRAINABLE_TASKS)
    tables, why = automatic(pairs, on_gpu) if preset == "auto" else (named(preset), "")
    if preset == "auto":
        tables = _as_asked(tables, given)
    if task == "parse":
        tables = merge(tables, _FOR_TREES)
    elif task == "text":
        tables = merge(tables, _for_text(given))
    elif task == "speech":
        tables = _for_speech(tables, given, pairs)
    elif task != "translate":
        tables = for_task(task, tables, given)
    options = build(Options, merge(tables, given))
    _check(options)
    return options, why


def for_task(task: str, tables: Tables, given: Mapping[str, Any]) -> Tables:
    """What a preset of translation becomes for another task: one stack as high as both were, as
    the family has it but with the norm first, which needs no care with the rate; AdamW and a
    cosine."""
    return merge(
        tables,
        {
            "tokenizer": {"mask": task == "mlm"},
            "model": _model_for_task(task, tables["model"], given),
            "training": _training_for_task(task, tables, given),
        },
    )


def _for_speech(tables: Tables, given: Mapping[str, Any], recordings: int) -> Tables:
    """What a preset of translation becomes for speech: Whisper's encoder and decoder, AdamW and a
    cosine. A step takes so many recordings, and all of them are read as often as the preset reads
    its text."""
    model = {
        **tables["model"],
        **FAMILIES["whisper"],
        "input_size": _BANDS,
        "source_length": _number(given, "model", "source_length", _POSITIONS),
        "max_length": _LONGEST_SPEECH,
    }
    before = tables["training"]
    batch_tokens = RECORDINGS_A_STEP * model["source_length"]
    training = {**_training_for_task("speech", tables, given), "batch_tokens": batch_tokens}
    if tables["preset"] == "auto":
        passes = before["steps"] * before["batch_tokens"] / (recordings * 25)
        steps = max(500, round(passes * recordings / RECORDINGS_A_STEP))
        training["steps"] = _number(given, "training", "steps", steps)
        training["save_every"] = max(50, training["steps"] // 20)
        training["warmup"] = max(1, min(1000, training["steps"] // 10))
    select = "wer" if _number(given, "training", "valid_sentences", 1) else "loss"
    training |= {"select": select, "valid_sentences": _HEARD_AT_VALIDATION}
    return merge(tables, {"model": model, "training": training})


def _for_text(given: Mapping[str, Any]) -> Tables:
    """Any text to any text: nothing compares languages, and sources may be long."""
    longest = _number(given, "data", "max_length", _LONGEST_TEXT)
    positions = max(ModelConfig.max_length, longest + _more("text"))
    return {
        "data": {"any_text": True, "max_length": longest},
        "prompts": asdict(FAMILY_PROMPTS["text"]),
        "model": {"max_length": positions},
    }


def _more(task: str) -> int:
    return _MORE.get(task, 50)


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
    batch = (4096, 4096, 8192, 16_384, 25_000)[amount]
    shapes_on_gpu = ("tiny", "small", "small", "base", "base")
    shapes_on_cpu = ("tiny", "tiny", "small", "small", "small")
    shape = (shapes_on_gpu if on_gpu else shapes_on_cpu)[amount]
    # Fewer passes over more text, yet never fewer tokens in all.
    epochs = min(60.0, max(8.0, 60 * (pairs / 10_000) ** -0.4))
    # About 25 tokens a pair: real text rarely has fewer than 15 or more than 35 on average.
    steps = max(500, int(epochs * pairs * 25 / batch))
    tables = {
        "preset": "auto",
        "tokenizer": {"kind": "bpe", "vocab_size": vocabulary},
        "model": {**SHAPES[shape], "dropout": dropout, "norm_first": True},
        "training": {
            "steps": steps,
            "batch_tokens": batch,
            "optimizer": "muon",
            "schedule": "inverse_sqrt",
            "learning_rate": 2e-3,
            "warmup": min(4000, max(200, steps // 10)),
            "clip": 1.0,
            "save_every": max(100, min(2000, steps // 40)),
            "patience": 8,
        },
    }
    device = "a GPU" if on_gpu else "a CPU"
    passes = steps * batch / 25 / pairs
    why = (
        f"{pairs:,} pairs on {device}: the {shape} shape, {vocabulary:,} pieces, "
        f"dropout {dropout}, batches of {batch:,} tokens, at most {steps:,} steps "
        f"(about {passes:.0f} passes over the text), "
        "stopping when 8 validations in a row bring no improvement"
    )
    return tables, why


def _as_asked(tables: Tables, given: Mapping[str, Any]) -> Tables:
    """What `auto` does otherwise because of what the user named: with a limit of minutes the rate
    goes down to nothing with them, and without Muon, which needs whole matrices, it is Adam's."""
    training = given.get("training", {})
    if not isinstance(training, Mapping):  # which is refused when the options are built
        return tables
    changes: Tables = {}
    if training.get("minutes"):
        changes["schedule"] = "cosine"
    if training.get("shard"):
        changes["optimizer"] = "adam"
    optimizer = training.get("optimizer", changes.get("optimizer", "muon"))
    if optimizer != "muon":
        is_small = tables["model"]["d_model"] < SHAPES["base"]["d_model"]
        changes["learning_rate"] = 1e-3 if is_small else 7e-4
    return merge(tables, {"training": changes})


def _check(options: Options) -> None:
    """Refuses a model that does not fit the task or the text."""
    task = options.task
    model = options.model
    if model.vocab_size or model.source_vocab_size:
        raise OptionError(
            "model.vocab_size follows from the tokeniser; set tokenizer.vocab_size instead"
        )
    fits = (
        model.input == {"image": "image", "speech": "sound"}.get(task, "tokens")
        and (model.encoder_layers > 0) == (task != "lm")
        and (model.decoder_layers > 0) == (task in (*PAIR_TASKS, "lm", "speech"))
        and not (task == "lm" and model.positions == "relative")
    )
    if not fits:
        raise OptionError(
            "model.input, positions, encoder_layers or decoder_layers is not for the task "
            f"{task}; omit it"
        )
    if task == "parse" and options.tokenizer.joint:
        raise OptionError("tokenizer.joint is true; trees have a vocabulary of their own, omit it")
    if task in (*_CUTS_TEXT, "speech"):
        return
    more = _more(task)
    least = f"data.max_length + {more}"
    length = options.data.max_length + more
    if task in ("lm", "mlm"):
        least = "data.block"
        length = options.data.block
    if model.max_length < length:
        raise OptionError(f"model.max_length is {model.max_length}; it must be at least {least}")


def _model_for_task(task: str, shape: Tables, given: Mapping[str, Any]) -> Tables:
    family = FAMILIES[{"lm": "gpt2", "image": "vit"}.get(task, "bert")]
    stack = "decoder_layers" if task == "lm" else "encoder_layers"
    layers = shape["encoder_layers"] + shape["decoder_layers"]
    limit = "block" if task in ("lm", "mlm") else "max_length"
    max_length = _number(given, "data", limit, getattr(DataOptions, limit))
    model = {**shape, **family, "norm_first": True, stack: layers, "max_length": max_length}
    if task == "mlm":
        model["output_transform"] = True
        model["output_bias"] = True
    if task == "label":
        model |= LABEL_HEAD
    if task == "image":
        size = _number(given, "model", "input_size", 64)
        model["input_size"] = size
        model["patch_size"] = _patch_size(size)
    return model


def _patch_size(size: int) -> int:
    """Seven to fifteen patches a side, or more of 16 pixels; without a remainder if possible."""
    for patch in range(min(16, size // 7), size // 16, -1):
        if size % patch == 0:
            return patch
    return min(16, max(1, size // 8))


def _training_for_task(task: str, tables: Tables, given: Mapping[str, Any]) -> Tables:
    steps = _number(given, "training", "steps", tables["training"]["steps"])
    training = {
        "optimizer": "adamw",
        "weight_decay": 0.1,
        "epsilon": 1e-8,
        "clip": 1.0,
        "label_smoothing": 0.0,
        "schedule": "cosine",
        "learning_rate": min(1e-3, 0.256 / tables["model"]["d_model"]),
        "warmup": max(1, min(1000, steps // 10)),
        "select": "loss",
    }
    if task in _CUTS_TEXT:
        training["select"] = "accuracy"
    return training


def _number(given: Mapping[str, Any], section: str, name: str, default: int) -> int:
    """A number that the user named. What is not a number is refused when the options are built."""
    table = given.get(section, {})
    value = table.get(name, default) if isinstance(table, Mapping) else default
    return value if isinstance(value, int) else default
