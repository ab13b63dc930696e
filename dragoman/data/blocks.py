"""Text of one side as tokens, in blocks of one length, for a model that reads on (lm) or fills in
(mlm). Knows files, the tokeniser and batches; knows no model.

Every line of a file is a text of its own, followed by the end token; blocks run across it. The
blocks of each epoch begin somewhere else, and what is masked in them is drawn again; both follow
from (seed, epoch).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.data.batches import Batch, Draw, Rows
from dragoman.data.check_report import Report
from dragoman.data.corpus import Pair, corpora, read_pairs
from dragoman.data.data_options import DataOptions
from dragoman.errors import InputError
from dragoman.folder import layout
from dragoman.text.normalise import normalise
from dragoman.text.tokenizer import Frame, Tokenizer

# Share of the tokens of a block; 8 in 10 of them become the mask, 1 another token, and 1 stays
# (Devlin et al. 2018).
MASKED = 0.15
_BECOME_MASK = 0.8
_CHANGE = 0.9  # become the mask or another token
_LEARN_FROM = 25_000_000  # bytes
_LINES_AT_ONCE = 4096


class Masking(NamedTuple):
    """The token that masks, and the number of pieces from which another token is drawn."""

    mask: int
    pieces: int


class Blocks:
    """The blocks of a file of tokens, for a model that predicts the next or the masked ones.

    They begin at the start of the file, or where `draw` says, and then run round in a circle.
    """

    def __init__(
        self,
        tokens: NDArray[Any],
        block: int,
        frame: Frame,
        draw: Draw | None,
        masking: Masking | None,
    ) -> None:
        self._tokens = tokens
        self._block = block
        self._frame = frame
        self._draw = draw or Draw(0, 0)
        self._masking = masking
        self._first = 0
        if draw:
            self._first = int(np.random.default_rng([*draw, 1]).integers(len(tokens)))
        # Where tokens are masked the block holds the start token, else that stands before it.
        self._stride = block - 1 if masking else block
        self._labels = max(1, round(MASKED * self._stride)) if masking else block

    def __len__(self) -> int:
        return len(self._tokens) // self._stride

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return the tokens of each block, and of what is to be predicted from it."""
        return np.full(len(rows), self._block), np.full(len(rows), self._labels)

    def batch(self, rows: Rows) -> Batch:
        """Return blocks whose tokens, or whose masked tokens, are to be predicted."""
        within_block = np.arange(self._stride)
        where = self._first + rows[:, None] * self._stride + within_block
        tokens = np.take(self._tokens, where, mode="wrap").astype(np.int64)  # (B, stride)
        if self._masking:
            return self._masked(rows, tokens, self._masking)
        target = _with_start(self._frame.start, tokens[:, :-1])
        labels = torch.from_numpy(tokens.ravel())
        return Batch(
            source=target[:, :0],
            target=target,
            lengths=None,
            positions=torch.arange(len(labels)),
            labels=labels,
        )

    def _masked(
        self,
        rows: Rows,
        tokens: Rows,
        masking: Masking,
    ) -> Batch:
        order, kind, other = self._draws(rows)  # (B, stride) each
        # Equally many in each block, none of them the end of a text.
        is_end = tokens == self._frame.source_end[-1]
        positions = np.argsort(order + is_end, axis=1)[:, : self._labels]
        labels = np.take_along_axis(tokens, positions, 1)
        kind = np.take_along_axis(kind, positions, 1)
        other = np.take_along_axis(other, positions, 1)
        drawn_tokens = (other * masking.pieces).astype(np.int64)
        changed = np.where(kind < _CHANGE, drawn_tokens, labels)
        changed = np.where(kind < _BECOME_MASK, masking.mask, changed)
        np.put_along_axis(tokens, positions, changed, 1)
        source = _with_start(self._frame.source_start[0], tokens)
        first_of_block = np.arange(len(rows))[:, None] * self._block
        flat = first_of_block + 1 + positions
        return Batch(
            source=source,
            target=source[:, :0],
            lengths=None,
            positions=torch.from_numpy(flat.ravel()),
            labels=torch.from_numpy(labels.ravel()),
        )

    def _draws(self, rows: Rows) -> NDArray[np.float64]:
        """Return three random numbers for each token of the blocks, (3, B, stride)."""
        draws = []
        for row in rows.tolist():
            random = np.random.default_rng([*self._draw, 2, row])
            draws.append(random.random((3, self._stride)))
        return np.stack(draws, axis=1)


