"""Several processes behind one port: started, watched, reloaded and stopped together. Knows
processes, signals and a port; nothing of HTTP and of models.

Each process listens at the port by itself (SO_REUSEPORT), and the system spreads the connections
over them. The first is started alone, so that whatever is wrong is said once. A process that dies
is started again; where this one dies, the others finish what they have and leave.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from prometheus_client.multiprocess import mark_process_dead

from dragoman.errors import OptionError

_SPAWN = multiprocessing.get_context("spawn")
_PAUSE = 1.0  # seconds before a process that died is started again
_GLANCE = 0.2  # seconds between two looks at the signals
_STOPPING = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Part:
    """What a process knows of its place among the others."""

    number: int
    ready: Connection

    def is_ready(self) -> None:
        """Tell the process that started this one that clients are served."""
        self.ready.send(self.number)
        self.ready.close()


def reserve(address: tuple[str, int], kind: socket.AddressFamily) -> socket.socket:
    """Take a port that no other program has, so that only processes of this user can share it."""
    if not hasattr(socket, "SO_REUSEPORT"):
        raise OptionError(
            "--processes needs SO_REUSEPORT, which this system does not have; "
            "start several services at ports of their own instead"
        )
    with socket.socket(kind) as alone:  # fails where any program listens there
        alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        alone.bind(address)
        alone.listen(0)
        address = alone.getsockname()[:2]
    return share(address, kind)


def share(address: tuple[str, int], kind: socket.AddressFamily) -> socket.socket:
    """Return a socket at a port that is reserved."""
    sharing = socket.socket(kind)
    sharing.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sharing.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        sharing.bind(address)
    except OSError:
        sharing.close()
        raise
    return sharing


def divide_threads(processes: int) -> None:
    """Give each process its share of the cores, unless the user has said how many threads."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (cores or 1) // processes)))


def reload_others() -> None:
    """Let all processes of the service read models and keys again."""
    parent = multiprocessing.parent_process()
    # One that is gone is not asked: its number may be another program's by now.
    if parent is not None and parent.pid is not None and parent.is_alive():
        os.kill(parent.pid, signal.SIGHUP)


def hold_reloads() -> None:
    """Let a SIGHUP wait until it can be answered; before that it would end the process."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])


def leave_with_parent() -> None:
    """Stop serving, in good order, when the process that started this one is gone."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


class Processes:
    """The processes of a service; `work` is what each of them runs."""

    def __init__(self, count: int, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._count = count
        self._work = work
        self._arguments = arguments
        self._running: dict[int, multiprocessing.process.BaseProcess] = {}
        self._stopping = False
        self._reloading = False

    def run(self, say_ready: Callable[[], None]) -> int:
        """Serve until a signal; return the exit code."""
        previous = {number: signal.signal(number, self._note) for number in self._signals()}
        try:
            for number in range(self._count):
                code = self._begin(number)
                if self._stopping:
                    return 0
                if code is not None:
                    return code
            say_ready()
            self._watch()
            return 0
        finally:
            self._stop()
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _begin(self, number: int) -> int | None:
        """Start a process and wait until it serves; return its exit code where it never does."""
        ready, told = _SPAWN.Pipe(duplex=False)
        process = _SPAWN.Process(target=self._work, args=(*self._arguments, Part(number, told)))
        with ready:
            with told:
                process.start()
            self._running[number] = process
            while not self._stopping:
                if ready in wait([ready, process.sentinel], _GLANCE):
                    try:
                        ready.recv()
                        return None
                    except EOFError:
                        process.join()
                if not process.is_alive():
                    return process.exitcode or 1
        return None

    def _watch(self) -> None:
        while not self._stopping:
            wait([process.sentinel for process in self._running.values()], _GLANCE)
            if self._reloading:
                self._reloading = False
                self._tell(signal.SIGHUP)
            for number, process in list(self._running.items()):
                if not process.is_alive() and not self._stopping:
                    self._replace(number, process)

    def _replace(self, number: int, dead: multiprocessing.process.BaseProcess) -> None:
        """Start another process in place of one that died."""
        from dragoman.server.metrics import log

        log(event="process", number=number, exit_code=dead.exitcode)
        mark_process_dead(dead.pid or 0)
        time.sleep(_PAUSE)
        self._begin(number)

    def _stop(self) -> None:
        self._tell(signal.SIGTERM)
        for process in self._running.values():
            process.join()

    def _tell(self, number: int) -> None:
        for process in self._running.values():
            if process.is_alive() and process.pid is not None:
                os.kill(process.pid, number)

    def _note(self, number: int, frame: object) -> None:
        if number in _STOPPING:
            self._stopping = True
        else:
            self._reloading = True

    def _signals(self) -> list[int]:
        return [*_STOPPING, signal.SIGHUP]
