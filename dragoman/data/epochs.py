"""The processes that write the text of the next epoch while this one is learnt: a GPU would have to
wait. Knows processes and messages; what is written is in epoch_text.py.

Also a program of its own (`python -m dragoman.data.epochs`). Several of them share a long text: the
first one asks the others and puts their shares together.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import threading
import time
import weakref
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from dragoman.data.epoch_text import WHOLE, EpochText, Share, join_shares, write_epoch
from dragoman.data.tokenise import module_command, module_environment
from dragoman.errors import TrainingError

_MOST_PROCESSES = 8
_PAIRS_OF_A_PROCESS = 200_000  # fewer are not worth another one


class Epochs:
    """The folders of written epochs, made by other processes, the next one always in advance."""

    def __init__(self, text: EpochText, out: Path, processes: int = 1) -> None:
        self._out = out
        self._writer = _Writer(text.to_json(), processes)
        self._asked: int | None = None

    def __call__(self, epoch: int) -> Path:
        """Return the folder of an epoch. Epochs are asked for one after another."""
        if self._asked is None:
            self._ask(epoch)
        fault = self._writer.answer()
        if fault:
            raise OSError(fault, os.strerror(fault), str(self._folder(self._asked or 0)))
        self._ask(epoch + 1)
        return self._folder(epoch)

    @property
    def pid(self) -> int:
        """The process that writes."""
        return self._writer.pid

    def _ask(self, epoch: int) -> None:
        self._asked = epoch
        self._writer.ask(epoch, self._folder(epoch), WHOLE)

    def _folder(self, epoch: int) -> Path:
        """Return one of three folders in turn.

        One is being written, one learnt, and of the one before a batch may still be on its way.
        """
        return self._out.with_name(f"{self._out.name}-{epoch % 3}")


def processes_for(pairs: int, cores: int) -> int:
    """Return how many processes should write an epoch of so many pairs: half of the cores at most,
    since training needs some too."""
    useful = -(-pairs // _PAIRS_OF_A_PROCESS)
    return max(1, min(_MOST_PROCESSES, cores // 2, useful))


class _Writer:
    """A process that writes epochs, or shares of them. It ends with ours."""

    def __init__(self, text: dict[str, Any], processes: int) -> None:
        self._process = Popen(
            module_command("dragoman.data.epochs"),
            env=module_environment(),
            stdin=PIPE,
            stdout=PIPE,
            start_new_session=True,
        )
        weakref.finalize(self, _end, self._process)
        self._send({"parent": os.getpid(), "text": text, "processes": processes})
        self.pid = self._process.pid

    def ask(self, epoch: int, out: Path, share: Share) -> None:
        """Let it write a share of an epoch."""
        self._send({"epoch": epoch, "out": str(out), "share": [share.index, share.count]})

    def answer(self) -> int:
        """Wait until it has written what it was asked for: 0, or the number of an error."""
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            raise _ended()
        return int(answer)

    def _send(self, message: dict[str, object]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise _ended() from None


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
    """Read which text to write, then epochs, one message a line.

    Each is answered by 0, or by the number of an error such as a full disk.
    """
    asked = json.loads(sys.stdin.readline())
    threading.Thread(
        target=_watch,
        args=(asked["parent"],),
        daemon=True,
    ).start()
    text = EpochText.from_json(asked["text"])
    others = [_Writer(asked["text"], 1) for _ in range(asked["processes"] - 1)]
    for line in sys.stdin:
        message = json.loads(line)
        share = Share(*message["share"])
        try:
            fault = _write(text, others, message["epoch"], Path(message["out"]), share)
        except OSError as error:
            fault = error.errno or errno.EIO
        with contextlib.suppress(BrokenPipeError):  # whoever asked may be gone
            print(fault, flush=True)


def _write(text: EpochText, others: list[_Writer], epoch: int, out: Path, share: Share) -> int:
    """Write a share, or with the others the whole; 0, or the number of an error."""
    if not others:
        write_epoch(text, epoch, out, share)
        return 0
    count = len(others) + 1
    for index, other in enumerate(others, 1):
        other.ask(epoch, out, Share(index, count))
    try:
        write_epoch(text, epoch, out, Share(0, count))
    finally:
        faults = [other.answer() for other in others]
    if not any(faults):
        join_shares(out, count)
    return max(faults)


if __name__ == "__main__":
    _main()
