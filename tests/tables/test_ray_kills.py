"""A job on Ray whose workers and driver are killed twenty times at random: no row is lost, none is
doubled, and the output has the bytes of an undisturbed run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_table_job import Turned

from dragoman.tables.field_path import FieldPath
from dragoman.tables.table_job import Engine, TableJob, run_job

pytest.importorskip("ray", reason="Ray is not installed")

ROWS = 1200
DRIVER = """
import os, sys
places = [sys.argv[1], os.path.dirname(sys.argv[1])]  # and what all tests share
sys.path[:0] = places
os.environ["PYTHONPATH"] = os.pathsep.join([*places, os.environ["PYTHONPATH"]])
from test_table_job import Turned
from dragoman.tables.field_path import FieldPath
from dragoman.tables.table_job import Engine, TableJob, run_job
from dragoman.tasks.ray_workers import Cluster

if __name__ == "__main__":
    stage = Turned(FieldPath.parse("text"), 0.2)
    job = TableJob([sys.argv[2]], stage, sys.argv[3], 5)
    for state in run_job(job, Engine(["cpu", "cpu"], Cluster(num_cpus=0.5))):
        print(state.done, flush=True)
"""


@pytest.mark.slow
def test_twenty_kills_of_workers_and_driver(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("".join(f'{{"text": "row {n}"}}\n' for n in range(ROWS)))
    quick = TableJob([str(source)], Turned(FieldPath.parse("text")), str(tmp_path / "quick"), 5)
    list(run_job(quick, Engine(["cpu"])))
    out = tmp_path / "out"
    draw = random.Random(1)
    kills = {"driver": 0, "worker": 0}
    end = time.monotonic() + 500
    process = started(source, out)
    while sum(kills.values()) < 20:
        before = unfinished(out)
        while process.poll() is None and not (unfinished(out) - before):
            assert time.monotonic() < end
            time.sleep(0.02)
        assert process.poll() is None
        time.sleep(draw.uniform(0.0, 0.4))
        workers = actors_of(process.pid)
        if not workers:  # it was one of a driver that is dead already
            continue
        if kills["driver"] < 5 and kills["worker"] >= 3 * (kills["driver"] + 1):
            process.kill()
            process.wait()
            kills["driver"] += 1
            process = started(source, out)
        else:
            os.kill(draw.choice(workers), signal.SIGKILL)
            kills["worker"] += 1
    assert unfinished(out)  # workers were killed within their parts
    assert process.wait(300) == 0
    assert kills == {"driver": 5, "worker": 15}
    names = sorted(path.name for path in out.iterdir() if path.suffix == ".jsonl")
    assert names == sorted(path.name for path in (tmp_path / "quick").glob("*.jsonl"))
    rows = []
    for name in names:
        content = (out / name).read_bytes()
        assert content == (tmp_path / "quick" / name).read_bytes()
        rows += [json.loads(line)["text"] for line in content.splitlines()]
    assert rows == [f"row {n}" for n in range(ROWS)]
    assert not [path for path in out.iterdir() if path.name not in {*names, "_manifest.json"}]


def unfinished(out: Path) -> set[str]:
    """The parts that are being written, and those that were when their worker was killed."""
    if not out.is_dir():
        return set()
    return {path.name for path in out.iterdir() if path.name.startswith(".in.")}


def started(source: Path, out: Path) -> subprocess.Popen[bytes]:
    here = Path(__file__)
    package = str(here.parents[2])
    command = [sys.executable, "-c", DRIVER, str(here.parent), str(source), str(out)]
    environment = {**os.environ, "PYTHONPATH": package, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)


def actors_of(driver: int) -> list[int]:
    """The processes of Ray's actors below a driver."""
    parents = {}
    names = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            names[int(path.name)] = (path / "cmdline").read_bytes()
        except OSError:
            continue
        parents[int(path.name)] = int(fields[1])
    found = []
    for process, name in names.items():
        if name.startswith(b"ray::_Worker"):
            above = process
            while above in parents and above != driver:
                above = parents[above]
            if above == driver:
                found.append(process)
    return sorted(found)
