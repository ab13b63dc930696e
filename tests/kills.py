"""Kills a small training run before each of its file-system events and resumes it.

The run is then compared with one that was never killed: losses, weights, checkpoints and all other
files have to be equal, to the byte.

    PYTHONPATH=. python tests/kills.py                 # every event
    PYTHONPATH=. python tests/kills.py --every 10 --again

An event is what Python's audit hooks report (PEP 578): a file of the run is opened, or something is
renamed, removed, made or changed. The process kills itself with SIGKILL just before it.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tiny

CHANGES = (
    "os.chmod",
    "os.link",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.symlink",
    "os.truncate",
    "shutil.rmtree",
    "tempfile.mkdtemp",
)
CLOCK = ("seconds", "tokens_per_second", "memory_gib")  # differ from run to run
# The clock stands in the report as well, and the last two are not part of a run's result.
NOT_COMPARED = ("report.md", "state/lock", "state/given.json")
# Four checkpoints, of which two are kept; the fewest seconds in which that can be.
CHANGED_OPTIONS = {
    "steps = 24": "steps = 8",
    "save_every = 6": "save_every = 2",
    "average = 3": "average = 2",
    "valid_sentences = 3": "valid_sentences = 0",
}


def die_at_event(number: int, folder: str, log: str = "") -> None:
    """Lets this process die before an event of its files. With number 0 it lives, and writes the
    names of the events to `log`."""
    count = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if event == "open":
            path = arguments[0]
            if not isinstance(path, str | bytes) or not os.fsdecode(path).startswith(folder):
                return
        elif event not in CHANGES:
            return
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)
        if log:
            with open(log, "a", encoding="utf-8") as file:
                file.write(f"{event}\n")

    sys.addaudithook(hook)


class Kills:
    """Runs of one small corpus in a folder: one that is never killed, and others that are."""

    def __init__(self, place: Path) -> None:
        self.place = place
        recipe = tiny.RECIPE
        for old, new in CHANGED_OPTIONS.items():
            assert old in recipe
            recipe = recipe.replace(old, new)
        (place / "recipe.toml").write_text(recipe, encoding="utf-8")
        self.files = tiny.write_corpus(place, "a", 80, seed=1)
        log = place / "events"
        self._live(self._start("unbroken"), 0, "unbroken", str(log))
        self.reference = snapshot(place / "unbroken")
        self.events = log.read_text(encoding="utf-8").splitlines()

    def survives(self, number: int, again: int = 0) -> str:
        """Kill a run before an event, and if `again` is not 0 its successor before that event; then
        let it end. Returns what differs from the run that was never killed; empty if nothing
        does."""
        name = f"killed-{number}"
        folder = self.place / name
        for event in (number, again):
            if event:
                self._live(self._next(name), event, name)
        self._live(self._next(name), 0, name)
        difference = compare(snapshot(folder), self.reference)
        shutil.rmtree(folder)
        return difference

    def _live(self, words: Sequence[str], event: int, name: str, log: str = "") -> None:
        hook = (die_at_event, event, str(self.place / name), log)
        command = tiny.run(words, self.place, *hook)
        code = command.wait()
        allowed = (0, -signal.SIGKILL) if event else (0,)
        assert code in allowed, f"exit code {code}: {command.errors}"

    def _next(self, name: str) -> list[str]:
        """The command that a user would give next."""
        begun = (self.place / name / "state" / "given.json").exists()
        return ["train", "--resume", str(self.place / name)] if begun else self._start(name)

    def _start(self, name: str) -> list[str]:
        recipe = str(self.place / "recipe.toml")
        return ["train", *self.files, "--out", str(self.place / name), "--config", recipe]


def snapshot(folder: Path) -> dict[str, str]:
    """A digest of each file of a run, by its name; numbers that come from a clock are left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir():
            found[name] = "a folder"
        elif name not in NOT_COMPARED:
            content = path.read_bytes()
            if path.suffix in (".json", ".jsonl"):
                content = "\n".join(_without_clock(content)).encode()
            found[name] = hashlib.sha256(content).hexdigest()
    return found


def compare(found: dict[str, str], reference: dict[str, str]) -> str:
    """The names of what is missing, too much or different."""
    lines = [f"missing: {name}" for name in sorted(reference.keys() - found.keys())]
    lines += [f"left over: {name}" for name in sorted(found.keys() - reference.keys())]
    both = sorted(found.keys() & reference.keys())
    lines += [f"different: {name}" for name in both if found[name] != reference[name]]
    return ", ".join(lines)


def _without_clock(content: bytes) -> Iterator[str]:
    text = content.decode("utf-8")
    try:
        lines = [json.loads(text)]
    except ValueError:  # several objects, one a line
        lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        if isinstance(line, dict):
            line = {name: value for name, value in line.items() if name not in CLOCK}
        yield json.dumps(line)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--every", type=int, default=1, help="kill before every N-th event")
    parser.add_argument("--again", action="store_true", help="kill the resumed run once as well")
    options = parser.parse_args()
    draw = random.Random(1)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kills-") as place:
        kills = Kills(Path(place))
        kinds = collections.Counter(kills.events)
        print(f"{len(kills.events)} events:", ", ".join(f"{n} {k}" for k, n in kinds.items()))
        numbers = range(1, len(kills.events) + 1, options.every)
        same = 0
        for number in numbers:
            again = draw.randrange(1, len(kills.events)) if options.again else 0
            difference = kills.survives(number, again)
            same += not difference
            if difference:
                event = kills.events[number - 1]
                print(f"killed before event {number}, {event}, then {again}: {difference}")
    seconds = round(time.monotonic() - begin)
    print(f"{same} of {len(numbers)} kills: the run is the same, to the bit ({seconds} s)")
    sys.exit(same != len(numbers))


if __name__ == "__main__":
    main()
