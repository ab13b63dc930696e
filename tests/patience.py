"""How long tests wait for what has to come. Only what never comes takes that long: a machine that
is busy with something else may need many times as long as an idle one."""

from __future__ import annotations

import time
from collections.abc import Callable

LONG = 300.0  # seconds


def wait_for(ready: Callable[[], object]) -> None:
    """Wait until something is so that others bring about."""
    end = time.monotonic() + LONG
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.01)
