"""Token files to batches: filled to a token budget from sentences of like length, shuffled anew
each epoch.

Knows memory-mapped ids and how sentences lie in a batch; knows no text and no model. An epoch is
walked in pools of about a million pairs, so the plan costs the same memory for any corpus, and it
follows from (seed, epoch) alone, so that a run can go on from any step by counting.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.folder import layout

Rows = npt.NDArray[np.int64]
T = TypeVar("T")

BLOCK = 256  # neighbouring pairs that move together into a pool, so that the disk is read in runs
POOL = 2**20  # pairs planned at once
BOS = 2
SHORTEST = 16  # tokens that attention over packed pairs looks at in any case


@dataclass(frozen=True)
class Batch:
    """B pairs in padded rows. `places` are the real target tokens in the flattened (B, T),
    `labels` what should stand there."""

    source: Tensor  # (B, S)
    target: Tensor  # (B, T): the start token and all target tokens but the last
    lengths: Tensor | None  # (B): source tokens a row; None where every row is full
    places: Tensor  # (N)
    labels: Tensor  # (N)

    def to(self, device: torch.device) -> Batch:
        lengths = None if self.lengths is None else _moved(self.lengths, device)
        source, target, places, labels = (
            _moved(tensor, device)
            for tensor in (self.source, self.target, self.places, self.labels)
        )
        return Batch(source, target, lengths, places, labels)


@dataclass(frozen=True)
class PackedBatch:
    """B pairs end to end. What is left of the room behind them is cut into short pairs without
    labels, so that there are few shapes; each is compiled, planned and captured once."""

    longest: int  # tokens of a side of any pair, rounded up to a power of two
    source: Tensor  # (S)
    target: Tensor  # (S): a start token before each pair's target, whose last token is left out
    labels: Tensor  # (S): what should stand at each place of the target; -1 where nothing should
    # (R + 1), int32: where each pair's source begins, and the end of the last; some at the end are
    # empty
    sources: Tensor
    targets: Tensor  # (R + 1), int32

    def tensors(self) -> tuple[Tensor, ...]:
        return self.source, self.target, self.labels, self.sources, self.targets

    def to(self, device: torch.device) -> PackedBatch:
        return PackedBatch(self.longest, *[_moved(tensor, device) for tensor in self.tensors()])


class Examples(Protocol):
    """What is trained on, by number: pairs, or for other tasks blocks of text or images."""

    def __len__(self) -> int: ...

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        """Tokens of each row's source, and of what is to be told from it."""

    def batch(self, rows: Rows) -> Batch: ...


