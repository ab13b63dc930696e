"""A short training on corrections and on older text beside them. Knows pairs and the trainer by
`run.start`; has no loop of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.config import merge
from dragoman.folder.description import load_description
from dragoman.improving.gather_text import write_pairs
from dragoman.improving.improve_training import AS_IT_IS, StoppedError, unheard
from dragoman.improving.learn_options import LearnOptions
from dragoman.training import run

Pair = tuple[str, str]
TUNED = "tuned"
_WARMUP = 0.1  # of the steps
_FEWEST_STEPS = 10
# Nothing is dropped at random, so that at first only what is new moves the weights.
_ANCHORED = {"model": {"dropout": 0.0}, "training": {"anchor": True, "label_smoothing": 0.05}}


@dataclass(frozen=True)
class Tuning:
    """What is learnt, and how long that may take."""

    corrections: Sequence[Pair]
    replay: Sequence[Pair]
    held_back: Sequence[Pair]
    languages: tuple[str, str]
    seconds: float


def tune(model: Path, work: Path, tuning: Tuning, options: LearnOptions) -> Path:
    """Train a copy of the model, in a folder of `work` that is returned."""
    texts = {"corrections": tuning.corrections, "replay": tuning.replay}
    files = []
    for name, pairs in texts.items():
        if pairs:
            path = work / f"{name}.tsv"
            write_pairs(path, list(pairs))
            files.append(str(path))
    held_back = work / "held-back.tsv"
    write_pairs(held_back, list(tuning.held_back))
    folder = work / TUNED
    tables = _tables(files, held_back, tuning, options, _steps(model, tuning, options))
    if options.anchor:
        tables = merge(tables, _ANCHORED)
    reason = run.start(folder, tables, unheard, model)
    if reason.startswith("SIG"):
        raise StoppedError(reason)
    return folder


def _steps(model: Path, tuning: Tuning, options: LearnOptions) -> int:
    """As many as it takes to see every pair so many times."""
    _, tokenizer = load_description(model)
    texts = [target for _, target in [*tuning.corrections, *tuning.replay]]
    tokens = sum(len(line) + 1 for line in tokenizer.encode(texts, "target"))
    return max(_FEWEST_STEPS, round(options.passes * tokens / options.batch_tokens))


def _tables(
    texts: list[str], held_back: Path, tuning: Tuning, options: LearnOptions, steps: int
) -> dict[str, Any]:
    return {
        "data": {
            **AS_IT_IS,
            "train": texts,
            "valid": [str(held_back)],
            "source_language": tuning.languages[0],
            "target_language": tuning.languages[1],
        },
        "training": {
            "steps": steps,
            "minutes": tuning.seconds / 60,
            "schedule": "cosine",
            "learning_rate": options.learning_rate,
            "warmup": max(1, round(_WARMUP * steps)),
            "batch_tokens": options.batch_tokens,
            "clip": 1.0,
            "average": 1,
            "select": "loss",
            "valid_sentences": 0,
            "patience": 0,
            "save_every": steps,
            "device": options.device,
            "seed": options.seed,
        },
    }
