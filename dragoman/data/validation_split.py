"""Which pairs are set aside for validation. Knows 64-bit keys and ordinals, and knows no text."""

from __future__ import annotations

import numpy as np

from dragoman.data.duplicates import Groups, Keys, key


class ValidationSplit:
    """Chooses pairs for validation at random, with every pair of each source that is chosen."""

    def __init__(
        self,
        most: int,
        pairs: int,
        seed: int,
    ) -> None:
        self._most = most
        salt = key(f"held out {seed}")
        self._salt = np.frombuffer(salt, dtype="<u8")[0]
        # Only pairs with low salted keys are candidates, to save memory.
        enough = 8 * most + 1000
        share = min(1.0, enough / max(1, pairs))
        self._ceiling = np.uint64(int(share * (2**64 - 2**12)))
        self._candidates: list[Keys] = []

    def consider(self, groups: Groups, drop_repeats: bool) -> None:
        """Take the candidates among some pairs."""
        rows = groups.rows[~groups.repeats] if drop_repeats else groups.rows
        salted = rows[:, 0] ^ self._salt
        self._candidates.append(rows[salted <= self._ceiling])

    def choose(self, kept: int) -> Keys:
        """Return the ordinals of the pairs to be set aside: at most a twentieth of those kept."""
        limit = min(self._most, max(1, kept // 20))
        rows = np.concatenate(self._candidates)
        salted = rows[:, 0] ^ self._salt
        rows = rows[np.argsort(salted, kind="stable")]
        sources = rows[:, 0]
        differs = sources[1:] != sources[:-1]
        starts = np.flatnonzero(np.append(True, differs))
        sizes = np.diff(np.append(starts, len(rows)))
        chosen = []
        total = 0
        for start, size in zip(starts, sizes, strict=True):
            if total + size <= limit:
                chosen.append(rows[start : start + size, 1])
                total += size
        if not chosen and len(starts) > 1:
            smallest = np.argmin(sizes)
            start = starts[smallest]
            chosen.append(rows[start : start + sizes[smallest], 1])
        return np.concatenate(chosen) if chosen else rows[:0, 1]
