"""How often each client may ask. Knows names of clients and the clock; no HTTP."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass

_CLIENTS = 10_000  # that are remembered; the one that asked longest ago goes first


@dataclass(frozen=True)
class Bucket:
    """The requests that a client has left, and when that was counted."""

    left: float
    when: float

    def taken(self, per_minute: int, now: float) -> tuple[Bucket, float]:
        """Return the bucket after a request, refilled with time, and the seconds to wait where it
        was empty."""
        left = min(per_minute, self.left + (now - self.when) * per_minute / 60)
        if left >= 1 or not per_minute:
            return Bucket(max(0.0, left - 1), now), 0.0
        return Bucket(left, now), (1 - left) * 60 / per_minute


class Rates:
    """A bucket for each client, in memory."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, client: str, per_minute: int) -> float:
        """Count a request of a client; return the seconds that it has to wait, 0 where it need
        not."""
        now = time.monotonic()
        bucket = self._buckets.pop(client, Bucket(per_minute, now))
        self._buckets[client], wait = bucket.taken(per_minute, now)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        return wait
