"""Sequence-level distillation (Kim and Rush 2016): a student's training text, its target side
translated by a teacher.

    python recipes/distil.py models/en-de models/en-de-small --config recipes/student.toml \\
        --minutes 2.9 --workers 3
    dragoman train --resume models/en-de-small

It works on the tokens that the teacher's folder still holds from its own training, so that no text
is cut into pieces twice and the student has the teacher's tokeniser. Small corpora are translated
whole, of the largest as much as the minutes allow; what runs on without an end, or has three times
the length of its source or a third of it, is left out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.config import build, load_toml, merge, to_toml
from dragoman.data.batches import Pairs
from dragoman.decoding.search_options import SearchOptions
from dragoman.folder import layout
from dragoman.folder.description import load_description, save_description
from dragoman.folder.files import write_file
from dragoman.runtimes.load import load
from dragoman.runtimes.runtime import Request, Runtime
from dragoman.text.tokenizer import EOS
from dragoman.training.presets import named
from dragoman.training.training_options import Options

POOL = 65_536  # pairs that are sorted by length together
SIDES = ("source", "target")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("teacher", type=Path)
    parser.add_argument("student", type=Path, help="the folder to make")
    parser.add_argument("--config", type=Path, required=True, help="the student's recipe")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        help="processes; reading results back takes a CPU longer than a GPU",
    )
    given = parser.parse_args()
    began = time.monotonic()
    data = given.teacher / layout.DATA
    out = given.student / layout.DATA
    manifest = json.loads((data / layout.MANIFEST).read_text(encoding="utf-8"))
    (out / layout.TRAIN).mkdir(parents=True)
    shutil.copytree(data / layout.VALID, out / layout.VALID)
    with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:
        parts = list(pool.map(partial(_translate, given, manifest), range(given.workers)))
    pairs, tokens = _join(out / layout.TRAIN, parts)
    if not pairs:
        raise SystemExit(
            "the teacher finished no translation of a likely length; has it been trained?"
        )
    manifest["train"] = [{"files": ["distilled"], "weight": 1.0, "pairs": pairs}]
    write_file(out / layout.MANIFEST, json.dumps(manifest, indent=1).encode())
    about = (
        f"{pairs:,} pairs, their targets translated by the teacher (beam {given.beam}). "
        "The teacher's text:\n\n"
    )
    report = about + (data / layout.REPORT).read_text(encoding="utf-8")
    write_file(out / layout.REPORT, report.encode())
    _describe(given)
    seconds = time.monotonic() - began
    print(
        f"{pairs:,} pairs, {tokens:,} target tokens in {seconds:.0f} s, "
        f"{tokens / seconds:,.0f} tokens/s"
    )


def _translate(given: argparse.Namespace, manifest: dict[str, Any], part: int) -> Path:
    """Every n-th batch of the text, until the minutes are over; the folder with the pairs."""
    began = time.monotonic()
    runtime = load(given.teacher, "auto", "torch").runtime
    pairs = Pairs(given.teacher / layout.DATA / layout.TRAIN, manifest["dtype"])
    written = Writer(given.student / layout.DATA / layout.TRAIN / str(part), manifest["dtype"])
    options = SearchOptions(beam=given.beam, max_extra=20)
    for batch in islice(_batches(pairs, manifest, runtime, given.beam), part, None, given.workers):
        sources = [pairs.row(0, row)[:-1].tolist() for row in batch]
        for source, (best, *_) in zip(
            sources, runtime.search([Request(one) for one in sources], options), strict=True
        ):
            if best.finished and len(source) < 3 * len(best.tokens) + 3 < 9 * len(source) + 12:
                written.add(source, best.tokens)
        if time.monotonic() - began > given.minutes * 60:
            break
    return written.close()


def _describe(given: argparse.Namespace) -> None:
    """The files that make the student's folder one from which training can begin."""
    description, tokenizer = load_description(given.teacher)
    tables = load_toml(given.config)
    pieces = load_toml(given.teacher / layout.OPTIONS)["tokenizer"]  # the student has the teacher's
    tokens = {"tokenizer": {**pieces, "sampling": 0.0}}  # without text nothing can be sampled
    student = build(Options, merge(named(str(tables["preset"])), tables, tokens))
    write_file(given.student / layout.GIVEN, json.dumps(tables).encode())
    write_file(given.student / layout.OPTIONS, to_toml(student).encode())
    shape = replace(
        student.model,
        vocab_size=description.model.vocab_size,
        source_vocab_size=description.model.source_vocab_size,
    )
    save_description(given.student, replace(description, model=shape), tokenizer)


class Writer:
    """Token files as `dragoman train` prepares them."""

    def __init__(self, folder: Path, dtype: str) -> None:
        folder.mkdir()
        self._folder = folder
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._ends = ([0], [0])
        self._files = [open(folder / layout.tokens(side), "wb") for side in SIDES]  # noqa: SIM115

    def add(self, *sides: list[int] | tuple[int, ...]) -> None:
        for file, ends, tokens in zip(self._files, self._ends, sides, strict=True):
            file.write(np.array([*tokens, EOS], self._dtype).tobytes())
            ends.append(ends[-1] + len(tokens) + 1)

    def close(self) -> Path:
        for file, side, ends in zip(self._files, SIDES, self._ends, strict=True):
            file.close()
            np.array(ends, "<i8").tofile(self._folder / layout.offsets(side))
        return self._folder


def _join(out: Path, parts: list[Path]) -> tuple[int, int]:
    """The parts as one; pairs and target tokens."""
    for side in SIDES:
        ends = [np.zeros(1, "<i8")]
        with open(out / layout.tokens(side), "wb") as file:
            for part in parts:
                file.write((part / layout.tokens(side)).read_bytes())
                ends.append(np.fromfile(part / layout.offsets(side), "<i8")[1:] + ends[-1][-1:])
        np.concatenate(ends).tofile(out / layout.offsets(side))
    for part in parts:
        shutil.rmtree(part)
    return len(np.concatenate(ends)) - 1, int(np.concatenate(ends)[-1])


def _batches(
    pairs: Pairs, manifest: dict[str, Any], runtime: Runtime, beam: int
) -> Iterator[np.ndarray]:
    """Row numbers, the smallest corpus first, each in pools of like length, in random order, so
    that any part of them is a fair sample."""
    draw = np.random.default_rng(1)
    starts = np.cumsum([0, *(corpus["pairs"] for corpus in manifest["train"])])
    for place in np.argsort(np.diff(starts)):
        rows = draw.permutation(np.arange(starts[place], starts[place + 1]))
        for pool in np.array_split(rows, max(1, len(rows) // POOL)):
            lengths = pairs.lengths(pool)[0]
            order = np.argsort(-lengths, kind="stable")
            batches = []
            last = 0
            while last < len(pool):
                # Half of what the runtime likes, for smaller plans: six processes took 89 GB of a
                # GPU together.
                count = max(1, runtime.batch_rows(int(lengths[order[last]]) + 1, beam) // 2)
                batches.append(pool[order[last : last + count]])
                last += count
            for number in draw.permutation(len(batches)):
                yield batches[number]


if __name__ == "__main__":
    main()
