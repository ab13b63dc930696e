"""How fast are training and translating while other programs use the cores too, for each way in
which OpenMP's threads may wait for one another?

A thread that waits by spinning is quick to go on, but on a busy core it burns the time that the
thread it waits for would need. Every setting runs in a process of its own, since OpenMP reads its
environment once. They take turns, a unit of work each: two training steps of a model as small as
the demo's, then eight sentences through the bundled model. `busy` adds a process that never rests
for each core. Figures are medians over the rounds. `others` is the share of the machine that
processes other than these took during the idle units; units in which that was more than --quiet are
left out of the idle figures, and --patience is how many seconds an idle unit may wait for a quiet
moment.

    python benchmarks/shared_machine.py --rounds 20
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from surroundings import cpu_name

SETTINGS: dict[str, dict[str, str]] = {
    "dragoman's own": {},
    "libgomp's own": {"GOMP_SPINCOUNT": "300000"},
    "spin 10,000": {"GOMP_SPINCOUNT": "10000"},
    "spin 1,000": {"GOMP_SPINCOUNT": "1000"},
    "passive": {"OMP_WAIT_POLICY": "passive"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}
WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
TASKS = ("train", "translate")
LOADS = ("idle", "busy")
SENTENCES = [
    "Good morning, how are you?",
    "I would like a cup of coffee with milk.",
    "The train to Berlin leaves at half past nine.",
    "We bought a new car yesterday, and it has already broken down.",
    "Can you please help me to find the station?",
    "The committee will discuss the proposal in the next session.",
    "She does not call her brother because he is tired.",
    "My red bicycle costs thirty-seven euros.",
]


@dataclass(frozen=True)
class Unit:
    """One unit of work, as it was measured."""

    setting: str
    task: str
    busy: bool
    speed: float  # target tokens or sentences a second
    others: float  # the share of the machine that other processes took


class Worker:
    """A process with one setting, which does a unit of work whenever it is asked to."""

    def __init__(self, setting: str) -> None:
        self.setting = setting
        inherited = {name: value for name, value in os.environ.items() if name not in WAITING}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--work"],
            env=inherited | SETTINGS[setting],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, task: str, busy: bool) -> Unit:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{task}\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return Unit(self.setting, task, busy, answer["speed"], answer["others"])

    def stop(self) -> None:
        self._process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=30.0, help="no round begins after them")
    parser.add_argument("--quiet", type=float, default=0.1, help="others' share, at most, if idle")
    parser.add_argument("--patience", type=float, default=0.0, help="seconds to wait for quiet")
    parser.add_argument("--loads", nargs="+", default=LOADS, choices=LOADS)
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work()
        return
    units = measure(given)
    rounds = sum(unit.setting == given.settings[0] for unit in units) // len(TASKS)
    rounds //= len(given.loads)
    print(f"{cpu_name()}, {os.cpu_count()} cores, {rounds} rounds, load {os.getloadavg()[1]:.1f}\n")
    print("| threads wait by | train, idle | train, busy | translate, idle | translate, busy |")
    print("|---|---|---|---|---|")
    for setting in given.settings:
        own = [unit for unit in units if unit.setting == setting]
        cells = [
            _cell([unit for unit in own if (unit.task, unit.busy) == (task, busy)], given.quiet)
            for task in TASKS
            for busy in (False, True)
        ]
        print(f"| {setting} | {' | '.join(cells)} |")


def measure(given: argparse.Namespace) -> list[Unit]:
    """All units of all rounds, the settings in turn, once with idle and once with busy cores."""
    workers = [Worker(setting) for setting in given.settings]
    for task in TASKS:  # the first units load, compile and plan
        for worker in workers:
            worker.do(task, busy=False)
            worker.do(task, busy=False)
    units = []
    end = time.monotonic() + 60 * given.minutes
    for number in range(given.rounds):
        if time.monotonic() > end:
            break
        order = workers[number % len(workers) :] + workers[: number % len(workers)]
        for task in TASKS:
            if "idle" in given.loads:
                units += [_idle_unit(worker, task, given) for worker in order]
            if "busy" in given.loads:
                with busy_cores():
                    units += [worker.do(task, busy=True) for worker in order]
        print(f"round {number + 1} of {given.rounds}", file=sys.stderr, flush=True)
    for worker in workers:
        worker.stop()
    return units


def _idle_unit(worker: Worker, task: str, given: argparse.Namespace) -> Unit:
    """A unit during which others took little; the last one tried, where patience ends."""
    end = time.monotonic() + given.patience
    while True:
        wait_for_quiet(given.quiet, end - time.monotonic())
        unit = worker.do(task, busy=False)
        if unit.others <= given.quiet or time.monotonic() > end:
            return unit


def wait_for_quiet(quiet: float, patience: float) -> None:
    """Returns once the machine is nearly idle, or when patience ends."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        before = _machine_time()
        time.sleep(0.1)
        busy, whole = (now - then for now, then in zip(_machine_time(), before, strict=True))
        if busy <= quiet * whole:
            return


