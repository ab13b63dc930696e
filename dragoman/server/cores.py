"""What computes: one thread for all models, whose work gives way. Knows batches by their cost and
whether anybody waits for them; nothing of translation.

A batch that runs is looked at after every position of its search. Where nobody waits for it any
longer, it ends there. Where it has run for a while and something much smaller waits, that runs
first, in the same thread and to its end: two threads would fight for the cores. It may give way in
turn, to something much smaller still.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from dragoman.decoding.giving_way import giving_way
from dragoman.server.turns import Flow, Turns

# Seconds that a batch runs before it gives way, and again before it does the next time: then at
# least half as long as what it gave way to, so that it has a third of the time.
PATIENCE = 0.1
_OWN_SHARE = 0.5
_SMALLER = 0.5  # the cost of what a batch gives way to, as a share of its own


class AbandonedError(Exception):
    """Nobody waits for the batch any longer."""


@dataclass(frozen=True)
class Running:
    """A batch that is computed."""

    cost: float
    flows: frozenset[Flow]
    is_wanted: Callable[[], bool]


class Queue(Protocol):
    """Something with work that waits."""

    def next_turn(self, most: float, without: frozenset[Flow]) -> float | None:
        """Return the earliest turn of what waits, of at most that cost and of other requests."""

    def work(self, most: float, without: frozenset[Flow]) -> None:
        """Compute what is next, of at most that cost and of other requests; called in the thread
        that computes."""


class Cores:
    """The thread that computes, the queues that it serves, and whose turn it is."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # of the turns and all queues
        self.turns = Turns()
        self.queues: list[Queue] = []
        self._thread: Executor = ThreadPoolExecutor(1, "cores")

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        """Let the thread do some work after what it was given before."""
        return self._thread.submit(work)

    def close(self) -> None:
        """Finish what was submitted, and stop."""
        self._thread.shutdown()

    def compute(self, running: Running, work: Callable[[], Any]) -> Any:
        """Do the work of a batch, giving way; called in the thread that computes.

        Raises `AbandonedError` once nobody waits for it.
        """
        since = time.monotonic()
        patience = PATIENCE

        def between() -> None:
            nonlocal since, patience
            if not running.is_wanted():
                raise AbandonedError
            start = time.monotonic()
            if start - since < patience:
                return
            most = _SMALLER * running.cost
            queue = self._next(most, running.flows)
            if queue is not None:
                queue.work(most, running.flows)
            since = time.monotonic()
            patience = max(PATIENCE, _OWN_SHARE * (since - start))

        with giving_way(between):
            return work()

    def _next(self, most: float, without: frozenset[Flow]) -> Queue | None:
        """Return the queue whose turn is next."""
        with self.lock:
            turns = []
            for number, queue in enumerate(self.queues):
                turn = queue.next_turn(most, without)
                if turn is not None:
                    turns.append((turn, number))
            return self.queues[min(turns)[1]] if turns else None