def map_tokens(file: Path, dtype: str) -> NDArray[Any]:
    """Return the tokens of a file, mapped into memory."""
    if not file.stat().st_size:  # an empty file cannot be mapped
        return np.zeros(0, dtype)
    return np.memmap(file, dtype, "r")


def size_of(files: Sequence[str]) -> int:
    """Return the bytes of text files; a file that is not text raises."""
    size = 0
    for file in files:
        for corpus in corpora([file], lone_source=True):
            size += Path(corpus.files[0]).stat().st_size
    return size


def sample(files: Sequence[str]) -> list[str]:
    """Return lines from which to learn a vocabulary, spread over all the text."""
    every = max(1, size_of(files) // _LEARN_FROM)
    return [normalise(line or "") for _, line in islice(_columns(files), 0, None, every)]


def write_sides(
    folder: Path,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    dtype: str,
) -> None:
    """Write files for `Pairs`, whose target is whatever belongs to the source: the number of its
    label, a number for each of its tokens, or another text."""
    _write_side(folder, "source", sources, dtype)
    _write_side(folder, "target", targets, dtype)


def write_blocks(
    data: DataOptions,
    folder: Path,
    tokenizer: Tokenizer,
    end: int,
    dtype: str,
) -> tuple[int, int]:
    """Write tokens.bin of train/ and valid/, and return how many tokens each has.

    Without validation files the end of the text is set aside.
    """
    train = folder / layout.TRAIN / layout.TOKENS
    valid = folder / layout.VALID / layout.TOKENS
    _write_tokens(train, data.train, tokenizer, end, dtype)
    _write_tokens(valid, data.valid, tokenizer, end, dtype)
    if data.held_out and not data.valid and train.stat().st_size:
        _set_aside(train, valid, data, end, dtype)
    width = np.dtype(dtype).itemsize
    train_count = train.stat().st_size // width
    valid_count = valid.stat().st_size // width
    is_validated = bool(data.valid or data.held_out)
    if train_count < data.block or (valid_count < data.block and is_validated):
        raise InputError(
            f"there are {train_count:,} tokens of text to train on and {valid_count:,} to validate "
            f"with, and a block takes {data.block}; give more text, or shorter blocks by --set "
            "data.block=32"
        )
    return train_count, valid_count


def _write_side(
    folder: Path,
    side: str,
    rows: Sequence[Sequence[int]],
    dtype: str,
) -> None:
    lengths = [len(row) for row in rows]
    np.fromiter(chain.from_iterable(rows), dtype).tofile(folder / layout.tokens(side))
    np.cumsum([0, *lengths], dtype="<i8").tofile(folder / layout.offsets(side))


def _write_tokens(
    out: Path,
    files: Sequence[str],
    tokenizer: Tokenizer,
    end: int,
    dtype: str,
) -> None:
    lines = (line for _, line in _columns(files) if line)
    with out.open("wb") as file:
        while some := list(islice(lines, _LINES_AT_ONCE)):
            rows = [(*row, end) for row in tokenizer.encode(some, "target") if row]
            file.write(np.fromiter(chain.from_iterable(rows), dtype).tobytes())


def _set_aside(
    train: Path,
    valid: Path,
    data: DataOptions,
    end: int,
    dtype: str,
) -> None:
    """Move the end of one file to the other: a twentieth, or a block if that is more.

    Whole lines are moved if there are any.
    """
    tokens = np.memmap(train, dtype, "r")
    size = max(data.block, len(tokens) // 20)
    tail = np.array(tokens[-size:])
    before_last_block = tail[: len(tail) - data.block]
    ends = np.flatnonzero(before_last_block == end)[-data.held_out :]
    if len(ends):
        tail = tail[ends[0] + 1 :]
    tail.tofile(valid)
    os.truncate(train, train.stat().st_size - tail.nbytes)


def _columns(files: Sequence[str]) -> Iterator[Pair]:
    """Yield the two columns of files that have two, and each line twice of those that have one.

    A file that is not text raises.
    """
    for file in files:
        corpus = corpora([file], lone_source=True)[0]
        yield from read_pairs(corpus, "", "", Report().add)


def _with_start(start: int, tokens: Rows) -> torch.Tensor:
    """Put the start token before each row."""
    return torch.from_numpy(np.pad(tokens, ((0, 0), (1, 0)), constant_values=start))
