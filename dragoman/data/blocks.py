"""Text of one side as tokens: in blocks of one length, for a model that reads on (lm) or fills in
(mlm), or each text with a label (class). Knows files, the tokeniser and batches; knows no model.

Every line of a file is a text of its own, with the end token behind it; blocks go on over it. Those
of an epoch begin somewhere else than those of the one before, and what is masked in each is drawn
anew; both follow from (seed, epoch).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np
import torch

from dragoman.data.batches import Batch, Rows
from dragoman.data.check_report import Report
from dragoman.data.corpus import Pair, corpora, read_pairs
from dragoman.data.data_options import DataOptions
from dragoman.errors import InputError
from dragoman.folder import layout
from dragoman.text.normalise import normalise
from dragoman.text.tokenizer import Frame, Tokenizer

# of the tokens of a block; of these, 8 in 10 become the mask, 1 another token, and 1 stays (Devlin
# et al. 2018)
MASKED = 0.15
_LEARN_FROM = 25_000_000  # bytes


class Blocks:
    """The blocks of a file of tokens, round in a circle from a place that is drawn, or from its
    start; some tokens masked where there are `masks`: the mask, and how many pieces there are."""

    def __init__(
        self,
        file: Path,
        dtype: str,
        block: int,
        frame: Frame,
        draw: tuple[int, int] | None,
        masks: tuple[int, int] | None,
    ) -> None:
        self._tokens = np.memmap(file, dtype, "r") if file.stat().st_size else np.zeros(0, dtype)
        self._first = (
            int(np.random.default_rng([*draw, 1]).integers(len(self._tokens))) if draw else 0
        )
        self._block, self._frame, self._draw, self._masks = block, frame, draw or (0, 0), masks
        self._stride = block - (
            masks is not None
        )  # what is masked has the start token in the block, else it stands before it
        self._count = max(1, round(MASKED * self._stride)) if masks else block

    def __len__(self) -> int:
        return len(self._tokens) // self._stride

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        return np.full(len(rows), self._block), np.full(len(rows), self._count)

    def batch(self, rows: Rows) -> Batch:
        """Every token is to be told from those before it; or the masked ones, from all the others."""
        where = self._first + rows[:, None] * self._stride + np.arange(self._stride)
        tokens = np.take(self._tokens, where, mode="wrap").astype(np.int64)  # (B, stride)
        if self._masks:
            return self._masked(rows, tokens, *self._masks)
        target, labels = _led(self._frame.start, tokens[:, :-1]), torch.from_numpy(tokens.ravel())
        return Batch(target[:, :0], target, None, torch.arange(len(labels)), labels)

    def _masked(self, rows: Rows, tokens: Rows, mask: int, pieces: int) -> Batch:
        draws = np.stack(
            [
                np.random.default_rng([*self._draw, 2, row]).random((3, self._stride))
                for row in rows.tolist()
            ]
        )
        # Equally many in each block, none of them the end of a text.
        places = np.argsort(draws[:, 0] + (tokens == self._frame.source_end[-1]), axis=1)[
            :, : self._count
        ]
        labels, kind, other = (
            np.take_along_axis(one, places, 1) for one in (tokens, draws[:, 1], draws[:, 2])
        )
        changed = np.where(
            kind < 0.8, mask, np.where(kind < 0.9, (other * pieces).astype(np.int64), labels)
        )
        np.put_along_axis(tokens, places, changed, 1)
        source = _led(self._frame.source_start[0], tokens)
        flat = np.arange(len(rows))[:, None] * self._block + 1 + places
        return Batch(
            source,
            source[:, :0],
            None,
            torch.from_numpy(flat.ravel()),
            torch.from_numpy(labels.ravel()),
        )


def size_of(files: Sequence[str]) -> int:
    """Bytes of files of text; what is none raises."""
    return sum(
        Path(corpus.files[0]).stat().st_size
        for file in files
        for corpus in corpora([file], lone_source=True)
    )


def sample(files: Sequence[str]) -> list[str]:
    """Lines from which a vocabulary is learnt, spread over all the text."""
    return [
        normalise(line or "")
        for _, line in islice(_columns(files), 0, None, max(1, size_of(files) // _LEARN_FROM))
    ]


def read_labelled(files: Sequence[str]) -> list[tuple[str, str]]:
    """Label and text of each "label<TAB>text" line; those with an empty side are left out."""
    for file in files:
        if corpora([file], lone_source=True)[0].kind != ".tsv":
            raise InputError(f"{file} is no .tsv file; write label, tab, text on each line of one")
    found = ((normalise(label or ""), normalise(text or "")) for label, text in _columns(files))
    return [pair for pair in found if all(pair)]


def write_labelled(folder: Path, texts: list[list[int]], labels: list[int], dtype: str) -> None:
    """Files for `Pairs`: source a text, target its label's number."""
    for side, rows in (("source", texts), ("target", [[label] for label in labels])):
        np.fromiter(chain.from_iterable(rows), dtype).tofile(folder / layout.tokens(side))
        np.cumsum([0, *map(len, rows)], dtype="<i8").tofile(folder / layout.offsets(side))


def write_blocks(
    data: DataOptions, folder: Path, tokenizer: Tokenizer, end: int, dtype: str
) -> tuple[int, int]:
    """tokens.bin of train/ and valid/; how many tokens each has. Without valid files the end of
    the text is set aside."""
    places = train, valid = [folder / part / layout.TOKENS for part in (layout.TRAIN, layout.VALID)]
    for out, files in zip(places, (data.train, data.valid), strict=True):
        lines = (line for _, line in _columns(files) if line)
        with out.open("wb") as file:
            while some := list(islice(lines, 4096)):
                rows = [(*row, end) for row in tokenizer.encode(some, "target") if row]
                file.write(np.fromiter(chain.from_iterable(rows), dtype).tobytes())
    if data.held_out and not data.valid and train.stat().st_size:
        _set_aside(train, valid, data, end, dtype)
    counts = [file.stat().st_size // np.dtype(dtype).itemsize for file in places]
    if counts[0] < data.block or (counts[1] < data.block and (data.valid or data.held_out)):
        raise InputError(
            f"there are {counts[0]:,} tokens of text to train on and {counts[1]:,} to validate with, and a block takes "
            f"{data.block}; give more text, or shorter blocks by --set data.block=32"
        )
    return counts[0], counts[1]


def _set_aside(train: Path, valid: Path, data: DataOptions, end: int, dtype: str) -> None:
    """Moves a twentieth, or a block if that is more, from the end of one file to the other;
    whole lines where they allow it."""
    tokens = np.memmap(train, dtype, "r")
    tail = np.array(tokens[-max(data.block, len(tokens) // 20) :])
    ends = np.flatnonzero(tail[: len(tail) - data.block] == end)[-data.held_out :]
    tail = tail[ends[0] + 1 :] if len(ends) else tail
    tail.tofile(valid)
    os.truncate(train, train.stat().st_size - tail.nbytes)


def _columns(files: Sequence[str]) -> Iterator[Pair]:
    """The two columns of files that have two; each line twice of those that have one. What is no
    text raises."""
    for file in files:
        yield from read_pairs(corpora([file], lone_source=True)[0], "", "", Report().add)


def _led(start: int, tokens: Rows) -> torch.Tensor:
    return torch.from_numpy(np.pad(tokens, ((0, 0), (1, 0)), constant_values=start))