class Pairs:
    """The pairs of one prepared split: ids end to end in memory-mapped files, with offsets."""

    def __init__(self, folder: Path, dtype: str, start: int = BOS) -> None:
        self._start = start
        self._ids = [_map(folder / layout.tokens(side), dtype) for side in ("source", "target")]
        self._offsets = [
            _map(folder / layout.offsets(side), "int64") for side in ("source", "target")
        ]

    def __len__(self) -> int:
        return len(self._offsets[0]) - 1

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        """Tokens of each row's source and target, the end token counted."""
        source, target = (
            np.asarray(offsets[rows + 1] - offsets[rows]) for offsets in self._offsets
        )
        return source, target

    def row(self, side: int, row: int) -> Rows:
        """The tokens of one side of a pair, the end included."""
        return np.asarray(self._ids[side][self._offsets[side][row] : self._offsets[side][row + 1]])

    def batch(self, rows: Rows) -> Batch:
        """The rows side by side, padded with zeros at the end."""
        source, source_lengths = self._padded(0, rows)
        target, target_lengths = self._padded(1, rows)
        shifted = np.empty_like(target)
        shifted[:, 0], shifted[:, 1:] = self._start, target[:, :-1]
        places = np.flatnonzero(np.arange(target.shape[1]) < target_lengths[:, None])
        full = bool((source_lengths == source.shape[1]).all())
        return Batch(
            torch.from_numpy(source),
            torch.from_numpy(shifted),
            None if full else torch.from_numpy(source_lengths),
            torch.from_numpy(places),
            torch.from_numpy(target.ravel()[places]),
        )

    def packed(self, rows: Rows, unit: int, copies: int = 1) -> PackedBatch:
        """The rows end to end, `copies` times, each time in a room of the same whole number of
        units of tokens."""
        lengths = self.lengths(rows)
        most = max(int(side.sum()) for side in lengths)
        room = -(-most // unit) * unit
        longest = max(SHORTEST, 1 << (int(np.maximum(*lengths).max()) - 1).bit_length())
        rest = -(
            -(room - min(int(side.sum()) for side in lengths)) // SHORTEST
        )  # pairs without labels, none longer than that
        slots = max(len(rows) + rest, room // (longest // 4))
        labels, source = (np.full(room, fill, np.int64) for fill in (-1, 0))
        starts = []
        for side, tokens in enumerate((source, labels)):
            ids, offsets = self._ids[side], np.asarray(self._offsets[side][rows])
            ends = np.cumsum(lengths[side])
            count = int(ends[-1])
            tokens[:count] = ids[
                np.repeat(offsets - ends + lengths[side], lengths[side]) + np.arange(count)
            ]
            cuts = np.linspace(count, room, rest + 1).astype(np.int64)[1:]
            starts.append(
                np.concatenate(([0], ends, cuts, np.full(slots - len(rows) - rest, room)))
            )
        target = np.roll(labels.clip(0), 1)
        target[starts[1][: len(rows)]] = self._start
        tiled = [torch.from_numpy(np.tile(tokens, copies)) for tokens in (source, target, labels)]
        shifted = [
            np.concatenate([one[:-1] + room * copy for copy in range(copies)] + [[room * copies]])
            for one in starts
        ]
        return PackedBatch(
            longest, *tiled, *[torch.from_numpy(one.astype(np.int32)) for one in shifted]
        )

    def _padded(self, side: int, rows: Rows) -> tuple[Rows, Rows]:
        offsets, ids = self._offsets[side], self._ids[side]
        starts = np.asarray(offsets[rows])
        lengths = np.asarray(offsets[rows + 1]) - starts
        padded = np.zeros((len(rows), int(lengths.max(initial=1))), dtype=np.int64)
        for row, start, length in zip(padded, starts.tolist(), lengths.tolist(), strict=True):
            row[:length] = ids[start : start + length]
        return padded, lengths


def plan_epoch(
    pairs: Examples,
    corpora: Sequence[tuple[int, float]],
    budget: int,
    seed: int,
    epoch: int,
    packed: bool = False,
) -> Iterator[Rows]:
    """The batches of an epoch as row numbers. `corpora` holds (pairs, weight) of each corpus, in
    file order: weight 2 shows every pair twice an epoch, 0.5 every other one. A batch has at
    most `budget` tokens on either side, padding included unless it is to be packed."""
    random = np.random.default_rng([seed, epoch])
    blocks = _blocks(corpora)
    order = random.permutation(len(blocks))
    for first in range(0, len(order), POOL // BLOCK):
        pool = [blocks[i] for i in order[first : first + POOL // BLOCK]]
        rows = np.concatenate([_drawn(start, end, weight, random) for start, end, weight in pool])
        batches = (cut_packed if packed else cut)(pairs, random.permutation(rows), budget)
        for i in random.permutation(len(batches)):
            yield batches[i]


def plan_once(pairs: Examples, budget: int) -> list[Rows]:
    """Every pair once: what validation walks."""
    return cut(pairs, np.arange(len(pairs)), budget)


def cut(pairs: Examples, rows: Rows, budget: int) -> list[Rows]:
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


def cut_packed(pairs: Examples, rows: Rows, budget: int) -> list[Rows]:
    """The rows in batches of like length, each filled with tokens: packed pairs need not be
    alike on both sides."""
    source, target = pairs.lengths(rows)
    order = np.argsort(np.maximum(source, target), kind="stable")
    sums = np.stack((source[order], target[order])).cumsum(1)
    ends, last, done = [], 0, [0, 0]
    while last < len(rows):
        fit = min(
            int(np.searchsorted(side, before + budget, "right"))
            for side, before in zip(sums, done, strict=True)
        )
        last = max(last + 1, fit)
        done = sums[:, last - 1].tolist()
        ends.append(last)
    return np.split(rows[order], ends[:-1]) if len(rows) else []


def ahead(items: Iterator[T], depth: int = 3) -> Iterator[T]:
    """The same items, made by a thread while the ones before them are in use. It ends when no
    more of them are wanted."""
    made: queue.Queue[T | BaseException] = queue.Queue(depth)
    over = threading.Event()

    def make() -> None:
        try:
            for item in items:
                made.put(item)
                if over.is_set():
                    return
        except BaseException as error:
            made.put(error)

    (thread := threading.Thread(target=make, daemon=True)).start()
    try:
        while True:
            item = made.get()
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        over.set()
        while not made.empty():  # it may be waiting for room
            made.get()
        thread.join(10)  # a thread that is inside of torch when Python ends aborts the process


def _by_length(source: Rows, target: Rows, budget: int) -> Rows:
    """An order in which neighbours are alike on both sides: groups of like target length, each
    walked by source length."""
    by_target = np.argsort(target, kind="stable")
    tokens = np.cumsum(np.maximum(source, target)[by_target])
    # As many groups as there are batches in each, or a few more; of equally many tokens, since long
    # pairs differ the most.
    count = max(1, round(1.5 * (int(tokens[-1]) / budget) ** 0.5))
    groups = np.split(by_target, np.searchsorted(tokens, tokens[-1] / count * np.arange(1, count)))
    # Up and down in turn, so that the batch across the border of two groups is of like length as
    # well.
    walked = [
        group[np.argsort(source[group] * (-1) ** i, kind="stable")]
        for i, group in enumerate(groups)
    ]
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


def _moved(tensor: Tensor, device: torch.device) -> Tensor:
    return (
        tensor.pin_memory().to(device, non_blocking=True)
        if device.type == "cuda"
        else tensor.to(device)
    )


def _map(path: Path, dtype: str) -> npt.NDArray[np.int64]:
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return np.zeros(0, dtype)
    return np.memmap(path, dtype=np.dtype(dtype).newbyteorder("<"), mode="r")
