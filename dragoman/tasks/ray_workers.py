"""Chunks of work shared out among the actors of a Ray cluster, and their results in order: what
workers.py does with the processes of one machine. Knows Ray; nothing of what is computed.

An actor whose process or machine dies is started again by Ray, loads its model again, and gets the
chunk again that it was at.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from dragoman.errors import DragomanError, MissingDependencyError, OptionError
from dragoman.tasks.device_shares import is_gpu, shares

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")

_log = logging.getLogger(__name__)
_PATIENCE = 60  # seconds without a word from any worker
_ENGINES = ("local", "ray")
_RETRIES = 3  # of a chunk whose actor dies: a chunk that takes all memory does so every time


@dataclass(frozen=True)
class Cluster:
    """Where Ray runs and what each actor has of it."""

    address: str = ""  # default: a Ray of our own on this machine; auto: the one that is running
    num_cpus: float = 1.0
    num_gpus: float = 0.0


def cluster_of(engine: str, address: str, device: str) -> Cluster | None:
    """What a user asks for by name: None for processes of this machine."""
    if engine not in _ENGINES:
        raise OptionError(f"--engine is {engine!r}; it must be {' or '.join(_ENGINES)}")
    if engine == "ray":
        # An actor has a GPU to itself; auto takes what the machine of the command has.
        return Cluster(address, num_gpus=1.0 if is_gpu(shares(device, 1)[0]) else 0.0)
    if address:
        raise OptionError("--address is that of a Ray cluster; add --engine ray")
    return None


def actor_devices(device: str, workers: int) -> list[str]:
    """The device of each actor. Ray shows an actor the GPU that it has, and no other."""
    each = shares(device, 1)
    if is_gpu(each[0]):
        return ["cuda"] * (workers or len(each))
    return each * workers if workers else shares(device)


def by_actors(
    make_work: Callable[[str], Callable[[Chunk], Result]],
    devices: Sequence[str],
    chunks: Iterator[Chunk],
    cluster: Cluster,
    in_order: bool = True,
) -> Iterator[Result]:
    """The results of all chunks, by an actor for each of the devices. `make_work` is called in each
    actor with its device. An actor has at most two chunks; actors for which there is no room are
    not waited for. In order, results wait for those before them, and actors for results that wait;
    otherwise nobody waits for a slow actor."""
    on_sigterm = signal.getsignal(signal.SIGTERM)
    ray, is_ours = connected(cluster)
    remote = ray.remote(_Worker).options(
        num_cpus=cluster.num_cpus,
        num_gpus=cluster.num_gpus,
        max_restarts=-1,
        max_task_retries=_RETRIES,
    )
    try:
        actors = [remote.remote(make_work, device, cluster.num_cpus) for device in devices]
        yield from (_in_order if in_order else _as_they_come)(ray, actors, chunks)
    finally:
        if is_ours:
            ray.shutdown()
            _answer_sigterm(on_sigterm)


def _answer_sigterm(answer: Any) -> None:
    """Answer SIGTERM as before Ray was started: its own answer would stay, and end the process
    without a word. Only the main thread can, and only Ray's in that thread was changed."""
    if answer is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, answer)


def connected(cluster: Cluster) -> tuple[Any, bool]:
    """Ray, connected, and whether it was started here."""
    # Ray would otherwise report how it is used to its makers.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise MissingDependencyError.for_extra("--engine ray", "ray") from None
    if ray.is_initialized():
        return ray, False
    started: dict[str, Any] = {"include_dashboard": False} if not cluster.address else {}
    try:
        ray.init(
            address=cluster.address or "local",
            logging_level=logging.ERROR,
            log_to_driver=False,
            **started,
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0][:200]
        place = cluster.address or "this machine"
        raise OptionError(f"no Ray answers at {place}: {reason}") from None
    return ray, True


class _Worker:
    """Runs in an actor: makes ready once, then answers each chunk."""

    def __init__(
        self, make_work: Callable[[str], Callable[[Any], Any]], device: str, cpus: float
    ) -> None:
        self._make_work = make_work
        self._device = device
        self._work: Callable[[Any], Any] | None = None
        if not is_gpu(device):
            import torch

            torch.set_num_threads(max(1, int(cpus)))

    def ready(self) -> DragomanError | OSError | None:
        """Make ready, once; returns the error that the user is to see."""
        try:
            self._work = self._work or self._make_work(self._device)
        except (DragomanError, OSError) as error:
            return error
        return None

    def work(self, chunk: Any) -> Any:
        """The result of a chunk, or the error that the user is to see."""
        error = self.ready()  # an actor that was started again has no work yet
        if self._work is None:
            return error
        try:
            return self._work(chunk)
        except (DragomanError, OSError) as failure:
            return failure


