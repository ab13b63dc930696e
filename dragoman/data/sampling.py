"""Subword regularisation: the training text cut anew for each epoch (Kudo 2018; BPE-dropout, Provilkov et al. 2020).

Knows the prepared folder and the tokeniser; knows no batches. A cutting follows from (seed, epoch) alone.
"""

from __future__ import annotations

import itertools
import zlib
from pathlib import Path

import numpy as np

from dragoman.text.tokenizer import EOS, Side, Tokenizer, TokenizerOptions

CHUNK = 8192  # lines cut by one call


def cut_anew(
    train: Path, out: Path, tokenizer: Tokenizer, options: TokenizerOptions, seed: int, epoch: int, dtype: str, limit: int
) -> None:
    """Writes the pairs of `train`/text.tsv into `out` as `prepare` does, each line cut at random. A line that its cutting makes
    longer than `limit` keeps its usual one."""
    out.mkdir(parents=True, exist_ok=True)
    with open(train / "text.tsv", encoding="utf-8", newline="\n") as text:
        sides: tuple[Side, Side] = ("source", "target")
        tokens = {side: open(out / f"{side}.bin", "wb") for side in sides}  # noqa: SIM115
        offsets: dict[str, list[int]] = {side: [0] for side in sides}
        for number in itertools.count():
            lines = [line.rstrip("\n").split("\t") for line in itertools.islice(text, CHUNK)]
            if not lines:
                break
            for column, side in enumerate(sides):
                chunk_seed = zlib.crc32(f"{seed} {epoch} {number} {side}".encode())
                for row in _sampled([line[column] for line in lines], side, tokenizer, options, chunk_seed, limit):
                    tokens[side].write(np.array(row, dtype).tobytes())
                    offsets[side].append(offsets[side][-1] + len(row))
        for side in sides:
            tokens[side].close()
            np.array(offsets[side], "<i8").tofile(out / f"{side}.idx")


def _sampled(
    lines: list[str], side: Side, tokenizer: Tokenizer, options: TokenizerOptions, seed: int, limit: int
) -> list[list[int]]:
    rows = [[*row, EOS] for row in tokenizer.sample(lines, side, options, seed)]
    for place, row in enumerate(rows):
        if len(row) > limit:
            rows[place] = [*tokenizer.encode_normalised([lines[place]], side)[0], EOS]
    return rows
