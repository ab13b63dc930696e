"""Token files to batches of tensors, in padded rows or packed end to end.

Knows memory-mapped ids and how sentences lie in a batch; knows no text, no model, and not which
pairs go together (see `batch_plan`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.folder import layout
from dragoman.text.tokenizer import BOS

Rows = npt.NDArray[np.int64]

SHORTEST = 16  # tokens that attention over packed pairs looks at in any case
_SIDES = ("source", "target")
_PADDING = 0
_NO_LABEL = -1


class Draw(NamedTuple):
    """What everything random in an epoch follows from."""

    seed: int
    epoch: int


@dataclass(frozen=True)
class Batch:
    """B pairs in padded rows.

    `positions` are those of the real target tokens in the flattened (B, T), and `labels` are
    the tokens to be predicted there.
    """

    source: Tensor  # (B, S)
    target: Tensor  # (B, T): the start token and all target tokens but the last
    lengths: Tensor | None  # (B): source tokens of each row; None if every row is full
    positions: Tensor  # (N)
    labels: Tensor  # (N)

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device."""
        return Batch(
            source=_moved(self.source, device),
            target=_moved(self.target, device),
            lengths=None if self.lengths is None else _moved(self.lengths, device),
            positions=_moved(self.positions, device),
            labels=_moved(self.labels, device),
        )


@dataclass(frozen=True)
class PackedBatch:
    """B pairs end to end, in a fixed number of tokens.

    The tokens that are left behind them are filled with short pairs without labels, so that there
    are few shapes; each is compiled, planned and captured once.
    """

    longest: int  # tokens of a side of any pair, rounded up to a power of two
    source: Tensor  # (S)
    target: Tensor  # (S): a start token before each pair's target, whose last token is left out
    labels: Tensor  # (S): what to predict at each position of the target; -1 for nothing
    # (R + 1), int32: where each pair's source begins, and the end of the last; some at the end are
    # empty.
    sources: Tensor
    targets: Tensor  # (R + 1), int32

    def tensors(self) -> tuple[Tensor, ...]:
        """Return the tensors in the order of the fields."""
        return self.source, self.target, self.labels, self.sources, self.targets

    def to(self, device: torch.device) -> PackedBatch:
        """Return the batch on a device."""
        return PackedBatch(self.longest, *[_moved(tensor, device) for tensor in self.tensors()])


class Examples(Protocol):
    """What is trained on, by number: pairs, or for other tasks blocks of text or images."""

    def __len__(self) -> int: ...

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return the tokens of each row's source, and of what is to be predicted from it."""

    def batch(self, rows: Rows) -> Batch:
        """Return the rows as tensors."""


