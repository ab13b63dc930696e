"""The loops that hand out chunks to actors, with actors that do what a test says. Ray itself is
tried in tests/tables/test_ray.py."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.tasks import ray_workers
from dragoman.tasks.ray_workers import Cluster, _as_they_come, _in_order, by_actors


@dataclass(eq=False)
class Method:
    """What can be asked of an actor."""

    actor: FakeActor
    name: str

    def remote(self, *chunk: int) -> tuple[FakeActor, str, tuple[int, ...]]:
        if self.name == "work":
            assert self.actor.has_room, "it has not started"
        return (self.actor, self.name, chunk)


@dataclass(eq=False)
class FakeActor:
    """Answers while it has room."""

    has_room: bool = True

    @property
    def ready(self) -> Method:
        return Method(self, "ready")

    @property
    def work(self) -> Method:
        return Method(self, "work")


@dataclass
class FakeRay:
    """Two actors; the second loses its room when it gets a chunk, until the first one goes."""

    actors: Sequence[FakeActor]
    killed: list[FakeActor] = field(default_factory=list)
    lost: bool = False

    def wait(self, tasks: Sequence[Any], **_: float) -> tuple[list[Any], list[Any]]:
        second = self.actors[1]
        given = [task for task in tasks if task[0] is second and task[1] == "work"]
        if given and not self.lost:
            self.lost = True
            second.has_room = False
        ended = [task for task in tasks if task[0].has_room]
        assert ended, "all wait for one that has no room"
        return ended[-1:], []

    def get(self, task: Any) -> Any:
        return 2 * task[2][0] if task[1] == "work" else None

    def kill(self, actor: FakeActor) -> None:
        self.killed.append(actor)
        if self.lost:
            self.actors[1].has_room = True

    class exceptions:  # noqa: N801
        RayActorError = ConnectionError


Loop = Callable[[Any, Sequence[Any], Iterator[int]], Iterator[int]]


@pytest.mark.parametrize("loop", [_in_order, _as_they_come])
def test_an_actor_whose_machine_is_gone_gets_the_room_of_one_without_work(loop: Loop) -> None:
    ray = FakeRay([FakeActor(), FakeActor()])
    assert sorted(loop(ray, ray.actors, iter(range(5)))) == [0, 2, 4, 6, 8]
    assert ray.lost
    assert ray.actors[0] in ray.killed


@pytest.mark.parametrize("loop", [_in_order, _as_they_come])
def test_an_actor_that_never_starts_gets_nothing(loop: Loop) -> None:
    ray = FakeRay([FakeActor(), FakeActor(has_room=False)], lost=True)
    found = []
    for value in loop(ray, ray.actors, iter(range(5))):
        found.append(value)
        assert not ray.actors[1].has_room or ray.killed
    assert sorted(found) == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("is_ours", [True, False])
def test_rays_answer_to_sigterm_goes_with_ray(
    monkeypatch: pytest.MonkeyPatch, is_ours: bool
) -> None:
    """Ray's ends the process without a word, also long after; a Ray of others keeps it."""
    before = signal.getsignal(signal.SIGTERM)

    def rays(number: int, frame: object) -> None:
        sys.exit(number)

    def connected(cluster: Cluster) -> tuple[Any, bool]:
        signal.signal(signal.SIGTERM, rays)
        remote = SimpleNamespace(options=lambda **_: None)
        return SimpleNamespace(remote=lambda _: remote, shutdown=lambda: None), is_ours

    monkeypatch.setattr(ray_workers, "connected", connected)
    monkeypatch.setattr(ray_workers, "_in_order", lambda ray, actors, chunks: chunks)
    try:
        assert list(by_actors(lambda _: abs, [], iter([1, 2]), Cluster())) == [1, 2]
        assert signal.getsignal(signal.SIGTERM) == (before if is_ours else rays)
    finally:
        signal.signal(signal.SIGTERM, before)
