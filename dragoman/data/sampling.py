"""Subword regularisation: the training text cut anew for each epoch (Kudo 2018; BPE-dropout, Provilkov et al. 2020).

Knows the prepared folder and the tokeniser; knows no batches. A cutting follows from (seed, epoch) alone.
"""

from __future__ import annotations

import itertools
import shutil
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
    shutil.rmtree(out, ignore_errors=True)  # new files, since the old ones may still be mapped
    out.mkdir(parents=True)
    sides: tuple[Side, Side] = ("source", "target")
    for column, side in enumerate(sides):
        with (
            open(train / "text.tsv", encoding="utf-8", newline="\n") as text,
            open(out / f"{side}.bin", "wb") as tokens,
            open(out / f"{side}.idx", "wb") as offsets,
        ):
            end = np.zeros(1, "<i8")
            offsets.write(end.tobytes())
            lines = (line.rstrip("\n").split("\t")[column] for line in text)
            for number in itertools.count():
                chunk = list(itertools.islice(lines, CHUNK))
                if not chunk:
                    break
                chunk_seed = zlib.crc32(f"{seed} {epoch} {number} {side}".encode())
                rows = _sampled(chunk, side, tokenizer, options, chunk_seed, limit)
                ends = end[-1] + np.cumsum([len(row) for row in rows])
                tokens.write(np.fromiter(itertools.chain.from_iterable(rows), dtype).tobytes())
                offsets.write(ends.astype("<i8").tobytes())
                end = ends


def _sampled(
    lines: list[str], side: Side, tokenizer: Tokenizer, options: TokenizerOptions, seed: int, limit: int
) -> list[list[int]]:
    rows = [[*row, EOS] for row in tokenizer.sample(lines, side, options, seed)]
    for place, row in enumerate(rows):
        if len(row) > limit:
            rows[place] = [*tokenizer.encode_normalised([lines[place]], side)[0], EOS]
    return rows
