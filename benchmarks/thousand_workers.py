"""What 1,000 workers cost the one process that shares out their work: the manifest of a job on
tables and the loop that hands parts to Ray's actors, both as they are, with workers that only wait,
on a clock that only counts.

    python benchmarks/thousand_workers.py --workers 1000 --rows 1000000000

The files are empty and of a kind that says how many rows they would have. Of every part, the
processor time of our code is measured, and the share of their time that workers work is computed:
parts take different times, some workers are slow, and some die, load their model again and repeat
the part. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.tables import table_parts
from dragoman.tables.row_batch import Piece
from dragoman.tables.table_places import OutFolder
from dragoman.tasks.ray_workers import _as_they_come, _in_order

_ENDING = ".simulated"


@dataclass(frozen=True)
class Fleet:
    """How workers behave."""

    workers: int
    seconds: float = 3.0  # that a part takes, on average
    spread: float = 0.3  # of the logarithm of a part's time
    slow_share: float = 0.01  # of the workers
    slow_factor: float = 3.0
    deaths: float = 0.001  # for each part
    loading: float = 8.0  # seconds until a worker that died works again


@dataclass(frozen=True)
class SimulatedRows:
    """A kind of table that has no rows to read."""

    rows: int  # of each file
    ending: str = _ENDING

    def pieces(self, file: str, rows: int) -> list[Piece]:
        starts = range(0, self.rows, rows)
        return [Piece(min(rows, self.rows - first), first, first) for first in starts]

    def batches(self, *_: Any) -> Any:
        raise NotImplementedError

    def writer(self, *_: Any) -> Any:
        raise NotImplementedError


class Actor:
    """A worker with a queue; `work.remote` is what Ray's actors have."""

    def __init__(self, ray: SimulatedRay, factor: float) -> None:
        self._ray = ray
        self._factor = factor
        self.free = 0.0
        self.work = self
        self.ready = Started(ray)

    def remote(self, part: Any) -> int:
        """Queue a part; return the number of the task."""
        return self._ray.begin(self, self._factor)


@dataclass(frozen=True)
class Started:
    """The answer of a worker that has started, which they all have at once."""

    ray: SimulatedRay

    def remote(self) -> int:
        """Queue the answer; its number is below those of the parts."""
        self.ray.answers += 1
        heapq.heappush(self.ray.ending, (self.ray.now, -self.ray.answers))
        return -self.ray.answers


@dataclass
class SimulatedRay:
    """Ray as our loop sees it: it waits for tasks and returns their results."""

    fleet: Fleet
    draw: random.Random
    now: float = 0.0
    worked: float = 0.0  # seconds of all workers that led to a result
    deaths: int = 0
    tasks: int = 0
    answers: int = 0
    ending: list[tuple[float, int]] = field(default_factory=list)

    def begin(self, actor: Actor, factor: float) -> int:
        """Let an actor do a part after those that it has."""
        fleet = self.fleet
        middle = fleet.seconds * factor
        seconds = middle * self.draw.lognormvariate(-(fleet.spread**2) / 2, fleet.spread)
        lost = 0.0
        if self.draw.random() < fleet.deaths:
            self.deaths += 1
            lost = self.draw.random() * seconds + fleet.loading
        actor.free = max(actor.free, self.now) + lost + seconds
        self.worked += seconds
        self.tasks += 1
        heapq.heappush(self.ending, (actor.free, self.tasks))
        return self.tasks

    def wait(self, tasks: Sequence[int], **_: float) -> tuple[list[int], list[int]]:
        """Go on to the moment at which the next task ends."""
        self.now, task = heapq.heappop(self.ending)
        return [task], []

    def get(self, task: int) -> int:
        """The result of a task."""
        return task

    def kill(self, actor: Actor) -> None:
        """Let a worker go."""

    class exceptions:  # noqa: N801
        """What Ray raises; here, actors that die are started again."""

        RayActorError = RuntimeError


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1_000_000_000)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    fleet = Fleet(given.workers)
    found = {"workers": given.workers, "rows": given.rows, "files": given.files}
    with tempfile.TemporaryDirectory() as place:
        parts, figures = manifest(Path(place), given.files, given.rows)
    found |= {"parts": len(parts), **figures}
    found |= schedule(fleet, parts, given.seed)
    print(json.dumps(found, indent=1))


def manifest(place: Path, files: int, rows: int) -> tuple[list[Any], dict[str, float]]:
    """Plan a job, write its manifest, and find what is left of it when half of it is done."""
    table_parts._KINDS[_ENDING] = SimulatedRows(rows // files)
    names = []
    for number in range(files):
        path = place / f"{number:06d}{_ENDING}"
        path.touch()
        names.append(str(path))
    out = OutFolder(str(place / "out"))
    (place / "out").mkdir()
    start = time.process_time()
    planned = table_parts.plan(names, out, {}, table_parts.PART_ROWS)
    plan_seconds = time.process_time() - start
    for part in planned.parts[::2]:
        (place / "out" / part.out).touch()
    start = time.process_time()
    again = table_parts.plan(names, out, {}, table_parts.PART_ROWS)
    left = table_parts.remaining(again, out)
    resume_seconds = time.process_time() - start
    assert len(left) == len(planned.parts) // 2
    count = len(planned.parts)
    size = (place / "out" / "_manifest.json").stat().st_size
    return list(planned.parts), {
        "manifest_bytes_a_part": round(size / count, 1),
        "plan_microseconds_a_part": round(1e6 * plan_seconds / count, 1),
        "resume_microseconds_a_part": round(1e6 * resume_seconds / count, 1),
    }


def schedule(fleet: Fleet, parts: Sequence[Any], seed: int) -> dict[str, float]:
    """Hand all parts to the workers; every result comes once. Where results are wanted in order,
    as of text, workers wait for slow ones."""
    found: dict[str, float] = {}
    for name, share_out in (("", _as_they_come), ("in_order_", _in_order)):
        figures = _scheduled(fleet, parts, seed, share_out)
        found |= {name + key: value for key, value in figures.items()}
    return found


def _scheduled(
    fleet: Fleet, parts: Sequence[Any], seed: int, share_out: Callable[..., Iterator[int]]
) -> dict[str, float]:
    draw = random.Random(seed)
    ray = SimulatedRay(fleet, draw)
    actors = []
    for number in range(fleet.workers):
        is_slow = number < fleet.slow_share * fleet.workers
        actors.append(Actor(ray, fleet.slow_factor if is_slow else 1.0))
    start = time.process_time()
    seen = list(share_out(ray, actors, iter(parts)))
    seconds = time.process_time() - start
    assert sorted(seen) == list(range(1, len(parts) + 1))
    speed = sum(1.0 if actor._factor == 1 else 1 / actor._factor for actor in actors)
    ideal = len(parts) * fleet.seconds / speed
    return {
        "deaths": ray.deaths,
        "scheduling_microseconds_a_part": round(1e6 * seconds / len(parts), 1),
        "simulated_hours": round(ray.now / 3600, 3),
        "share_of_ideal_speed": round(ideal / ray.now, 3),
        "most_parts_a_second": round(len(parts) / seconds),
    }


if __name__ == "__main__":
    main()
