"""What one translation costs before it begins: the modules that `dragoman translate` loads, and the
files whose functions it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "dragoman"
CODE = """
import inspect, json, sys

PLACE = sys.argv.pop(1)
entered = set()

def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_flags & inspect.CO_NEWLOCALS:
        entered.add(code.co_filename)

sys.setprofile(note)
from dragoman.cli.main import main
sys.argv[1:] = ["translate", "-m", sys.argv[1], "--runtime", "int8"]
try:
    main()
finally:
    sys.setprofile(None)
    loaded = [name for name in sys.modules if name.split(".")[0] == "dragoman"]
    with open(PLACE, "w") as file:
        json.dump({"loaded": loaded, "entered": sorted(entered)}, file)
"""
# Rooms that a translation enters, and the most modules of each that it needs; docs/design.md says
# why there are so many.
MOST = {
    "cli": 4,
    "decoding": 7,
    "folder": 8,
    "kernels": 8,
    "model": 15,
    "runtimes": 8,
    "tasks": 12,
    "text": 18,
}
MOST_FILES_RUN = 69


@pytest.fixture(scope="module")
def seen(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The names of the modules that were loaded, and the files of functions that were called."""
    place = tmp_path_factory.mktemp("seen") / "seen.json"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(place), str(trained)],
        input=b"one two. three four.\n",
        capture_output=True,
        env=environment,
        check=True,
    )
    assert done.stdout.strip()
    found: dict[str, list[str]] = json.loads(place.read_text())
    return found


def test_a_translation_loads_what_it_needs(seen: dict[str, list[str]]) -> None:
    rooms: dict[str, list[str]] = {}
    for name in seen["loaded"]:
        room, _, module = name.removeprefix("dragoman").removeprefix(".").partition(".")
        if module:
            rooms.setdefault(room, []).append(module)
    assert set(rooms) == set(MOST)
    for room, most in MOST.items():
        assert len(rooms[room]) <= most, f"{room}: {rooms[room]}"


def test_a_translation_runs_few_files(seen: dict[str, list[str]]) -> None:
    files = {Path(name) for name in seen["entered"]}
    ours = {file for file in files if PACKAGE in file.parents}
    assert PACKAGE / "runtimes" / "torch_runtime.py" in ours
    assert len(ours) <= MOST_FILES_RUN, sorted(ours)