@contextmanager
def busy_cores() -> Iterator[None]:
    """A process that never rests for each core; all of them end with the block, or by themselves
    after five minutes."""
    code = "import time\nend = time.monotonic() + 300\nwhile time.monotonic() < end: pass"
    hogs = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(os.cpu_count() or 1)]
    try:
        time.sleep(0.2)  # until they run
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def work() -> None:
    """The worker's side: reads tasks, a line each, and answers with speed and others' share."""
    doing = {"train": _training(), "translate": _translating()}
    for line in sys.stdin:
        task = doing[line.strip()]
        before = _machine_time()
        own = time.process_time()
        began = time.perf_counter()
        amount = task()
        seconds = time.perf_counter() - began
        own = time.process_time() - own
        busy, whole = (now - then for now, then in zip(_machine_time(), before, strict=True))
        others = max(0.0, busy - own) / max(whole, 1e-9)
        print(json.dumps({"speed": amount / seconds, "others": others}), flush=True)


def _training() -> Callable[[], float]:
    """Two steps of a model of the demo's size; their target tokens."""
    import dragoman  # noqa: F401  its settings come before torch reads them

    # isort: split
    from train_speed_cpu import batches
    from train_speed_cpu import dragoman as trained

    given = itertools.cycle(batches(200, vocab=2_000, budget=1_000))
    step = trained("tiny", vocab=2_000)

    def two() -> float:
        tokens = 0
        for batch in itertools.islice(given, 2):
            step(batch)
            tokens += batch.target_tokens
        return tokens

    return two


def _translating() -> Callable[[], float]:
    """Eight sentences through the bundled model, one request each as a service gets them."""
    from dragoman import Translator, shipped_model

    translator = Translator.load(shipped_model("en", "de"), "cpu")

    def all_of_them() -> float:
        for sentence in SENTENCES:
            translator.translate([sentence])
        return len(SENTENCES)

    return all_of_them


def _cell(units: list[Unit], quiet: float) -> str:
    """The median speed; of idle units, with the median of what others took."""
    if not units:
        return ""
    if units[0].busy:
        return f"{statistics.median(unit.speed for unit in units):,.1f}"
    alone = [unit for unit in units if unit.others <= quiet]
    if not alone:
        return f"never idle (others took {min(unit.others for unit in units):.0%} or more)"
    speed = statistics.median(unit.speed for unit in alone)
    others = statistics.median(unit.others for unit in alone)
    return f"{speed:,.1f} ({len(alone)} units, others {others:.0%})"


def _machine_time() -> tuple[float, float]:
    """Seconds that all cores together were busy, and seconds in all."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(tick) for tick in file.readline().split()[1:9]]
    second = os.sysconf("SC_CLK_TCK")
    idle = ticks[3] + ticks[4]
    return (sum(ticks) - idle) / second, sum(ticks) / second


if __name__ == "__main__":
    main()
