"""The text of one epoch: other pieces of the same words, and pairs as people also write them.

Subword regularisation is that of Kudo (2018) and of Provilkov et al. (2020), BPE-dropout; for the
changed pairs see augment.py. Knows the prepared folder and the tokeniser; knows no batches and no
processes. What an epoch holds follows from (seed, epoch) alone, however many shares it is written
in.
"""

from __future__ import annotations

import base64
import itertools
import random
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.data.augment import Augmenter, AugmentOptions, Pair
from dragoman.data.tokenise import Words
from dragoman.folder import layout
from dragoman.text.tokenizer import EOS, Side, Tokenizer, TokenizerOptions

CHUNK = 8192  # pairs written at once
_SIDES: tuple[Side, Side] = ("source", "target")
_BUFFER = 1 << 24


@dataclass(frozen=True)
class EpochText:
    """The training text that is written anew for each epoch, and how."""

    train: Path  # the folder of text.tsv
    tokenizer: Tokenizer
    options: TokenizerOptions
    seed: int
    dtype: str
    limit: int  # tokens; a line that would become longer keeps its usual pieces
    augment: AugmentOptions | None = None
    languages: tuple[str, str] = ("", "")

    @property
    def pairs(self) -> int:
        """How many pairs the text has."""
        with (self.train / layout.TEXT).open("rb") as file:
            return sum(1 for _ in file)

    def to_json(self) -> dict[str, object]:
        """Return plain values for another process."""
        models = [model for model in self.tokenizer.serialised() if model]
        return {
            "train": str(self.train),
            "models": [base64.b64encode(model).decode() for model in models],
            "kind": self.options.kind,
            "sampling": self.options.sampling,
            "seed": self.seed,
            "dtype": self.dtype,
            "limit": self.limit,
            "augment": None if self.augment is None else asdict(self.augment),
            "languages": self.languages,
        }

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> EpochText:
        """Return what `to_json` wrote."""
        models = [base64.b64decode(model) for model in given["models"]]
        augment = given["augment"]
        source, target = given["languages"]
        return cls(
            train=Path(given["train"]),
            tokenizer=Tokenizer(*models),
            options=TokenizerOptions(kind=given["kind"], sampling=given["sampling"]),
            seed=given["seed"],
            dtype=given["dtype"],
            limit=given["limit"],
            augment=None if augment is None else AugmentOptions(**augment),
            languages=(source, target),
        )


@dataclass(frozen=True)
class Share:
    """The part of a text that one process writes: number `index` of `count` parts in a row."""

    index: int = 0
    count: int = 1

    def of(self, chunks: int) -> range:
        """Return the chunks of this part, out of so many."""
        return range(
            self.index * chunks // self.count,
            (self.index + 1) * chunks // self.count,
        )

    def folder(self, out: Path) -> Path:
        """Return where this part is written; the first one where the whole is."""
        return out if self.index == 0 else out.with_name(f"{out.name}.{self.index}")


WHOLE = Share()


