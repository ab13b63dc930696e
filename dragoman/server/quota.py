"""How many characters each client has had translated today, and whether it may have more. Knows
names of clients and days; no HTTP.

The counts are in memory, so that they begin again when the service does.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta

_CLIENTS = 10_000  # that are remembered; the one that asked longest ago goes first


class Quota:
    """The characters of a day, for each key or address; by UTC."""

    def __init__(self, most: int) -> None:
        self.most = most  # 0 for no limit
        self._day = today()
        self._used: OrderedDict[str, int] = OrderedDict()

    def used(self, client: str) -> int:
        """Return the characters that a client has had translated today."""
        self._begin_day()
        return self._used.get(client, 0)

    def take(self, client: str, characters: int) -> bool:
        """Count characters of a client, or return False where it would have too many."""
        used = self.used(client) + characters
        if self.most and used > self.most:
            return False
        self._used[client] = used
        self._used.move_to_end(client)
        if len(self._used) > _CLIENTS:
            self._used.popitem(last=False)
        return True

    def seconds_left(self) -> int:
        """Return the seconds until the next day begins."""
        now = datetime.now(UTC)
        midnight = datetime.combine(now.date() + timedelta(1), datetime.min.time(), UTC)
        return int((midnight - now).total_seconds()) + 1

    def _begin_day(self) -> None:
        day = today()
        if day != self._day:
            self._day = day
            self._used.clear()


def today() -> date:
    """Return the day by UTC."""
    return datetime.now(UTC).date()
