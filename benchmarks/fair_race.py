"""A fair race: all systems do the same work in turns, round after round, and the median of the
rounds counts, by the clock and by the processor. Knows clocks and tables; no translation."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from surroundings import cpu_name

_PAUSE = 0.2  # seconds until the threads of a system have gone to sleep


@dataclass(frozen=True)
class Lap:
    """What one round of a system took."""

    seconds: float
    processor: float  # seconds of all its threads
    tokens: int  # that it wrote


@dataclass
class Laps:
    """The rounds of a system that count, and how busy the machine was before each."""

    laps: list[Lap] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return statistics.median(lap.seconds for lap in self.laps)

    @property
    def processor(self) -> float:
        return statistics.median(lap.processor for lap in self.laps)

    @property
    def tokens(self) -> int:
        return self.laps[-1].tokens

    @property
    def load(self) -> float:
        return max(self.loads)


Run = Callable[[], Lap]


def timed(work: Callable[[], int]) -> Lap:
    """Do some work in this process, which returns the tokens that it wrote."""
    began = time.perf_counter()
    used = time.process_time()
    tokens = work()
    return Lap(time.perf_counter() - began, time.process_time() - used, tokens)


def race(systems: Mapping[str, Run], rounds: int) -> dict[str, Laps]:
    """Let the systems take turns; the first round is for getting warm and does not count."""
    found = {name: Laps() for name in systems}
    for number in range(rounds + 1):
        for name, run in systems.items():
            load = os.getloadavg()[0]
            lap = run()
            if number:
                found[name].laps.append(lap)
                found[name].loads.append(load)
            time.sleep(_PAUSE)
    return found


def table(work: str, found: Mapping[str, Laps], units: int, ours: str) -> list[dict[str, Any]]:
    """Print a row for each system: milliseconds a unit of the work by the clock and by the
    processor, tokens a second, and how many times as fast `ours` is. Returns the rows."""
    cpu = cpu_name()
    rows = []
    for name, laps in found.items():
        row: dict[str, Any] = {
            "work": work,
            "system": name,
            "ms": 1000 * laps.seconds / units,
            "processor_ms": 1000 * laps.processor / units,
            "tokens_per_second": laps.tokens / laps.seconds,
            "ours_is": laps.seconds / found[ours].seconds,
            "load": laps.load,
            "cpu": cpu,
        }
        print(
            f"| {work} | {name} | {row['ms']:.2f} | {row['processor_ms']:.2f} "
            f"| {row['tokens_per_second']:,.0f} | {row['ours_is']:.2f}x "
            f"| {laps.load:.1f} | {cpu} |",
            flush=True,
        )
        rows.append(row)
    return rows


def head(unit: str) -> None:
    """Print the head of the table."""
    print(f"| Work | System | ms a {unit} | Processor ms | Tokens/s | Dragoman is | Load | CPU |")
    print("|---|---|---|---|---|---|---|---|")


def settings(threads: int) -> list[tuple[int, int]]:
    """Return how many batches at once, and threads for each, can use up to so many threads."""
    pairs = []
    for inter in range(1, threads + 1):
        pairs += [(inter, intra) for intra in range(1, threads // inter + 1)]
    return pairs
