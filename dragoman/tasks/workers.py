"""Chunks of lines shared out among processes, one or several for each device, and their results in
order.

Knows processes and pipes; what a process does with a chunk is a function that it is given.
"""

from __future__ import annotations

import signal
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


def by_processes(
    make_work: Callable[[str], Callable[[Chunk], Result]],
    devices: Sequence[str],
    chunks: Iterator[Chunk],
) -> Iterator[Result]:
    """The results of all chunks, in order, by a process for each of the devices; a device may be
    named several times. `make_work` is called in each process with its device. Each process works
    on one chunk, and at most one more result per process waits for its turn."""
    workers: dict[connection.Connection, BaseProcess] = {}
    busy: dict[connection.Connection, int] = {}  # the number of the chunk
    waiting: dict[int, Result] = {}
    sent = 0
    yielded = 0
    try:
        _start(make_work, devices, workers)
        while True:
            capacity = 2 * len(devices) - (sent - yielded)
            idle = [pipe for pipe in workers if pipe not in busy]
            for pipe, chunk in zip(idle[:capacity], chunks, strict=False):
                with suppress(ConnectionError):  # the cause is read from the pipe below
                    pipe.send(chunk)
                busy[pipe] = sent
                sent += 1
            if yielded in waiting:
                yield waiting.pop(yielded)
                yielded += 1
            elif busy:
                ready = connection.wait(busy)
                for pipe in [one for one in busy if one in ready]:
                    waiting[busy.pop(pipe)] = _received(pipe, workers[pipe].name)
            else:
                return
    finally:
        for process in workers.values():
            process.terminate()
            process.join()


def _start(
    make_work: Callable[[str], Callable[[Chunk], Result]],
    devices: Sequence[str],
    workers: dict[connection.Connection, BaseProcess],
) -> None:
    context = get_context("spawn")
    # The processes inherit that Ctrl-C is ignored: it is for this process to answer.
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    on_the_cpu = sum(device == "cpu" for device in devices)
    for device in devices:
        ours, theirs = context.Pipe()
        threads = max(1, cores() // on_the_cpu) if device == "cpu" else 0
        arguments = (partial(_with_threads, make_work, threads), device, theirs)
        process = context.Process(target=_serve, args=arguments, name=device, daemon=True)
        workers[ours] = process
        process.start()
        theirs.close()  # so that the end of the process is the end of the pipe
    signal.signal(signal.SIGINT, handler)


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


def _received(pipe: connection.Connection, device: str) -> Any:
    try:
        answer = pipe.recv()
    except (EOFError, ConnectionError):
        raise DragomanError(
            f"the process on {device} has ended, perhaps out of memory; name fewer devices"
        ) from None
    if isinstance(answer, Exception):
        raise answer
    return answer
