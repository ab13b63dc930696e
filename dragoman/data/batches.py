"""Token files to batches: filled to a token budget from sentences of like length, shuffled anew each epoch.

Knows memory-mapped ids and how sentences lie in a batch; knows no text and no model. An epoch is walked in pools of about a
million pairs, so the plan costs the same memory for any corpus, and it follows from (seed, epoch) alone, so that a run can go
on from any step by counting.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Rows = npt.NDArray[np.int64]

BLOCK = 256  # neighbouring pairs that move together into a pool, so that the disk is read in runs
POOL = 2**20  # pairs planned at once
BOS = 2


@dataclass(frozen=True)
class Batch:
    """B pairs in padded rows. `places` are the real target tokens in the flattened (B, T), `labels` what should stand there."""

    source: Tensor  # (B, S)
    target: Tensor  # (B, T): the start token and all target tokens but the last
    lengths: Tensor | None  # (B): source tokens a row; None where every row is full
    places: Tensor  # (N)
    labels: Tensor  # (N)

    def to(self, device: torch.device) -> Batch:
        if device.type == "cpu":
            return self

        def move(tensor: Tensor) -> Tensor:
            return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)

        lengths = None if self.lengths is None else move(self.lengths)
        return Batch(move(self.source), move(self.target), lengths, move(self.places), move(self.labels))


class Pairs:
    """The pairs of one prepared split: ids end to end in memory-mapped files, with offsets."""

    def __init__(self, folder: Path, dtype: str) -> None:
        self._ids = [_map(folder / f"{side}.bin", dtype) for side in ("source", "target")]
        self._offsets = [_map(folder / f"{side}.idx", "int64") for side in ("source", "target")]

    def __len__(self) -> int:
        return len(self._offsets[0]) - 1

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        """Tokens of each row's source and target, the end token counted."""
        source, target = (np.asarray(offsets[rows + 1] - offsets[rows]) for offsets in self._offsets)
        return source, target

    def batch(self, rows: Rows, multiple: int = 1) -> Batch:
        """The rows side by side, padded with zeros at the end to a width that is a multiple of `multiple`."""
        source, source_lengths = self._padded(0, rows, multiple)
        target, target_lengths = self._padded(1, rows, multiple)
        shifted = np.empty_like(target)
        shifted[:, 0], shifted[:, 1:] = BOS, target[:, :-1]
        places = np.flatnonzero(np.arange(target.shape[1]) < target_lengths[:, None])
        full = multiple == 1 and bool((source_lengths == source.shape[1]).all())
        return Batch(
            torch.from_numpy(source),
            torch.from_numpy(shifted),
            None if full else torch.from_numpy(source_lengths),
            torch.from_numpy(places),
            torch.from_numpy(target.ravel()[places]),
        )

    def _padded(self, side: int, rows: Rows, multiple: int) -> tuple[Rows, Rows]:
        offsets, ids = self._offsets[side], self._ids[side]
        starts = np.asarray(offsets[rows])
        lengths = np.asarray(offsets[rows + 1]) - starts
        width = -(-int(lengths.max(initial=1)) // multiple) * multiple
        padded = np.zeros((len(rows), width), dtype=np.int64)
        for row, start, length in zip(padded, starts.tolist(), lengths.tolist(), strict=True):
            row[:length] = ids[start : start + length]
        return padded, lengths


def plan_epoch(pairs: Pairs, corpora: Sequence[tuple[int, float]], budget: int, seed: int, epoch: int) -> Iterator[Rows]:
    """The batches of an epoch as row numbers. `corpora` holds (pairs, weight) of each corpus, in file order: weight 2 shows
    every pair twice an epoch, 0.5 every other one. A batch has at most `budget` tokens, padding included, on either side."""
    random = np.random.default_rng([seed, epoch])
    blocks = _blocks(corpora)
    order = random.permutation(len(blocks))
    for first in range(0, len(order), POOL // BLOCK):
        pool = [blocks[i] for i in order[first : first + POOL // BLOCK]]
        rows = np.concatenate([_drawn(start, end, weight, random) for start, end, weight in pool])
        batches = cut(pairs, random.permutation(rows), budget)
        for i in random.permutation(len(batches)):
            yield batches[i]


def plan_once(pairs: Pairs, budget: int) -> list[Rows]:
    """Every pair once: what validation walks."""
    return cut(pairs, np.arange(len(pairs)), budget)


def cut(pairs: Pairs, rows: Rows, budget: int) -> list[Rows]:
    """The rows in batches of like length on both sides."""
    if not len(rows):
        return []
    source, target = pairs.lengths(rows)
    order = _by_length(source, target, budget)
    sides = zip(source[order].tolist(), target[order].tolist(), strict=True)
    ends, longest, count = [], 0, 0
    for place, lengths in enumerate(sides):
        longest, count = max(longest, *lengths), count + 1
        if count > 1 and longest * count > budget:
            ends.append(place)
            longest, count = max(lengths), 1
    return np.split(rows[order], ends)


def _by_length(source: Rows, target: Rows, budget: int) -> Rows:
    """An order in which neighbours are alike on both sides: groups of like target length, each walked by source length."""
    by_target = np.argsort(target, kind="stable")
    tokens = np.cumsum(np.maximum(source, target)[by_target])
    # As many groups as there are batches in each, or a few more; of equally many tokens, since long pairs differ the most.
    count = max(1, round(1.5 * (int(tokens[-1]) / budget) ** 0.5))
    groups = np.split(by_target, np.searchsorted(tokens, tokens[-1] / count * np.arange(1, count)))
    # Up and down in turn, so that the batch across the border of two groups is of like length as well.
    walked = [group[np.argsort(source[group] * (-1) ** i, kind="stable")] for i, group in enumerate(groups)]
    return np.concatenate(walked)


def _blocks(corpora: Sequence[tuple[int, float]]) -> list[tuple[int, int, float]]:
    """(first row, row after the last, weight) of each block."""
    blocks, start = [], 0
    for count, weight in corpora:
        edges = [*range(start, start + count, BLOCK), start + count]
        blocks += [(first, last, weight) for first, last in itertools.pairwise(edges) if weight > 0]
        start += count
    return blocks


def _drawn(first: int, last: int, weight: float, random: np.random.Generator) -> Rows:
    """A block's rows as often as the weight says; its fraction is drawn."""
    rows = np.arange(first, last)
    extra = rows[random.random(len(rows)) < weight % 1] if weight % 1 else rows[:0]
    return np.concatenate([*[rows] * int(weight), extra])


def _map(path: Path, dtype: str) -> npt.NDArray[np.int64]:
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return np.zeros(0, dtype)
    return np.memmap(path, dtype=np.dtype(dtype).newbyteorder("<"), mode="r")
