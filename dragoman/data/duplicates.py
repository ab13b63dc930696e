"""Which pairs were seen before, for any number of pairs. Knows 64-bit keys and ordinals, and knows
no text.

Every pair leaves 24 bytes (key of its source, key of its target, ordinal) in one of 64 files,
chosen by the source's key. All that shares a source lies in one file, so one file at a time is
sorted and looked at: memory is that of the largest.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PARTS = 64
_FLUSH = 1 << 16
Keys = NDArray[np.uint64]


def key(text: str) -> bytes:
    """Return eight bytes that stand for a text, the same on every machine."""
    return blake2b(text.encode("utf-8"), digest_size=8).digest()


@dataclass(frozen=True)
class Groups:
    """The pairs of one file. Ordinals count all the pairs that were read."""

    rows: Keys  # (n, 2): source key and ordinal of every pair, equal pairs side by side
    repeats: NDArray[np.bool_]  # (n,): the row is a duplicate of the one before it
    duplicates: Keys  # (d, 2): ordinals of a duplicate and of the equal pair before it
    several: Keys  # (s, 2): for each source with several targets, ordinals of two pairs that differ


class Sightings:
    """All pairs that were read: written one by one, then read back in groups."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._files = [folder / f"{part:02}" for part in range(PARTS)]
        self._keys = bytearray()
        self._ordinals = array("Q")

    def add(
        self,
        source: bytes,
        target: bytes,
        ordinal: int,
    ) -> None:
        """Note a pair by the keys of its sides."""
        self._keys += source + target
        self._ordinals.append(ordinal)
        if len(self._ordinals) == _FLUSH:
            self._flush()

    def groups(self) -> Iterator[Groups]:
        """Yield the pairs file by file; each file is deleted once it has been read."""
        self._flush()
        for file in self._files:
            if file.exists():
                rows = np.fromfile(file, dtype="<u8").reshape(-1, 3)
                file.unlink()
                source, target, ordinal = rows.T
                order = np.lexsort((ordinal, target, source))
                yield _group(rows[order])

    def _flush(self) -> None:
        keys = np.frombuffer(bytes(self._keys), dtype="<u8").reshape(-1, 2)
        ordinals = np.frombuffer(self._ordinals, dtype=np.uint64)
        rows = np.column_stack([keys, ordinals])
        source = rows[:, 0]
        parts = (source >> np.uint64(58)).astype(np.int64)
        order = np.argsort(parts, kind="stable")
        bounds = np.searchsorted(parts[order], np.arange(PARTS + 1))
        for file, start, end in zip(self._files, bounds, bounds[1:], strict=False):
            if end > start:
                with file.open("ab") as out:
                    out.write(rows[order[start:end]].tobytes())
        self._keys = bytearray()
        self._ordinals = array("Q")


def _group(rows: Keys) -> Groups:
    source, target, ordinal = rows.T
    same_source = source[1:] == source[:-1]
    same_target = target[1:] == target[:-1]
    same_pair = same_source & same_target
    neighbours = np.column_stack([ordinal[1:], ordinal[:-1]])
    differ = np.flatnonzero(same_source & ~same_pair)
    _, first_of_source = np.unique(source[differ], return_index=True)
    return Groups(
        rows=rows[:, [0, 2]],
        repeats=np.append(False, same_pair),
        duplicates=neighbours[same_pair],
        several=neighbours[differ[first_of_source]],
    )


class Earliest:
    """A count of rows of ordinals, and the few rows that come first in the text."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.count = 0
        self.rows: Keys = np.empty((0, 2), dtype=np.uint64)

    def add(self, rows: Keys) -> None:
        """Count some rows."""
        self.count += len(rows)
        rows = np.concatenate([self.rows, rows])
        order = np.argsort(rows[:, 0])
        self.rows = rows[order[: self._most]]