def write_epoch(
    text: EpochText,
    epoch: int,
    out: Path,
    share: Share = WHOLE,
) -> None:
    """Write a share of the pairs of text.tsv as `prepare` does, as this epoch shows them."""
    folder = share.folder(out)
    if folder.exists():
        shutil.rmtree(folder)  # new files, since the old ones may still be mapped
    folder.mkdir(parents=True)
    changes = _Changes(text, epoch)
    mine = share.of(-(-text.pairs // CHUNK))
    with (
        _Side(text, epoch, "source", folder) as source,
        _Side(text, epoch, "target", folder) as target,
    ):
        for number, pairs in zip(mine, _chunks(text.train / layout.TEXT, mine.start), strict=False):
            changed = changes.of(number, pairs)
            source.add(number, [pair[0] for pair in pairs], changed)
            target.add(number, [pair[1] for pair in pairs], changed)


class _Changes:
    """Which pairs of an epoch are changed, and into what."""

    def __init__(self, text: EpochText, epoch: int) -> None:
        self._name = f"{text.seed} {epoch}"
        self._shares: list[tuple[str, float]] = []
        if text.augment is not None:
            self._shares = text.augment.shares()
        self._augmenter = Augmenter(*text.languages, len(text.tokenizer.copies))
        self._lengths = _Lengths(text)

    def of(self, number: int, pairs: list[Pair]) -> dict[int, Pair]:
        """Return the changed pairs of a chunk by their index in it."""
        if not self._shares:
            return {}
        draw = random.Random(f"{self._name} {number}")
        kinds = [kind for kind, _ in self._shares]
        shares = [share for _, share in self._shares]
        drawn = draw.choices(
            [*kinds, ""],
            [*shares, 1.0 - sum(shares)],
            k=len(pairs),
        )
        changed = {}
        for index, (kind, pair) in enumerate(zip(drawn, pairs, strict=True)):
            if kind:
                new = self._augmenter.change(kind, pair, draw)
                if new != pair and self._lengths.fit(new):
                    changed[index] = new
        return changed


class _Lengths:
    """Whether a changed pair is still short enough to be learnt."""

    def __init__(self, text: EpochText) -> None:
        self._tokenizer = text.tokenizer
        self._limit = text.limit

    def fit(self, pair: Pair) -> bool:
        if max(map(len, pair)) < self._limit // 4:  # a character has four bytes at most
            return True
        source = self._tokenizer.encode_normalised([pair[0]], "source")[0]
        target = self._tokenizer.encode_normalised([pair[1]], "target")[0]
        return max(len(source), len(target)) < self._limit


class _Side:
    """Writes the tokens of one side of an epoch."""

    def __init__(self, text: EpochText, epoch: int, side: Side, out: Path) -> None:
        self._text = text
        self._epoch = epoch
        self._side = side
        self._column = ("source", "target").index(side)
        self._tokens = (out / layout.tokens(side)).open("wb")
        self._offsets = (out / layout.offsets(side)).open("wb")
        self._offsets.write(np.zeros(1, "<i8").tobytes())
        self._end = 0
        self._words = Words(text.tokenizer, side, np.dtype(text.dtype).itemsize)
        self._usual: NDArray[Any] | None = None
        if not text.options.sampling:
            self._usual = np.memmap(text.train / layout.tokens(side), text.dtype, "r")
            self._starts = np.fromfile(text.train / layout.offsets(side), "<i8")

    def __enter__(self) -> _Side:
        return self

    def __exit__(self, *error: object) -> None:
        self._tokens.close()
        self._offsets.close()

    def add(self, number: int, lines: list[str], changed: dict[int, Pair]) -> None:
        """Write a chunk: some lines changed, the others as they are."""
        if self._usual is not None:
            rows = self._usual_rows(number * CHUNK, len(lines), changed)
        else:
            for index, pair in changed.items():
                lines[index] = pair[self._column]
            rows = self._sampled_rows(number, lines)
        ends = self._end + np.cumsum([len(row) for row in rows])
        self._tokens.write(np.concatenate(rows).tobytes())
        self._offsets.write(ends.astype("<i8").tobytes())
        self._end = int(ends[-1])

    def _usual_rows(self, first: int, count: int, changed: dict[int, Pair]) -> list[NDArray[Any]]:
        """The prepared tokens of a chunk, but for the lines that are changed."""
        assert self._usual is not None
        bounds = self._starts[first : first + count + 1]
        rows = np.split(self._usual[bounds[0] : bounds[-1]], bounds[1:-1] - bounds[0])
        for index, pair in changed.items():
            ids = self._words.line(pair[self._column])
            rows[index] = np.frombuffer(ids, self._text.dtype)
        return rows

    def _sampled_rows(self, number: int, lines: list[str]) -> list[NDArray[Any]]:
        """The lines in random pieces; one that becomes too long in its usual ones."""
        text = self._text
        seed = zlib.crc32(f"{text.seed} {self._epoch} {number} {self._side}".encode())
        sampled = text.tokenizer.sample(lines, self._side, text.options, seed)
        rows = [[*row, EOS] for row in sampled]
        for index, row in enumerate(rows):
            if len(row) > text.limit:
                usual = text.tokenizer.encode_normalised([lines[index]], self._side)[0]
                rows[index] = [*usual, EOS]
        return [np.array(row, text.dtype) for row in rows]


def join_shares(out: Path, count: int) -> None:
    """Put the shares of an epoch together in `out`, and remove all but the first."""
    for side in _SIDES:
        end = int(np.fromfile(out / layout.offsets(side), "<i8")[-1])
        with (
            (out / layout.tokens(side)).open("ab") as tokens,
            (out / layout.offsets(side)).open("ab") as offsets,
        ):
            for index in range(1, count):
                part = Share(index, count).folder(out)
                with (part / layout.tokens(side)).open("rb") as more:
                    shutil.copyfileobj(more, tokens, _BUFFER)
                ends = end + np.fromfile(part / layout.offsets(side), "<i8")[1:]
                offsets.write(ends.tobytes())
                end = int(ends[-1]) if len(ends) else end
    for index in range(1, count):
        shutil.rmtree(Share(index, count).folder(out))


def _chunks(file: Path, first: int) -> Iterator[list[Pair]]:
    """Yield the pairs of a file from chunk `first` on, CHUNK at a time."""
    with open(file, encoding="utf-8", newline="\n") as text:
        for _ in itertools.islice(text, first * CHUNK):
            pass
        columns = (line.rstrip("\n").split("\t") for line in text)
        pairs = ((source, target) for source, target, *_ in columns)
        while chunk := list(itertools.islice(pairs, CHUNK)):
            yield chunk
