"""Processes that share chunks: what happens where one cannot be started. What happens to those that
are killed is tested with the commands that use them."""

from __future__ import annotations

import errno
import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.process import BaseProcess

import pytest

from dragoman.tasks.workers import by_processes


def _work(device: str) -> Callable[[int], int]:
    return lambda chunk: chunk


def test_a_process_that_cannot_be_started_is_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    spawning = multiprocessing.get_context("spawn")
    started: list[BaseProcess] = []

    def start(process: BaseProcess) -> None:
        if started:
            raise OSError(errno.EAGAIN, "no more processes")
        started.append(process)
        BaseProcess.start(process)

    monkeypatch.setattr(spawning.Process, "start", start)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(OSError, match="no more processes"):
        list(by_processes(_work, ["cpu", "cpu"], iter([1, 2])))
    assert signal.getsignal(signal.SIGINT) is before
    (first,) = started
    assert first.exitcode is not None, "the one that was started has been ended"
