"""When a run ends: after its steps or minutes, when validations bring nothing better, or by a
signal. Knows no model."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dragoman.training.diary import Stopwatch
from dragoman.training.distributed import World
from dragoman.training.progress import Progress
from dragoman.training.training_options import TrainingOptions

# SIGHUP comes when a terminal or a connection closes; Windows has none.
_STOPPING = [
    signal.Signals[name]
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if name in signal.Signals.__members__
]


class StopRule:
    """Says before each step whether there is a reason to stop; the same one in all processes."""

    def __init__(self, options: TrainingOptions, world: World, watch: Stopwatch) -> None:
        self._options = options
        self._world = world
        self._watch = watch
        self._ask_at = 0  # the step before which the processes need not ask one another
        self.seconds = watch.seconds()  # one clock for all processes: the rate follows from it

    def reason(self, progress: Progress, signals: list[str]) -> str:
        """steps, minutes, patience, or a signal's name; empty while the run goes on."""
        options = self._options
        if progress.step >= options.steps:
            return "steps"
        if options.patience and progress.stale >= options.patience:
            return "patience"
        if progress.step < self._ask_at:
            return ""
        if self._world.size > 1:
            self._ask_at = progress.step + self._steps_until_next(progress)
        if self._world.any(bool(signals)):
            return signals[0] if signals else "SIGTERM"
        self.seconds = self._world.agree(self._watch.seconds())
        late = 0 < options.minutes * 60 <= self.seconds
        return "minutes" if late and progress.step else ""

    def _steps_until_next(self, progress: Progress) -> int:
        """About two seconds' worth: asking one another takes time, and whoever sent a signal may
        not wait for long."""
        pace = 2 * progress.step / max(1e-9, progress.seconds)
        return int(self._world.agree(min(50, max(1, pace))))


@contextmanager
def caught_signals() -> Iterator[list[str]]:
    """The names of the signals that have arrived. A second one of a kind has its usual effect, and
    one that is ignored (SIGHUP under nohup) stays ignored."""
    arrived: list[str] = []
    before: dict[signal.Signals, Any] = {}

    def note(number: int, _: object) -> None:
        arrived.append(signal.Signals(number).name)
        signal.signal(number, before[signal.Signals(number)])

    if threading.current_thread() is threading.main_thread():
        for number in _STOPPING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, note)
    try:
        yield arrived
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
