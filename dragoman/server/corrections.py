"""Readers' corrections: translations that were edited and saved, in an SQLite file that a kill at
any moment leaves whole. Knows sentences and languages; no model and no HTTP."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from itertools import chain, islice
from pathlib import Path

from dragoman.errors import FullDiskError, InputError, MissingDependencyError

# The least similarity of a hint: the share of the letters that both have in common, in order.
_NEAR = 0.7
_LONGEST = 1000  # characters of a source that others are compared with
# Characters that it is compared with, sources of the most similar length first: some 30
# milliseconds.
_MOST = 4_000_000
_COLUMNS = "source_language, target_language, source, target, model, time, user"
_SAVE = f"INSERT INTO corrections ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
# Files of earlier versions have no users; what knows only the older columns can read newer files.
_WITH_USER = "ALTER TABLE corrections ADD COLUMN user TEXT NOT NULL DEFAULT ''"
_TYPES = _COLUMNS.replace(",", " TEXT NOT NULL,") + " TEXT NOT NULL DEFAULT ''"
_TABLE = f"""
CREATE TABLE IF NOT EXISTS corrections (id INTEGER PRIMARY KEY, {_TYPES});
CREATE INDEX IF NOT EXISTS sources ON corrections (source_language, target_language, source);
"""


class StoreError(InputError):
    """The file of corrections cannot be read or written. The message has its path, which is for
    the operator alone."""


@dataclass(frozen=True)
class Correction:
    """A translation as a reader would have it."""

    source_language: str
    target_language: str
    source: str
    target: str
    model: str  # whose translation was corrected
    when: str  # in UTC, as ISO 8601
    user: str = ""  # whose it is: see correction_users.py; empty for the operator's own


class Corrections:
    """The corrections of one file, for any number of threads and processes.

    Of those with the same source, the newest counts.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._seen = 0  # the last row that the next table knows
        # (languages) -> length -> sources: what may be near is found without reading the file.
        self._sources: dict[tuple[str, str], dict[int, dict[str, None]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        _make_private(path)
        with self._errors():
            self._database = sqlite3.connect(
                path, timeout=30, isolation_level=None, check_same_thread=False
            )
            # With FULL the log is on the disk before `save` returns, so that even a loss of power
            # takes nothing back. What is saved goes from the log into the file at once, so that
            # the file alone has all of it.
            self._database.executescript(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; "
                f"PRAGMA wal_autocheckpoint = 1; {_TABLE}"
            )
            self._add_users()

    def save(self, correction: Correction) -> None:
        """Save a correction; it is on the disk when this returns."""
        self._rows(_SAVE, _values(correction))

    def save_all(self, corrections: Iterable[Correction]) -> int:
        """Save many corrections, all of them or none; return how many of them were not there yet,
        word for word."""
        rows = [_values(correction) for correction in corrections]
        saved = 0
        with self._lock, self._errors(), self._transaction():
            for row in rows:
                same = "source_language = ? AND target_language = ? AND source = ?"
                newest = f"SELECT target FROM corrections WHERE {same} ORDER BY id DESC LIMIT 1"
                if self._database.execute(newest, row[:3]).fetchone() != (row[3],):
                    self._database.execute(_SAVE, row)
                    saved += 1
        return saved

    def exact(self, source_language: str, target_language: str, source: str) -> Correction | None:
        """Return the newest correction of this very source."""
        same = "source_language = ? AND target_language = ? AND source = ?"
        values = map(_clean, (source_language, target_language, source))
        rows = self._rows(
            f"SELECT {_COLUMNS} FROM corrections WHERE {same} ORDER BY id DESC LIMIT 1", values
        )
        return Correction(*rows[0]) if rows else None

    def near(
        self, source_language: str, target_language: str, source: str, count: int = 3
    ) -> list[tuple[float, Correction]]:
        """Return corrections of similar sources, the most similar first, without this very one.

        Each comes with its similarity, from 0.7 to 1.
        """
        try:
            from rapidfuzz import fuzz, process
        except ImportError:
            raise MissingDependencyError.for_extra("finding near matches", "serve") from None
        source = _clean(source)
        if not source or len(source) > _LONGEST:
            return []
        candidates = self._candidates((source_language, target_language), source)
        matches = process.extract(
            source, candidates, scorer=fuzz.ratio, score_cutoff=100 * _NEAR, limit=count
        )
        near = []
        for text, percent, _ in matches:
            correction = self.exact(source_language, target_language, text)
            if correction is not None:
                near.append((percent / 100, correction))
        return near

    def all(self) -> Iterator[Correction]:
        """Yield the newest correction of each source, in the order in which they came."""
        newest = "SELECT max(id) FROM corrections GROUP BY source_language, target_language, source"
        rows = self._rows(f"SELECT {_COLUMNS} FROM corrections WHERE id IN ({newest}) ORDER BY id")
        return (Correction(*row) for row in rows)

    def of_each_user(self, source_language: str, target_language: str) -> list[Correction]:
        """Return what every user would have instead of each source, in the order in which it came:
        the newest of those by one user, and beside it what others say."""
        rows = self._rows(
            f"SELECT {_COLUMNS} FROM corrections WHERE id IN (SELECT max(id) FROM corrections "
            "WHERE source_language = ? AND target_language = ? GROUP BY source, user) ORDER BY id",
            (source_language, target_language),
        )
        return [Correction(*row) for row in rows]

    def newest(self) -> int:
        """Return the number of the last correction that was saved; 0 if there is none."""
        rows = self._rows("SELECT coalesce(max(id), 0) FROM corrections")
        return int(rows[0][0])

    def copy_to(self, path: Path) -> int:
        """Write all that is saved into another file of this kind; return how many sources it has.

        Others may go on saving meanwhile.
        """
        _make_private(path)
        with self._lock, self._errors():
            copy = sqlite3.connect(path)
            try:
                self._database.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")  # one file, whole by itself
            finally:
                copy.close()
        return sum(1 for _ in self.all())

    def close(self) -> None:
        """Put all that was saved into the one file, and close it; nothing can be asked any more."""
        with self._lock:
            with contextlib.suppress(sqlite3.Error):  # closed before, or damaged: nothing to put
                self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._database.close()

    def _rows(self, statement: str, values: Iterable[object] = ()) -> list[tuple[str, ...]]:
        with self._lock, self._errors():
            return self._database.execute(statement, tuple(values)).fetchall()

    def _candidates(self, languages: tuple[str, str], source: str) -> list[str]:
        """Return other sources whose length lets them be near, the nearest first.

        There are no more of them than can be compared.
        """
        columns = "id, source_language, target_language, source"
        rows = self._rows(
            f"SELECT {columns} FROM corrections WHERE id > ? ORDER BY id", [self._seen]
        )
        with self._lock:
            for number, source_language, target_language, text in rows:
                self._sources[source_language, target_language][len(text)][text] = None
                self._seen = max(self._seen, int(number))
            by_length = self._sources.get(languages, {})
            reach = _NEAR / (2 - _NEAR)
            least = len(source) * reach
            most = len(source) / reach
            lengths = [length for length in by_length if least <= length <= most]
            lengths.sort(key=lambda length: abs(length - len(source)))
            texts = chain.from_iterable(by_length[length] for length in lengths)
            return [text for text in islice(texts, _MOST // len(source)) if text != source]

    def _add_users(self) -> None:
        """Let a file of an older version have a column for users."""
        columns = self._database.execute("PRAGMA table_info(corrections)").fetchall()
        if "user" in [name for _, name, *_ in columns]:
            return
        try:
            self._database.execute(_WITH_USER)
        except sqlite3.OperationalError as error:
            if "duplicate column" not in str(error):  # another process was quicker
                raise

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                raise FullDiskError(
                    f"no space is left to write {self._path}; the corrections before are kept: "
                    "free some space, then try again"
                ) from None
            raise StoreError(
                f"{self._path} cannot be used for corrections ({error}); name another file"
            ) from None


def _values(correction: Correction) -> list[str]:
    """The row of a correction, which has text on both sides."""
    values = [_clean(value) for value in astuple(correction)]
    if not values[2] or not values[3]:
        raise InputError(
            "a correction needs a source and a target, and one of them is empty; "
            "give the text of both"
        )
    return values


def _make_private(path: Path) -> None:
    """Make a new file that only its owner may read: it will have users' text. SQLite gives the
    files beside it the same mode."""
    with contextlib.suppress(OSError):  # it exists, or cannot be made, which SQLite will tell
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _clean(text: str) -> str:
    """Return a text without white space around it and without halves of surrogate pairs."""
    return text.strip().encode("utf-8", "replace").decode()
