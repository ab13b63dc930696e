"""Presets: what a name stands for, and what `auto` picks from the amount of text and the device."""

from __future__ import annotations

import bisect
from typing import Any

from dragoman.model.families import SHAPES

Tables = dict[str, Any]

# §5.1-5.4 and §6.1 for base and big: a checkpoint each ten minutes, at 0.4 and 1.0 seconds a step.
_TRAINING: dict[str, Tables] = {
    "tiny": {"steps": 3_000, "batch_tokens": 4096, "warmup": 1000, "save_every": 250},
    "small": {"steps": 20_000, "batch_tokens": 8192, "warmup": 4000, "save_every": 500},
    "base": {"steps": 100_000, "batch_tokens": 25_000, "warmup": 4000, "save_every": 1500, "average": 5},
    "big": {"steps": 300_000, "batch_tokens": 25_000, "warmup": 4000, "save_every": 600, "average": 20},
}
# 37,000 is the paper's for English-German.
_VOCABULARY = {"tiny": 4_000, "small": 8_000, "base": 37_000, "big": 37_000}


def named(name: str) -> Tables:
    """The tables that a preset's name stands for."""
    return {
        "preset": name,
        "tokenizer": {"kind": "bpe", "vocab_size": _VOCABULARY[name]},
        "model": dict(SHAPES[name]),
        "training": dict(_TRAINING[name]),
    }


def automatic(pairs: int, on_gpu: bool) -> tuple[Tables, str]:
    """What `auto` picks, and why in one sentence. Pairs alone decide how much a model can hold and how much noise it needs
    against learning the text by heart; the device decides how large a model can be trained in a day."""
    amount = bisect.bisect([10_000, 50_000, 200_000, 1_000_000], pairs)
    vocabulary = (2_000, 4_000, 8_000, 16_000, 32_000)[amount]
    dropout = (0.3, 0.3, 0.2, 0.1, 0.1)[amount]
    # Fewer passes over more text, yet never fewer tokens in all.
    epochs = min(60.0, max(8.0, 60 * (pairs / 10_000) ** -0.4))
    shape = (("tiny", "small", "small", "base", "base") if on_gpu else ("tiny", "tiny", "small", "small", "small"))[amount]
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
