"""What actors do in tests of the loops around them. An actor imports the module of its work, and
this one imports no torch, which would be most of what such a test takes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from dragoman.errors import InputError


def dying(place: str, device: str) -> Callable[[int], tuple[int, int]]:
    """Doubles a number; the process dies once, at the number 5."""

    def work(number: int) -> tuple[int, int]:
        marker = Path(place) / "died"
        if number == 5 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return 2 * number, os.getpid()

    return work


def refusing(device: str) -> Callable[[int], int]:
    raise InputError("no such model; name another")


def doubling(device: str) -> Callable[[int], int]:
    return lambda number: 2 * number
