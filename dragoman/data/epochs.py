"""Subword regularisation: the training text in other pieces for each epoch (Kudo 2018; BPE-dropout,
Provilkov et al. 2020).

Knows the prepared folder and the tokeniser; knows no batches. The pieces follow from (seed, epoch)
alone. Also a program of its own (`python -m dragoman.data.epochs`), which samples the next epoch
while this one is learnt: a GPU would have to wait.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import itertools
import json
import os
import shutil
import sys
import threading
import time
import weakref
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen

import numpy as np

from dragoman.data.tokenise import module_command, module_environment
from dragoman.errors import TrainingError
from dragoman.folder import layout
from dragoman.text.tokenizer import EOS, Side, Tokenizer, TokenizerOptions

CHUNK = 8192  # lines sampled by one call


@dataclass(frozen=True)
class SampledText:
    """The training text whose pieces are sampled, and how."""

    train: Path  # the folder of text.tsv
    tokenizer: Tokenizer
    options: TokenizerOptions
    seed: int
    dtype: str
    limit: int  # tokens; a line that would become longer keeps its usual pieces

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
        }


class Epochs:
    """The folders of sampled epochs, made by another process, the next one always in advance.

    That process ends with ours.
    """

    def __init__(self, text: SampledText, out: Path) -> None:
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

        One is being sampled, one learnt, and of the one before a batch may still be on its way.
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


def sample_epoch(
    text: SampledText,
    epoch: int,
    out: Path,
) -> None:
    """Write the pairs of text.tsv into `out` as `prepare` does, each line in random pieces."""
    if out.exists():
        shutil.rmtree(out)  # new files, since the old ones may still be mapped
    out.mkdir(parents=True)
    _sample_side(text, epoch, "source", out)
    _sample_side(text, epoch, "target", out)


def _sample_side(
    text: SampledText,
    epoch: int,
    side: Side,
    out: Path,
) -> None:
    with (
        open(out / layout.tokens(side), "wb") as tokens,
        open(out / layout.offsets(side), "wb") as offsets,
    ):
        end = 0
        offsets.write(np.zeros(1, "<i8").tobytes())
        for number, lines in enumerate(_chunks(text.train / layout.TEXT, side)):
            seed = zlib.crc32(f"{text.seed} {epoch} {number} {side}".encode())
            rows = _sampled(text, lines, side, seed)
            ends = end + np.cumsum([len(row) for row in rows])
            flat = np.fromiter(itertools.chain.from_iterable(rows), text.dtype)
            tokens.write(flat.tobytes())
            offsets.write(ends.astype("<i8").tobytes())
            end = int(ends[-1])


def _chunks(file: Path, side: Side) -> Iterator[list[str]]:
    """Yield the lines of one side, CHUNK at a time."""
    column = ("source", "target").index(side)
    with open(file, encoding="utf-8", newline="\n") as text:
        lines = (line.rstrip("\n").split("\t")[column] for line in text)
        while chunk := list(itertools.islice(lines, CHUNK)):
            yield chunk


def _sampled(
    text: SampledText,
    lines: list[str],
    side: Side,
    seed: int,
) -> list[list[int]]:
    sampled = text.tokenizer.sample(lines, side, text.options, seed)
    rows = [[*row, EOS] for row in sampled]
    for index, row in enumerate(rows):
        if len(row) > text.limit:
            usual = text.tokenizer.encode_normalised([lines[index]], side)[0]
            rows[index] = [*usual, EOS]
    return rows


def _ended() -> TrainingError:
    return TrainingError(
        "the process that samples the text of the next epoch was ended; go on with --resume"
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
    given = asked["text"]
    models = [base64.b64decode(model) for model in given["models"]]
    text = SampledText(
        train=Path(given["train"]),
        tokenizer=Tokenizer(*models),
        options=TokenizerOptions(kind=given["kind"], sampling=given["sampling"]),
        seed=given["seed"],
        dtype=given["dtype"],
        limit=given["limit"],
    )
    threading.Thread(
        target=_watch,
        args=(asked["parent"],),
        daemon=True,
    ).start()
    for line in sys.stdin:
        message = json.loads(line)
        fault = 0
        try:
            sample_epoch(text, message["epoch"], Path(message["out"]))
        except OSError as error:
            fault = error.errno or errno.EIO
        with contextlib.suppress(BrokenPipeError):  # whoever asked may be gone
            print(fault, flush=True)


if __name__ == "__main__":
    _main()