class _Crew:
    """The actors of a job: which have started, and what each is doing.

    Nothing is given to an actor before it has started, since a cluster may have no room for all of
    them, now or ever. At the end, those that have nothing to do leave their room to others.
    """

    def __init__(self, ray: Any, actors: Sequence[Any]) -> None:
        self._ray = ray
        self._starting = {actor.ready.remote(): actor for actor in actors}
        self._busy: dict[Any, tuple[Any, int]] = {}  # the actor of a task, and its chunk's number
        self._experienced: set[Any] = set()
        self.idle: list[Any] = []

    def send(self, number: int, chunk: Any) -> None:
        """Give a chunk to an actor that is idle."""
        actor = self.idle.pop(0)
        self._busy[actor.work.remote(chunk)] = (actor, number)

    def is_done(self, exhausted: bool) -> bool:
        """Whether all is done, given whether no chunk is left."""
        if exhausted:
            self._dismiss()
        return exhausted and not self._busy

    def received(self) -> Iterator[tuple[int, Any]]:
        """Wait for an actor; yields the result that it may have, and the number of its chunk."""
        task = self._next()
        if task in self._starting:
            self.idle.append(self._starting.pop(task))
            _received(self._ray, task)
            return
        actor, number = self._busy.pop(task)
        self.idle.append(actor)
        if actor not in self._experienced:  # from now on it has the next chunk before it is idle
            self._experienced.add(actor)
            self.idle.append(actor)
        yield number, _received(self._ray, task)

    def _dismiss(self) -> None:
        """Let actors go that have nothing to do: one whose machine is gone may need their room."""
        working = {actor for actor, _ in self._busy.values()}
        for actor in {*self.idle, *self._starting.values()} - working:
            self._ray.kill(actor)
        self.idle.clear()
        self._starting.clear()

    def _next(self) -> Any:
        tasks = [*self._busy, *self._starting]
        found, _ = self._ray.wait(tasks, num_returns=1, timeout=_PATIENCE)
        if not found:
            if not self._busy and not self._experienced:
                _log.warning(_no_room(self._ray))
            found, _ = self._ray.wait(tasks, num_returns=1)
        return found[0]


def _in_order(ray: Any, actors: Sequence[Any], chunks: Iterator[Chunk]) -> Iterator[Any]:
    crew = _Crew(ray, actors)
    waiting: dict[int, Any] = {}
    sent = 0
    yielded = 0
    exhausted = False
    while True:
        while yielded in waiting:
            yield waiting.pop(yielded)
            yielded += 1
        room = min(len(crew.idle), 4 * len(actors) - (sent - yielded))
        given = list(islice(chunks, room))
        exhausted = exhausted or len(given) < room
        for chunk in given:
            crew.send(sent, chunk)
            sent += 1
        if crew.is_done(exhausted):
            return
        waiting.update(crew.received())


def _as_they_come(ray: Any, actors: Sequence[Any], chunks: Iterator[Chunk]) -> Iterator[Any]:
    crew = _Crew(ray, actors)
    exhausted = False
    while True:
        given = list(islice(chunks, len(crew.idle)))
        exhausted = exhausted or len(given) < len(crew.idle)
        for chunk in given:
            crew.send(0, chunk)
        if crew.is_done(exhausted):
            return
        for _, result in crew.received():
            yield result


def _no_room(ray: Any) -> str:
    has = ray.cluster_resources()
    return (
        f"no worker has started for {_PATIENCE} seconds; Ray has {has.get('CPU', 0):g} CPUs and "
        f"{has.get('GPU', 0):g} GPUs"
    )


def _received(ray: Any, task: Any) -> Any:
    try:
        answer = ray.get(task)
    except ray.exceptions.RayActorError as error:
        reason = str(error).partition("\n")[0][:200]
        raise DragomanError(
            f"a worker died {_RETRIES + 1} times over the same part, perhaps out of memory "
            f"({reason}); give fewer workers, or more memory to each"
        ) from None
    if isinstance(answer, Exception):
        raise answer
    return answer
