"""What bulk work on tables costs: workers beside one another, Ray beside plain processes, memory
over many rows, and how long an actor takes to begin.

    python benchmarks/table_scale.py speed MODEL sentences.en --lines 10000
    python benchmarks/table_scale.py memory --rows 10000000
    python benchmarks/table_scale.py actors MODEL

`speed` translates the same lines by one process, by two, and by two actors of Ray, each with one
thread, and compares the outputs byte for byte. The time from the command to the first part and the
time of the other parts are told apart, since the first does not grow with the text: `overhead` is
what Ray would add to 200,000 lines. Both are told as time by the clock, which means something on an
idle machine alone, and as processor time of all processes, Ray's own among them. `memory` puts rows
through a stage that does not translate and prints the memory of the process after a tenth of the
rows and after all. `actors` prints the seconds from asking for two actors until each has answered.
Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dragoman.tables.field_path import FieldPath
from dragoman.tables.row_batch import NewColumn, Values
from dragoman.tables.table_job import Engine, TableJob, run_job
from dragoman.tables.table_stages import TranslateStage, Work
from dragoman.tasks.bulk import Job
from dragoman.tasks.ray_workers import Cluster, by_actors
from dragoman.tasks.request import TranslateRequest

_ASKED = 200_000  # lines for which the overhead of Ray is told


@dataclass(frozen=True)
class Timed:
    """The seconds of a job, by the clock or by the processors."""

    start: float  # to the end of the first part of each worker, less what a part takes
    all: float
    rate: float  # lines a second, after the first parts

    @property
    def of_many(self) -> float:
        """The seconds of a job with as many lines as are asked for."""
        return self.start + _ASKED / self.rate


@dataclass(frozen=True)
class Copied:
    """Writes each text again."""

    path: FieldPath

    @property
    def paths(self) -> tuple[FieldPath, ...]:
        return (self.path,)

    def facts(self) -> dict[str, Any]:
        return {"stage": "copied"}

    def load(self, device: str) -> Work:
        def work(values: Sequence[Values]) -> list[NewColumn]:
            return [NewColumn("copy", "text", 0, [row[0] for row in values])]

        return work


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_subparsers(required=True)
    fast = kinds.add_parser("speed")
    fast.add_argument("model", type=Path)
    fast.add_argument("sentences", type=Path)
    fast.add_argument("--lines", type=int, default=10_000)
    fast.add_argument("--part", type=int, default=250)
    fast.set_defaults(measure=speed)
    held = kinds.add_parser("memory")
    held.add_argument("--rows", type=int, default=10_000_000)
    held.set_defaults(measure=memory)
    begun = kinds.add_parser("actors")
    begun.add_argument("model", type=Path)
    begun.set_defaults(measure=actors)
    given = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    print(json.dumps(given.measure(given), indent=1))


def speed(given: argparse.Namespace) -> dict[str, Any]:
    """One process, two, and two actors."""
    lines = given.sentences.read_text(encoding="utf-8").splitlines()
    chosen = [line for line in lines if line.strip()][: given.lines]
    found: dict[str, Any] = {"lines": len(chosen)}
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "in.jsonl"
        rows = [json.dumps({"text": line}) + "\n" for line in chosen]
        source.write_text("".join(rows), encoding="utf-8")
        engines = {
            "one": Engine(["cpu"]),
            "two": Engine(["cpu", "cpu"]),
            "ray": Engine(["cpu", "cpu"], Cluster()),
        }
        times = {}
        for name, engine in engines.items():
            job = Job(given.model.absolute(), TranslateRequest())
            stage = TranslateStage(FieldPath.parse("text"), job)
            table = TableJob([str(source)], stage, f"{place}/{name}", given.part)
            times[name] = _timed(table, engine)
        outputs = [_outputs(Path(place) / name) for name in engines]
    found["identical"] = outputs[0] == outputs[1] == outputs[2]
    for name, (clock, processors) in times.items():
        found[f"{name}_seconds"] = round(clock.all, 1)
        found[f"{name}_start_seconds"] = round(clock.start, 1)
        found[f"{name}_lines_a_second"] = round(clock.rate, 1)
        found[f"{name}_lines_a_processor_second"] = round(processors.rate, 1)
        found[f"{name}_start_processor_seconds"] = round(processors.start, 1)
    one, two, by_ray = times["one"], times["two"], times["ray"]
    found["two_over_one"] = round(two[0].rate / one[0].rate, 2)
    found["two_over_one_by_processor_time"] = round(2 * two[1].rate / one[1].rate, 2)
    names = ("ray_overhead_percent", "ray_overhead_percent_of_processor_time")
    for name, plain, ray in zip(names, two, by_ray, strict=True):
        found[name] = round(100 * (ray.of_many / plain.of_many - 1), 1)
    return found


def _timed(table: TableJob, engine: Engine) -> tuple[Timed, Timed]:
    """Run a job; the first parts of all workers are its start, less the time of such a part."""
    workers = len(engine.devices)
    processors = Processors()
    begin = time.perf_counter()
    clock = []
    used = []
    rows = []
    for state in run_job(table, engine):
        clock.append(time.perf_counter() - begin)
        used.append(processors.seconds())
        rows.append(state.done)
    return _split(clock, rows, workers), _split(used, rows, workers)


def _split(seconds: Sequence[float], rows: Sequence[int], workers: int) -> Timed:
    rate = (rows[-1] - rows[workers]) / (seconds[-1] - seconds[workers])
    return Timed(seconds[workers] - rows[workers] / rate, seconds[-1], rate)


class Processors:
    """The processor time of this process and of all that it started, from now on."""

    def __init__(self) -> None:
        self._seen: dict[int, float] = {}
        self._before = self._all()

    def seconds(self) -> float:
        """The seconds so far; those of processes that have ended are as they were last seen."""
        return self._all() - self._before

    def _all(self) -> float:
        ticks = os.sysconf("SC_CLK_TCK")
        parents = {}
        used = {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(path.name)] = int(fields[1])
            used[int(path.name)] = (int(fields[11]) + int(fields[12])) / ticks
        for process in used:
            above = process
            while above in parents and above != os.getpid():
                above = parents[above]
            if above == os.getpid():
                self._seen[process] = used[process]
        return sum(self._seen.values())


def _outputs(folder: Path) -> dict[str, bytes]:
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    del found["_manifest.json"]
    return found


def memory(given: argparse.Namespace) -> dict[str, Any]:
    """The most memory of this process after a tenth of the rows, and after all."""
    found: dict[str, Any] = {"rows": given.rows}
    with tempfile.TemporaryDirectory() as place:
        for name, rows in (("tenth", given.rows // 10), ("all", given.rows)):
            source = Path(place) / f"{name}.jsonl"
            with open(source, "w", encoding="utf-8") as file:
                for first in range(0, rows, 1000):
                    count = range(first, min(first + 1000, rows))
                    file.writelines(f'{{"text": "row {number}"}}\n' for number in count)
            job = TableJob([str(source)], Copied(FieldPath.parse("text")), f"{place}/{name}")
            begin = time.perf_counter()
            *_, last = run_job(job, Engine(["cpu"]))
            assert last.done == rows
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            found[f"{name}_seconds"] = round(time.perf_counter() - begin, 1)
            found[f"{name}_mebibytes"] = round(most, 1)
    return found


@dataclass(frozen=True)
class Loaded:
    """What an actor makes ready: a translator."""

    model: Path

    def __call__(self, device: str) -> Any:
        from dragoman import Translator

        translator = Translator.load(self.model, device)
        return lambda text: translator.translate([text])[0].text


def actors(given: argparse.Namespace) -> dict[str, Any]:
    """From the start of Ray, and with Ray running, until two actors have translated."""
    import ray

    found: dict[str, Any] = {}
    for name in ("with_ray", "alone"):
        begin = time.perf_counter()
        work = Loaded(given.model.absolute())
        answers = list(by_actors(work, ["cpu", "cpu"], iter(["Good morning."] * 2), Cluster()))
        assert all(answers)
        found[f"{name}_seconds"] = round(time.perf_counter() - begin, 1)
        if name == "with_ray":
            ray.init(address="local", include_dashboard=False, log_to_driver=False)
    ray.shutdown()
    return found


if __name__ == "__main__":
    main()
