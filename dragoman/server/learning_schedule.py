"""Learning from corrections once a day while the service runs: when it is due, and in a process of
its own. Knows the clock and the command `dragoman learn`; the models themselves are the fleet's.

Nothing is learnt in the service's process. What goes wrong there is one sentence in the log, and
the service goes on as it was.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

from dragoman.errors import OptionError
from dragoman.folder.history import is_bundled
from dragoman.server.corrections import Corrections
from dragoman.server.metrics import log

_DAILY = time(3, 0)  # when most readers sleep
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_LONGEST = 300  # characters of a sentence in the log


def time_of_day(given: str) -> time:
    """When `--learn` wants it: `daily`, which is 03:00, or a time such as 22:30."""
    if given == "daily":
        return _DAILY
    match = _TIME.fullmatch(given)
    if match is None:
        raise OptionError(f"--learn is '{given}'; give `daily` or a time, such as 03:00")
    return time(int(match[1]), int(match[2]))


def seconds_until(due: time, now: datetime) -> float:
    """Seconds from now until it is this time of day, more than 0."""
    today = datetime.combine(now.date(), due, now.tzinfo)
    following = today if today > now else today + timedelta(days=1)
    return (following - now).total_seconds()


def learn_command(folder: Path, corrections: Path) -> list[str]:
    """The command that lets a folder learn, beside a service that must not notice it."""
    words = ["learn", str(folder), "--corrections", str(corrections)]
    words += ["--background", "--device", "cpu", "--json"]
    return [sys.executable, "-m", "dragoman", *words]


class LearnSchedule:
    """A thread that waits for the time of day and then has every folder learn, one at a time."""

    def __init__(
        self,
        folders: Sequence[Path],
        corrections: Path,
        due: time,
        reload: Callable[[], Any],
        command: Callable[[Path, Path], list[str]] = learn_command,
    ) -> None:
        """`reload` is called when a folder has a better model."""
        self._folders = [folder.absolute() for folder in folders if not is_bundled(folder)]
        if not self._folders:
            raise OptionError(
                "--learn changes models, and bundled ones are never changed; make a folder with "
                "`dragoman learn NAME --corrections FILE --out FOLDER` and serve that"
            )
        self._corrections = corrections.absolute()
        self._due = due
        self._reload = reload
        self._command = command
        self._closed = threading.Event()
        self._child: subprocess.Popen[str] | None = None
        self._learnt_up_to = 0  # the last correction that there was the last time
        self._thread = threading.Thread(target=self._run, name="learning", daemon=True)

    def start(self) -> None:
        """Begin to wait."""
        self._thread.start()

    def close(self) -> None:
        """Stop waiting, and end the process that may be learning; its folder stays as it was."""
        self._closed.set()
        child = self._child
        if child is not None:
            child.terminate()
        if self._thread.is_alive():
            self._thread.join()

    def learn_now(self) -> None:
        """Let every folder learn, if there are new corrections."""
        newest = self._newest()
        if newest == self._learnt_up_to:
            log(event="learn", result="no new corrections")
            return
        self._learnt_up_to = newest
        results = [self._learn(folder) for folder in self._folders if not self._closed.is_set()]
        if any(results):
            self._reload()

    def _run(self) -> None:
        while not self._closed.wait(seconds_until(self._due, datetime.now().astimezone())):
            try:
                self.learn_now()
            except Exception as error:  # whatever it is, the service and tomorrow's try go on
                log(event="learn", error=_short(str(error)))

    def _newest(self) -> int:
        store = Corrections(self._corrections)
        try:
            return store.newest()
        finally:
            store.close()

    def _learn(self, folder: Path) -> bool:
        """Whether the folder has a better model now."""
        child = subprocess.Popen(
            self._command(folder, self._corrections),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self._child = child
        output, errors = child.communicate()
        self._child = None
        if child.returncode:
            said = errors.strip().splitlines() or [f"it ended with code {child.returncode}"]
            log(event="learn", folder=folder.name, error=_short(said[-1]))
            return False
        result = json.loads(output)
        log(event="learn", folder=folder.name, result=_short(str(result["why"])))
        return bool(result["kept"])


def _short(sentence: str) -> str:
    return sentence[:_LONGEST]