class Pairs:
    """The pairs of one prepared split: ids end to end in memory-mapped files, with offsets."""

    def __init__(
        self,
        folder: Path,
        dtype: str,
        start: int = BOS,
    ) -> None:
        self._start = start
        self._ids = [_map(folder / layout.tokens(side), dtype) for side in _SIDES]
        self._offsets = [_map(folder / layout.offsets(side), "int64") for side in _SIDES]

    def __len__(self) -> int:
        return len(self._offsets[0]) - 1

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return the tokens of each row's source and target, the end token counted."""
        return self._lengths(0, rows), self._lengths(1, rows)

    def row(self, side: int, row: int) -> Rows:
        """Return the tokens of one side of a pair, the end included."""
        offsets = self._offsets[side]
        return np.asarray(self._ids[side][offsets[row] : offsets[row + 1]])

    def batch(self, rows: Rows) -> Batch:
        """Return the rows side by side, padded with zeros at the end."""
        source, source_lengths = self._padded(0, rows)
        target, target_lengths = self._padded(1, rows)
        shifted = np.empty_like(target)
        shifted[:, 0] = self._start
        shifted[:, 1:] = target[:, :-1]
        every = np.arange(target.shape[1])
        is_real = every < target_lengths[:, None]
        positions = np.flatnonzero(is_real)
        is_full = source_lengths == source.shape[1]
        all_full = bool(is_full.all())
        return Batch(
            source=torch.from_numpy(source),
            target=torch.from_numpy(shifted),
            lengths=None if all_full else torch.from_numpy(source_lengths),
            positions=torch.from_numpy(positions),
            labels=torch.from_numpy(target.ravel()[positions]),
        )

    def packed(
        self,
        rows: Rows,
        unit: int,
        copies: int = 1,
    ) -> PackedBatch:
        """Return the rows end to end, `copies` times.

        Each copy takes the same number of tokens, a multiple of `unit`.
        """
        packing = _packing(self.lengths(rows), unit)
        source, source_starts = self._end_to_end(0, rows, packing)
        labels, target_starts = self._end_to_end(1, rows, packing)
        target = np.roll(labels.clip(0), 1)
        target[target_starts[: len(rows)]] = self._start
        return PackedBatch(
            longest=packing.longest,
            source=torch.from_numpy(np.tile(source, copies)),
            target=torch.from_numpy(np.tile(target, copies)),
            labels=torch.from_numpy(np.tile(labels, copies)),
            sources=_repeated(source_starts, packing.capacity, copies),
            targets=_repeated(target_starts, packing.capacity, copies),
        )

    def _lengths(self, side: int, rows: Rows) -> Rows:
        offsets = self._offsets[side]
        return np.asarray(offsets[rows + 1] - offsets[rows])

    def _padded(self, side: int, rows: Rows) -> tuple[Rows, Rows]:
        ids = self._ids[side]
        starts = np.asarray(self._offsets[side][rows])
        lengths = self._lengths(side, rows)
        longest = int(lengths.max(initial=1))
        padded = np.full((len(rows), longest), _PADDING, dtype=np.int64)
        for row, start, length in zip(padded, starts.tolist(), lengths.tolist(), strict=True):
            row[:length] = ids[start : start + length]
        return padded, lengths

    def _end_to_end(
        self,
        side: int,
        rows: Rows,
        packing: _Packing,
    ) -> tuple[Rows, Rows]:
        """Return one side's tokens, and where each pair begins, with the end of the last."""
        lengths = packing.lengths[side]
        ends = np.cumsum(lengths)
        count = int(ends[-1])
        offsets = np.asarray(self._offsets[side][rows])
        # From where a token lies in the batch to where it lies in the file.
        shifts = np.repeat(offsets - ends + lengths, lengths)
        lies_at = shifts + np.arange(count)
        capacity = packing.capacity
        behind = _NO_LABEL if side else _PADDING
        tokens = np.full(capacity, behind, np.int64)
        tokens[:count] = self._ids[side][lies_at]
        fillers = np.linspace(count, capacity, packing.fillers + 1)
        fillers = fillers.astype(np.int64)
        n_empty = packing.slots - len(rows) - packing.fillers
        empty = np.full(n_empty, capacity)
        return tokens, np.concatenate(([0], ends, fillers[1:], empty))


@dataclass(frozen=True)
class _Packing:
    """How packed rows lie: for how many tokens and pairs there is space."""

    lengths: tuple[Rows, Rows]
    capacity: int  # tokens of a side
    longest: int
    fillers: int  # pairs without labels behind the rows, none longer than SHORTEST
    slots: int  # pairs in all; some at the end are empty


def _packing(lengths: tuple[Rows, Rows], unit: int) -> _Packing:
    source, target = lengths
    totals = (int(source.sum()), int(target.sum()))
    capacity = _divide_up(max(totals), unit) * unit
    longest = int(np.maximum(source, target).max())
    longest = max(SHORTEST, 1 << (longest - 1).bit_length())
    fillers = _divide_up(capacity - min(totals), SHORTEST)
    usual_length = longest // 4
    return _Packing(
        lengths=lengths,
        capacity=capacity,
        longest=longest,
        fillers=fillers,
        slots=max(len(source) + fillers, capacity // usual_length),
    )


def _divide_up(number: int, divisor: int) -> int:
    return -(-number // divisor)


def _repeated(
    starts: Rows,
    capacity: int,
    copies: int,
) -> Tensor:
    """Return where the pairs of all copies begin, and the end of the last."""
    shifted = [starts[:-1] + capacity * copy for copy in range(copies)]
    repeated = np.concatenate([*shifted, [capacity * copies]])
    return torch.from_numpy(repeated.astype(np.int32))


def _moved(tensor: Tensor, device: torch.device) -> Tensor:
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def _map(path: Path, dtype: str) -> npt.NDArray[np.int64]:
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return np.zeros(0, dtype)
    return np.memmap(path, dtype=np.dtype(dtype).newbyteorder("<"), mode="r")
