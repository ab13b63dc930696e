"""Subword regularisation: the training text cut anew for each epoch (Kudo 2018; BPE-dropout,
Provilkov et al. 2020).

Knows the prepared folder and the tokeniser; knows no batches. A cutting follows from (seed, epoch)
alone. Also a program of its own (`python -m dragoman.data.epochs`), which cuts the next epoch while
this one is learnt: a GPU would have to wait.
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
from pathlib import Path
from subprocess import PIPE, Popen

import numpy as np

from dragoman.data.tokenise import program
from dragoman.errors import TrainingError
from dragoman.folder import layout
from dragoman.text.tokenizer import EOS, Side, Tokenizer, TokenizerOptions

CHUNK = 8192  # lines cut by one call


class Ahead:
    """The folders with the cuttings of epochs, the next one always under way in a process of its
    own. It ends with ours."""

    def __init__(
        self,
        train: Path,
        out: Path,
        tokenizer: Tokenizer,
        options: TokenizerOptions,
        seed: int,
        dtype: str,
        limit: int,
    ) -> None:
        self._out = out
        command, environment = program("dragoman.data.epochs")
        self._process = Popen(
            command, env=environment, stdin=PIPE, stdout=PIPE, start_new_session=True
        )
        weakref.finalize(self, _end, self._process)
        models = [base64.b64encode(model).decode() for model in tokenizer.serialised() if model]
        self._tell(
            [os.getpid(), str(train), models, options.kind, options.sampling, seed, dtype, limit]
        )
        self._asked: int | None = None

    def __call__(self, epoch: int) -> Path:
        """Epochs are asked for one after another."""
        if self._asked is None:
            self._ask(epoch)
        self._hear()
        self._ask(epoch + 1)
        return self._folder(epoch)

    def _ask(self, epoch: int) -> None:
        self._asked = epoch
        self._tell([epoch, str(self._folder(epoch))])

    def _folder(self, epoch: int) -> Path:
        """Three in turn: one is being cut, one learnt, and of the one before a batch may still
        be on its way."""
        return self._out.with_name(f"{self._out.name}-{epoch % 3}")

    def _tell(self, words: list[object]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(words).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise _ended() from None

    def _hear(self) -> None:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            raise _ended()
        if fault := int(answer):
            raise OSError(fault, os.strerror(fault), str(self._folder(self._asked or 0)))


def cut_anew(
    train: Path,
    out: Path,
    tokenizer: Tokenizer,
    options: TokenizerOptions,
    seed: int,
    epoch: int,
    dtype: str,
    limit: int,
) -> None:
    """Writes the pairs of `train`/text.tsv into `out` as `prepare` does, each line cut at
    random. A line that its cutting makes longer than `limit` keeps its usual one."""
    if out.exists():
        shutil.rmtree(out)  # new files, since the old ones may still be mapped
    out.mkdir(parents=True)
    sides: tuple[Side, Side] = ("source", "target")
    for column, side in enumerate(sides):
        with (
            open(train / layout.TEXT, encoding="utf-8", newline="\n") as text,
            open(out / layout.tokens(side), "wb") as tokens,
            open(out / layout.offsets(side), "wb") as offsets,
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
    lines: list[str],
    side: Side,
    tokenizer: Tokenizer,
    options: TokenizerOptions,
    seed: int,
    limit: int,
) -> list[list[int]]:
    rows = [[*row, EOS] for row in tokenizer.sample(lines, side, options, seed)]
    for place, row in enumerate(rows):
        if len(row) > limit:
            rows[place] = [*tokenizer.encode_normalised([lines[place]], side)[0], EOS]
    return rows


def _ended() -> TrainingError:
    return TrainingError(
        "the process that cuts the text of the next epoch was ended; go on with --resume"
    )


def _end(process: Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def _watch(parent: int) -> None:
    """Ends this process where the other one is gone, even in the middle of a long text."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _main() -> None:
    """Reads what is to be cut, then epochs, a line each; answers with 0 or with the number of a
    full disk and the like."""
    parent, train, models, kind, strength, seed, dtype, limit = json.loads(sys.stdin.readline())
    tokenizer = Tokenizer(*(base64.b64decode(model) for model in models))
    options = TokenizerOptions(kind=kind, sampling=strength)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    for line in sys.stdin:
        epoch, out = json.loads(line)
        fault = 0
        try:
            cut_anew(Path(train), Path(out), tokenizer, options, seed, epoch, dtype, limit)
        except OSError as error:
            fault = error.errno or errno.EIO
        with contextlib.suppress(BrokenPipeError):  # whoever asked may be gone
            print(fault, flush=True)


if __name__ == "__main__":
    _main()
