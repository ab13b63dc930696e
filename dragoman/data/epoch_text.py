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
        serialised = [model for model in self.tokenizer.serialised() if model]
        models = [base64.b64encode(model).decode() for model in serialised]
        augment = None if self.augment is None else asdict(self.augment)
        return {
            "train": str(self.train),
            "models": models,
            "kind": self.options.kind,
            "sampling": self.options.sampling,
            "seed": self.seed,
            "dtype": self.dtype,
            "limit": self.limit,
            "augment": augment,
            "languages": self.languages,
        }

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> EpochText:
        """Return what `to_json` wrote."""
        models = [base64.b64decode(model) for model in given["models"]]
        options = TokenizerOptions(kind=given["kind"], sampling=given["sampling"])
        source, target = given["languages"]
        augment = None
        if given["augment"] is not None:
            augment = AugmentOptions(**given["augment"])
        return cls(
            train=Path(given["train"]),
            tokenizer=Tokenizer(*models),
            options=options,
            seed=given["seed"],
            dtype=given["dtype"],
            limit=given["limit"],
            augment=augment,
            languages=(source, target),
        )


@dataclass(frozen=True)
class Share:
    """The part of a text that one process writes: number `index` of `count` parts in a row."""

    index: int = 0
    count: int = 1

    def of(self, chunks: int) -> range:
        """Return the chunks of this part, out of so many."""
        first = self.index * chunks // self.count
        end = (self.index + 1) * chunks // self.count
        return range(first, end)

    def folder(self, out: Path) -> Path:
        """Return where this part is written; the first one where the whole is."""
        if self.index == 0:
            return out
        return out.with_name(f"{out.name}.{self.index}")


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
    n_chunks = -(-text.pairs // CHUNK)
    mine = share.of(n_chunks)
    chunks = _chunks(text.train / layout.TEXT, mine.start)
    with (
        _Side(text, epoch, "source", folder) as source,
        _Side(text, epoch, "target", folder) as target,
    ):
        for number, pairs in zip(mine, chunks, strict=False):
            changed = changes.of(number, pairs)
            source_lines = [pair[0] for pair in pairs]
            target_lines = [pair[1] for pair in pairs]
            source.add(number, source_lines, changed)
            target.add(number, target_lines, changed)


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
        unchanged = 1.0 - sum(shares)
        drawn = draw.choices(
            [*kinds, ""],
            [*shares, unchanged],
            k=len(pairs),
        )
        changed = {}
        for index, kind in enumerate(drawn):
            if not kind:
                continue
            pair = pairs[index]
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
        longest = max(map(len, pair))
        if longest < self._limit // 4:  # a character has four bytes at most
            return True
        source, target = pair
        (source_tokens,) = self._tokenizer.encode_normalised([source], "source")
        (target_tokens,) = self._tokenizer.encode_normalised([target], "target")
        longest = max(len(source_tokens), len(target_tokens))
        return longest < self._limit


class _Side:
    """Writes the tokens of one side of an epoch."""

    def __init__(self, text: EpochText, epoch: int, side: Side, out: Path) -> None:
        self._text = text
        self._epoch = epoch
        self._side = side
        self._column = _SIDES.index(side)
        tokens = layout.tokens(side)
        offsets = layout.offsets(side)
        self._tokens = (out / tokens).open("wb")
        self._offsets = (out / offsets).open("wb")
        first = np.zeros(1, "<i8")
        self._offsets.write(first.tobytes())
        self._end = 0
        kind = np.dtype(text.dtype)
        self._words = Words(text.tokenizer, side, kind.itemsize)
        self._usual: NDArray[Any] | None = None
        if not text.options.sampling:
            self._usual = np.memmap(text.train / tokens, kind, "r")
            self._starts = np.fromfile(text.train / offsets, "<i8")

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
        lengths = [len(row) for row in rows]
        tokens = np.concatenate(rows)
        ends = self._end + np.cumsum(lengths)
        self._tokens.write(tokens.tobytes())
        self._offsets.write(ends.astype("<i8").tobytes())
        self._end = int(ends[-1])

    def _usual_rows(self, first: int, count: int, changed: dict[int, Pair]) -> list[NDArray[Any]]:
        """The prepared tokens of a chunk, but for the lines that are changed."""
        assert self._usual is not None
        bounds = self._starts[first : first + count + 1]
        begin = bounds[0]
        end = bounds[-1]
        tokens = self._usual[begin:end]
        rows = np.split(tokens, bounds[1:-1] - begin)
        for index, pair in changed.items():
            ids = self._words.line(pair[self._column])
            rows[index] = np.frombuffer(ids, self._text.dtype)
        return rows

    def _sampled_rows(self, number: int, lines: list[str]) -> list[NDArray[Any]]:
        """The lines in random pieces; one that becomes too long in its usual ones."""
        text = self._text
        tokenizer = text.tokenizer
        name = f"{text.seed} {self._epoch} {number} {self._side}"
        seed = zlib.crc32(name.encode())
        sampled = tokenizer.sample(lines, self._side, text.options, seed)
        rows = [[*row, EOS] for row in sampled]
        for index, row in enumerate(rows):
            if len(row) > text.limit:
                (usual,) = tokenizer.encode_normalised([lines[index]], self._side)
                rows[index] = [*usual, EOS]
        return [np.array(row, text.dtype) for row in rows]


def join_shares(out: Path, count: int) -> None:
    """Put the shares of an epoch together in `out`, and remove all but the first."""
    parts = [Share(index, count).folder(out) for index in range(1, count)]
    for side in _SIDES:
        _append(out, parts, side)
    for part in parts:
        shutil.rmtree(part)


def _append(out: Path, parts: list[Path], side: Side) -> None:
    """Append the tokens and offsets of the parts to those of `out`."""
    tokens_name = layout.tokens(side)
    offsets_name = layout.offsets(side)
    first_ends = np.fromfile(out / offsets_name, "<i8")
    end = int(first_ends[-1])
    with (
        (out / tokens_name).open("ab") as tokens,
        (out / offsets_name).open("ab") as offsets,
    ):
        for part in parts:
            with (part / tokens_name).open("rb") as more:
                shutil.copyfileobj(more, tokens, _BUFFER)
            own_ends = np.fromfile(part / offsets_name, "<i8")
            ends = end + own_ends[1:]
            offsets.write(ends.tobytes())
            if len(ends):
                end = int(ends[-1])


def _chunks(file: Path, first: int) -> Iterator[list[Pair]]:
    """Yield the pairs of a file from chunk `first` on, CHUNK at a time."""
    with open(file, encoding="utf-8", newline="\n") as text:
        for _ in itertools.islice(text, first * CHUNK):
            pass
        columns = (line.rstrip("\n").split("\t") for line in text)
        pairs = ((source, target) for source, target, *_ in columns)
        while chunk := list(itertools.islice(pairs, CHUNK)):
            yield chunk
