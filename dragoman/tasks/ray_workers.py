"""Chunks of work shared out among the actors of a Ray cluster, and their results in order: what
workers.py does with the processes of one machine. Knows Ray; nothing of what is computed.

An actor whose process or machine dies is started again by Ray, loads its model again, and gets the
chunk again that it was at.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from dragoman.errors import DragomanError, MissingDependencyError, OptionError
from dragoman.tasks.device_shares import is_gpu

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")

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
        # An actor has a GPU to itself where GPUs are named; auto takes what the driver has.
        return Cluster(address, num_gpus=1.0 if is_gpu(device) else 0.0)
    if address:
        raise OptionError("--address is that of a Ray cluster; add --engine ray")
    return None


def by_actors(
    make_work: Callable[[str], Callable[[Chunk], Result]],
    devices: Sequence[str],
    chunks: Iterator[Chunk],
    cluster: Cluster,
    in_order: bool = True,
) -> Iterator[Result]:
    """The results of all chunks, by an actor for each of the devices. `make_work` is called in each
    actor with its device. An actor has at most two chunks. In order, results wait for those before
    them, and actors for results that wait; otherwise nobody waits for a slow actor."""
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
        self._work: Callable[[Any], Any] | None = None
        self._error: DragomanError | None = None
        if not is_gpu(device):
            import torch

            torch.set_num_threads(max(1, int(cpus)))
        try:
            self._work = make_work(device)
        except DragomanError as error:
            self._error = error

    def work(self, chunk: Any) -> Any:
        """The result of a chunk, or the error that the user is to see."""
        if self._work is None:
            return self._error
        try:
            return self._work(chunk)
        except (DragomanError, OSError) as error:
            return error


def _in_order(ray: Any, actors: Sequence[Any], chunks: Iterator[Chunk]) -> Iterator[Any]:
    numbers: dict[Any, int] = {}  # of what is being worked on
    busy: dict[Any, Any] = {}  # its actor
    waiting: dict[int, Any] = {}
    idle = [actor for _ in range(2) for actor in actors]
    sent = 0
    yielded = 0
    while True:
        while yielded in waiting:
            yield waiting.pop(yielded)
            yielded += 1
        room = 4 * len(actors) - (sent - yielded)
        for chunk in islice(chunks, min(len(idle), room)):
            actor = idle.pop(0)
            task = actor.work.remote(chunk)
            numbers[task] = sent
            busy[task] = actor
            sent += 1
        if not numbers:
            return
        (task,), _ = ray.wait(list(numbers), num_returns=1)
        waiting[numbers.pop(task)] = _received(ray, task)
        idle.append(busy.pop(task))


def _as_they_come(ray: Any, actors: Sequence[Any], chunks: Iterator[Chunk]) -> Iterator[Any]:
    busy: dict[Any, Any] = {}  # the actor of what is being worked on
    idle = [actor for _ in range(2) for actor in actors]
    while True:
        for chunk in islice(chunks, len(idle)):
            actor = idle.pop(0)
            busy[actor.work.remote(chunk)] = actor
        if not busy:
            return
        (task,), _ = ray.wait(list(busy), num_returns=1)
        idle.append(busy.pop(task))
        yield _received(ray, task)


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
