"""What one translation costs before it begins: the modules that `dragoman translate` loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CODE = """
import sys
from dragoman.cli.main import main
sys.argv = ["dragoman", "translate", "-m", sys.argv[1], "--runtime", "int8"]
try:
    main()
finally:
    print(*[name for name in sys.modules if name.split(".")[0] == "dragoman"], file=sys.stderr)
"""
# Rooms that a translation enters, and the most modules of each that it needs.
MOST = {
    "cli": 4,
    "decoding": 13,
    "folder": 8,
    "kernels": 9,
    "model": 17,
    "runtimes": 11,
    "tasks": 12,
    "text": 17,
}


def loaded(model: Path) -> list[str]:
    """The modules of the package, without the empty ones that rooms have."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(model)],
        input=b"one two. three four.\n",
        capture_output=True,
        env=environment,
        check=True,
    )
    assert done.stdout.strip()
    names = done.stderr.decode().split()
    return [name for name in names if name.removeprefix("dragoman.") not in MOST]


def test_a_translation_loads_what_it_needs(trained: Path) -> None:
    rooms: dict[str, list[str]] = {}
    for name in loaded(trained):
        room, _, module = name.removeprefix("dragoman").removeprefix(".").partition(".")
        if module:
            rooms.setdefault(room, []).append(module)
    assert set(rooms) == set(MOST)
    for room, most in MOST.items():
        assert len(rooms[room]) <= most, f"{room}: {rooms[room]}"
