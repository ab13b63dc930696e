"""Speech that tests make themselves: a word is a tone, a sentence some tones with silence between,
and a file of them a .wav of 16-bit samples."""

from __future__ import annotations

import random
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy

RATE = 16_000
HERTZ = {"low": 300, "mid": 700, "high": 1500, "top": 3000}
WINDOW = 40  # positions: 0.8 seconds
SHAPE = {
    "d_model": 32,
    "d_ff": 64,
    "n_heads": 2,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "dropout": 0.0,
    "source_length": WINDOW,
    "max_length": 16,
}


def tones(words: Sequence[str], loudness: float = 0.3) -> numpy.ndarray:
    """0.2 seconds for each word, of which 0.15 are a tone."""
    moments = numpy.arange(int(0.15 * RATE)) / RATE
    silence = numpy.zeros(int(0.05 * RATE))
    parts = []
    for word in words:
        parts += [loudness * numpy.sin(2 * numpy.pi * HERTZ[word] * moments), silence]
    return numpy.concatenate(parts)


def write_wav(file: Path, samples: numpy.ndarray, rate: int = RATE) -> Path:
    with wave.open(str(file), "wb") as out:
        out.setparams((1, 2, rate, 0, "NONE", ""))
        out.writeframes((samples * 32768).round().clip(-32768, 32767).astype("<i2").tobytes())
    return file


def write_recordings(folder: Path, name: str, count: int, seed: int = 1) -> str:
    """A list of recordings of one to three words, drawn by lot; its file."""
    draw = random.Random(seed)
    (folder / name).mkdir()
    rows = []
    for number in range(count):
        words = [draw.choice(list(HERTZ)) for _ in range(draw.randint(1, 3))]
        write_wav(folder / name / f"{number}.wav", tones(words, draw.uniform(0.1, 0.6)))
        rows.append(f"{name}/{number}.wav\t{' '.join(words)}\n")
    (folder / f"{name}.tsv").write_text("".join(rows), encoding="utf-8")
    return str(folder / f"{name}.tsv")


def tables(*files: str, **training: Any) -> dict[str, Any]:
    """Options of a model that trains in seconds, for `run.start`."""
    settings = {"learning_rate": 5e-3, "device": "cpu", "precision": "float32", "log_every": 1}
    return {
        "task": "speech",
        "preset": "tiny",
        "data": {"train": list(files)},
        "tokenizer": {"vocab_size": 280},
        "model": dict(SHAPE),
        "training": {**settings, "batch_tokens": 16 * WINDOW, **training},
    }
