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
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from dragoman.decoding.giving_way import giving_way
from dragoman.server.turns import Flow, Turns

# Seconds that a batch runs before it gives way, and again before it does the next time.
PATIENCE = 0.1
# Half as long as something took that it gave way to, it gives way only to what is much smaller than
# that. So it has a third of the time, and what is short need not wait for it to catch up.
_OWN_SHARE = 0.5
_NEAR = 0.25  # seconds after which a client that was served is taken for one that has gone
_SMALLER = 0.5  # the cost of what a batch gives way to, as a share of its own


class AbandonedError(Exception):
    """Nobody waits for the batch any longer."""


@dataclass(frozen=True)
class Running:
    """A batch that is computed."""

    cost: float  # of the request that has most in it
    flows: frozenset[Flow]
    is_wanted: Callable[[], bool]


@dataclass(frozen=True)
class _Debt:
    """What a batch has given way to, and until when it makes up for it."""

    cost: float
    until: float


class Queue(Protocol):
    """Something with work that waits."""

    def next_turn(self, most: float, without: frozenset[Flow]) -> float | None:
        """Return the earliest turn of what waits, of at most that cost and of other requests."""

    def turn_of_others(self, but: Hashable) -> float | None:
        """Return the earliest turn of what waits and does not belong to a group."""

    def work(self, most: float, without: frozenset[Flow]) -> float:
        """Compute what is next, of at most that cost and of other requests; called in the thread
        that computes. Returns what it cost."""


class Cores:
    """The thread that computes, the queues that it serves, and whose turn it is."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # of the turns and all queues
        self.turns = Turns()
        self.queues: list[Queue] = []
        self._served: dict[str, float] = {}  # clients that were answered lately, and when
        self._thread: Executor = ThreadPoolExecutor(1, "cores")

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        """Let the thread do some work after what it was given before."""
        return self._thread.submit(work)

    def close(self) -> None:
        """Finish what was submitted, and stop."""
        self._thread.shutdown()

    def turn_of_others(self, but: Hashable) -> float | None:
        """Return the earliest turn of what waits anywhere and does not belong to a group; the
        caller holds the lock."""
        turns = [queue.turn_of_others(but) for queue in self.queues]
        return min((turn for turn in turns if turn is not None), default=None)

    def note_served(self, clients: Iterable[str]) -> None:
        """Remember who is answered now, and forget who was answered long ago."""
        now = time.monotonic()
        with self.lock:
            kept = {name: end for name, end in self._served.items() if now - end < _NEAR}
            self._served = kept | dict.fromkeys(clients, now)

    def served_others(self, client: str) -> bool:
        """Return whether anybody else was answered lately, who may ask again at once; the caller
        holds the lock."""
        now = time.monotonic()
        return any(now - end < _NEAR for name, end in self._served.items() if name != client)

    def compute(self, running: Running, work: Callable[[], Any]) -> Any:
        """Do the work of a batch, giving way; called in the thread that computes.

        Raises `AbandonedError` once nobody waits for it.
        """
        since = time.monotonic()
        debts: list[_Debt] = []

        def between() -> None:
            nonlocal since
            if not running.is_wanted():
                raise AbandonedError
            start = time.monotonic()
            if start - since < PATIENCE:
                return
            debts[:] = [debt for debt in debts if debt.until > start]
            most = _SMALLER * min([running.cost, *(debt.cost for debt in debts)])
            queue = self._next(most, running.flows)
            if queue is not None:
                cost = queue.work(most, running.flows)
                taken = time.monotonic() - start
                debts.append(_Debt(cost, start + taken + _OWN_SHARE * taken))
            since = time.monotonic()

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
