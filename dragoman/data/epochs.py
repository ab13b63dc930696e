"""Training text that differs from epoch to epoch: other pieces of the same words, and pairs as
people also write them.

Subword regularisation is that of Kudo (2018) and of Provilkov et al. (2020), BPE-dropout; for the
changed pairs see augment.py. Knows the prepared folder and the tokeniser; knows no batches. What an
epoch holds follows from (seed, epoch) alone. Also a program of its own (`python -m
dragoman.data.epochs`), which writes the next epoch while this one is learnt: a GPU would have to
wait.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import itertools
import json
import os
import random
import shutil
import sys
import threading
import time
import weakref
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.data.augment import Augmenter, AugmentOptions, Pair
from dragoman.data.tokenise import Words, module_command, module_environment
from dragoman.errors import TrainingError
from dragoman.folder import layout
from dragoman.text.tokenizer import EOS, Side, Tokenizer, TokenizerOptions

CHUNK = 8192  # pairs written at once


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


class Epochs:
    """The folders of written epochs, made by another process, the next one always in advance.

    That process ends with ours.
    """

    def __init__(self, text: EpochText, out: Path) -> None:
        self._out = out
        self._process = Popen(
            module_command("dragoman.data.epochs"),
            env=module_environment(),
            stdin=PIPE,
            stdout=PIPE,
            start_new_session=True,
        )
        weakref.finalize(self, _end, self._process)
        self._send({"parent": os.getpid(), "text": text.to_json()})
        self._asked: int | None = None

    def __call__(self, epoch: int) -> Path:
        """Return the folder of an epoch. Epochs are asked for one after another."""
        if self._asked is None:
            self._ask(epoch)
        self._wait()
        self._ask(epoch + 1)
        return self._folder(epoch)

    def _ask(self, epoch: int) -> None:
        self._asked = epoch
        self._send({"epoch": epoch, "out": str(self._folder(epoch))})

    def _folder(self, epoch: int) -> Path:
        """Return one of three folders in turn.

        One is being written, one learnt, and of the one before a batch may still be on its way.
        """
        return self._out.with_name(f"{self._out.name}-{epoch % 3}")

    def _send(self, message: dict[str, object]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise _ended() from None

    def _wait(self) -> None:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            raise _ended()
        fault = int(answer)
        if fault:
            raise OSError(fault, os.strerror(fault), str(self._folder(self._asked or 0)))


def write_epoch(
    text: EpochText,
    epoch: int,
    out: Path,
) -> None:
    """Write the pairs of text.tsv into `out` as `prepare` does, as this epoch shows them."""
    if out.exists():
        shutil.rmtree(out)  # new files, since the old ones may still be mapped
    out.mkdir(parents=True)
    changes = _Changes(text, epoch)
    with (
        _Side(text, epoch, "source", out) as source,
        _Side(text, epoch, "target", out) as target,
    ):
        for number, pairs in enumerate(_chunks(text.train / layout.TEXT)):
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


def _chunks(file: Path) -> Iterator[list[Pair]]:
    """Yield the pairs of a file, CHUNK at a time."""
    with open(file, encoding="utf-8", newline="\n") as text:
        columns = (line.rstrip("\n").split("\t") for line in text)
        pairs = ((source, target) for source, target, *_ in columns)
        while chunk := list(itertools.islice(pairs, CHUNK)):
            yield chunk


def _ended() -> TrainingError:
    return TrainingError(
        "the process that writes the text of the next epoch was ended; go on with --resume"
    )


def _end(process: Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def _watch(parent: int) -> None:
    """End this process when its parent is gone, even in the middle of a long text."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _main() -> None:
    """Read which text to sample, then epochs, one message a line.

    Each is answered by 0, or by the number of an error such as a full disk.
    """
    asked = json.loads(sys.stdin.readline())
    text = EpochText.from_json(asked["text"])
    threading.Thread(
        target=_watch,
        args=(asked["parent"],),
        daemon=True,
    ).start()
    for line in sys.stdin:
        message = json.loads(line)
        fault = 0
        try:
            write_epoch(text, message["epoch"], Path(message["out"]))
        except OSError as error:
            fault = error.errno or errno.EIO
        with contextlib.suppress(BrokenPipeError):  # whoever asked may be gone
            print(fault, flush=True)


if __name__ == "__main__":
    _main()
