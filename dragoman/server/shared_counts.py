"""Rates and quotas that several processes count together, in an SQLite file that lives as long as
the service. Knows names of clients, days and the clock; no HTTP."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.server.quota import Quota, today
from dragoman.server.rates import Bucket, Rates

_CLIENTS = 10_000  # that are remembered; the one that asked longest ago goes first
_TABLES = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS rates (client TEXT PRIMARY KEY, remaining REAL, counted REAL);
CREATE INDEX IF NOT EXISTS oldest ON rates (counted);
CREATE TABLE IF NOT EXISTS used (client TEXT PRIMARY KEY, day TEXT, characters INTEGER,
    counted REAL);
CREATE INDEX IF NOT EXISTS first_used ON used (counted);
"""


class _Counts:
    """A connection to the file, for all threads of a process."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._database = sqlite3.connect(
            path, timeout=30, isolation_level=None, check_same_thread=False
        )
        self._database.executescript(_TABLES)

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """A change that no other process sees half."""
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")


class SharedRates(Rates):
    """A bucket for each client, in the file. The clock is that of the machine."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._counts = _Counts(path)

    def take(self, client: str, per_minute: int) -> float:
        """Count a request of a client; return the seconds that it has to wait."""
        if not per_minute:
            return 0.0
        now = time.monotonic()
        with self._counts.changing() as database:
            row = database.execute(
                "SELECT remaining, counted FROM rates WHERE client = ?", (client,)
            ).fetchone()
            bucket = Bucket(*row) if row else Bucket(per_minute, now)
            bucket, wait = bucket.taken(per_minute, now)
            database.execute(
                "REPLACE INTO rates VALUES (?, ?, ?)", (client, bucket.left, bucket.when)
            )
            if row is None:
                _forget(database, "rates")
        return wait


class SharedQuota(Quota):
    """The characters of a day for each client, in the file."""

    def __init__(self, path: Path, most: int) -> None:
        super().__init__(most)
        self._counts = _Counts(path)

    def used(self, client: str) -> int:
        """Return the characters that a client has had translated today."""
        with self._counts.changing() as database:
            return _used(database, client)

    def take(self, client: str, characters: int) -> bool:
        """Count characters of a client, or return False where it would have too many."""
        day = str(today())
        with self._counts.changing() as database:
            before = _used(database, client)
            used = before + characters
            if self.most and used > self.most:
                return False
            database.execute(
                "REPLACE INTO used VALUES (?, ?, ?, ?)", (client, day, used, time.monotonic())
            )
            if not before:  # each client once a day: this looks at the whole table
                database.execute("DELETE FROM used WHERE day <> ?", (day,))
                _forget(database, "used")
        return True


def _used(database: sqlite3.Connection, client: str) -> int:
    row = database.execute(
        "SELECT characters FROM used WHERE client = ? AND day = ?", (client, str(today()))
    ).fetchone()
    return int(row[0]) if row else 0


def _forget(database: sqlite3.Connection, table: str) -> None:
    """Remove the clients that asked longest ago, where there are more than are remembered."""
    database.execute(
        f"DELETE FROM {table} WHERE client IN "
        f"(SELECT client FROM {table} ORDER BY counted DESC LIMIT -1 OFFSET ?)",
        (_CLIENTS,),
    )
