"""Parts of a stage in processes of their own, which end with the one that started them. Knows
processes and how they are called; knows nothing of what they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bundled.workshop import Workshop

SCRIPT = Path(__file__).parents[1] / "bundled_models.py"
Process = subprocess.Popen[bytes]


def started(shop: Workshop, what: str, name: str, seconds: float) -> Process:
    """A process that does a part of a stage: trains the model `name`, or writes the text of the
    direction `name`."""
    words = [
        sys.executable,
        SCRIPT,
        shop.packed,
        shop.made.folder,
        "--plan",
        shop.plan_file,
        "--only",
        what,
        name,
        seconds,
    ]
    output = shop.made.folder / f"{what}.{name}.log"
    with output.open("ab") as log:
        return subprocess.Popen([str(word) for word in words], stdout=log, stderr=log)


def wait_for(processes: Sequence[Process]) -> None:
    """Wait until all have ended; when this process is ended meanwhile, they are too."""
    try:
        codes = [process.wait() for process in processes]
    except BaseException:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
        raise
    if any(codes):
        raise RuntimeError(f"the processes ended with {codes}; their logs say why")


def end_with(parent: int) -> None:
    """End this process, as a signal would, when the one that started it is gone."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
    os._exit(1)
