"""Chunks of lines shared out among processes, one or several for each device, and their results in
order. A process that the system kills is started again, and gets its chunk again.

Knows processes and pipes; what a process does with a chunk is a function that it is given.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import connection, get_context
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from dragoman.errors import DragomanError
from dragoman.tasks.device_shares import cores

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")

_RETRIES = 3  # of a chunk whose process is killed: one that takes all memory is so every time


def by_processes(
    make_work: Callable[[str], Callable[[Chunk], Result]],
    devices: Sequence[str],
    chunks: Iterator[Chunk],
) -> Iterator[Result]:
    """The results of all chunks, in order, by a process for each of the devices; a device may be
    named several times. `make_work` is called in each process with its device. Each process works
    on one chunk, and at most one more result per process waits for its turn."""
    crew = _Crew(make_work, devices)
    waiting: dict[int, Result] = {}
    sent = 0
    yielded = 0
    try:
        crew.start()
        while True:
            capacity = 2 * len(devices) - (sent - yielded)
            for pipe, chunk in zip(crew.idle()[:capacity], chunks, strict=False):
                crew.send(pipe, sent, chunk)
                sent += 1
            if yielded in waiting:
                yield waiting.pop(yielded)
                yielded += 1
            elif crew.busy:
                waiting.update(crew.received())
            else:
                return
    finally:
        crew.stop()


class _Crew:
    """The processes, and the chunk that each is working on."""

    def __init__(
        self, make_work: Callable[[str], Callable[[Any], Any]], devices: Sequence[str]
    ) -> None:
        self._make_work = make_work
        self._devices = devices
        self._workers: dict[connection.Connection, BaseProcess] = {}
        self._deaths: Counter[int] = Counter()  # over each chunk
        self.busy: dict[connection.Connection, tuple[int, Any]] = {}  # a chunk with its number

    def start(self) -> None:
        """Start a process for each of the devices."""
        for device in self._devices:
            self._start(device)

    def stop(self) -> None:
        """End all processes."""
        for process in self._workers.values():
            process.terminate()
            process.join()

    def idle(self) -> list[connection.Connection]:
        """The processes that have nothing to do."""
        return [pipe for pipe in self._workers if pipe not in self.busy]

    def send(self, pipe: connection.Connection, number: int, chunk: Any) -> None:
        """Give a process a chunk."""
        with suppress(ConnectionError):  # the cause is read from the pipe later
            pipe.send(chunk)
        self.busy[pipe] = (number, chunk)

    def received(self) -> Iterator[tuple[int, Any]]:
        """Wait for results; yields each with the number of its chunk."""
        ready = connection.wait(self.busy)
        for pipe in [one for one in self.busy if one in ready]:
            number, chunk = self.busy.pop(pipe)
            try:
                answer = pipe.recv()
            except (EOFError, ConnectionError):
                self._replace(pipe, number, chunk)
                continue
            if isinstance(answer, Exception):
                raise answer
            yield number, answer

    def _replace(self, pipe: connection.Connection, number: int, chunk: Any) -> None:
        """Start a process for one that was killed; one that has ended by a fault of its own has
        printed it."""
        process = self._workers.pop(pipe)
        process.join()
        pipe.close()
        self._deaths[number] += 1
        if (process.exitcode or 0) >= 0:
            raise DragomanError(
                f"the process on {process.name} has ended with exit code {process.exitcode}; "
                "what it printed says why"
            )
        if self._deaths[number] > _RETRIES:
            raise DragomanError(
                f"the process on {process.name} was killed {self._deaths[number]} times over the "
                "same lines, perhaps out of memory; name fewer devices or workers"
            )
        self.send(self._start(process.name), number, chunk)

    def _start(self, device: str) -> connection.Connection:
        context = get_context("spawn")
        # The process inherits that Ctrl-C is ignored: it is for this process to answer.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        ours, theirs = context.Pipe()
        on_the_cpu = sum(device == "cpu" for device in self._devices)
        threads = max(1, cores() // on_the_cpu) if device == "cpu" else 0
        arguments = (partial(_with_threads, self._make_work, threads), device, theirs)
        process = context.Process(target=_serve, args=arguments, name=device, daemon=True)
        try:
            process.start()
        finally:
            signal.signal(signal.SIGINT, handler)
            theirs.close()  # so that the end of the process is the end of the pipe
        self._workers[ours] = process
        return ours


def _with_threads(
    make_work: Callable[[str], Callable[[Chunk], Result]], threads: int, device: str
) -> Callable[[Chunk], Result]:
    """The work of a process with so many threads, 0 for as many as it has anyway: processes with
    more threads than cores, all together, wait for one another."""
    if threads:
        import torch

        torch.set_num_threads(threads)
    return make_work(device)


def _serve(
    make_work: Callable[[str], Callable[[Any], Any]], device: str, pipe: connection.Connection
) -> None:
    """Runs in a process of its own: answers each chunk until the other side has gone."""
    try:
        work = make_work(device)
        while True:
            pipe.send(work(pipe.recv()))
    except (EOFError, ConnectionError):
        pass
    except (DragomanError, OSError) as error:
        pipe.send(error)
