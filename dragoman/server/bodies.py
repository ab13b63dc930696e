"""The memory that the bodies of requests take while they are read and answered. Knows bytes and
clients; no HTTP.

What is small is never counted, so that a short text is read however many uploads there are. The
rest is bounded for each client and for all, so that no client's uploads keep out another's.
"""

from __future__ import annotations

from collections import Counter

from dragoman.server.guard import Limits, Sender

FREE = 65_536  # bytes of every request that are not counted; there are as many as connections


class Bodies:
    """The bytes that all requests hold."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held: Counter[str] = Counter()

    def hold(self, sender: Sender, size: int, more: int) -> bool:
        """Hold `more` bytes of a request that has `size` with them; False where there is no room.

        They are held in either case, until `release`.
        """
        counted = _counted(size) - _counted(size - more)
        self._held[sender.client] += counted
        if not counted:
            return True
        # Whoever has not shown a key leaves room for those who have.
        most = self._limits.bodies if sender.is_known else self._limits.bodies // 2
        own = self._held[sender.client]
        return own <= self._limits.client_bodies and self._held.total() <= most

    def release(self, sender: Sender, size: int) -> None:
        """Give back what a request held."""
        self._held[sender.client] -= _counted(size)
        if self._held[sender.client] <= 0:
            del self._held[sender.client]


def _counted(size: int) -> int:
    return max(0, size - FREE)
