"""Whose sentence is next: fair queueing between clients and between the requests of a client.
Knows costs and turns; nothing of translation.

A sentence's turn is the virtual time at which it would be done if all requests that wait were
served side by side, each at the same pace, and the requests of one client together at the pace of
one (self-clocked fair queueing, Golestani 1994). Those of an early turn go first: a short request
passes the hundredth sentence of a long one, and a client with many requests does not pass the
others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass(eq=False)
class Flow:
    """The sentences of one request."""

    client: str = ""  # the name of a key, or an address
    last: float = 0.0  # the turn of its latest sentence
    waiting: int = 0  # sentences


class Turns:
    """Gives out turns. Whoever uses it holds a lock."""

    def __init__(self) -> None:
        self._now = 0.0  # the turn of what is being served
        self._flows: Counter[str] = Counter()  # of each client that has sentences waiting
        self._characters: Counter[str] = Counter()  # waiting, of each client

    def waiting(self, client: str) -> int:
        """Return the characters of a client that wait."""
        return self._characters[client]

    def is_alone(self, client: str) -> bool:
        """Return whether nobody but a client has anything that waits."""
        return len(self._flows) == (client in self._flows)

    def begin(self, flow: Flow) -> float:
        """Return when a flow's next sentence would begin to be served, were it to enter now."""
        return max(flow.last, self._now)

    def enter(self, flow: Flow, characters: int, cost: float) -> float:
        """Return the turn of a flow's next sentence."""
        if flow.waiting == 0:
            self._flows[flow.client] += 1
        flow.waiting += 1
        self._characters[flow.client] += characters
        flow.last = self.begin(flow) + cost * self._flows[flow.client]
        return flow.last

    def leave(self, flow: Flow, characters: int, turn: float | None = None) -> None:
        """Forget a sentence that is served at its `turn`, or that nobody waits for any longer."""
        flow.waiting -= 1
        _subtract(self._characters, flow.client, characters)
        if flow.waiting == 0:
            _subtract(self._flows, flow.client, 1)
        if turn is not None:
            self._now = max(self._now, turn)


def _subtract(counter: Counter[str], client: str, count: int) -> None:
    counter[client] -= count
    if counter[client] <= 0:
        del counter[client]
