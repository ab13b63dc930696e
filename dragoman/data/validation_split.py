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
        (self._salt,) = np.frombuffer(salt, dtype="<u8")
        # Only pairs with low salted keys are candidates, to save memory.
        enough = 8 * most + 1000
        share = min(1.0, enough / max(1, pairs))
        ceiling = int(share * (2**64 - 2**12))
        self._ceiling = np.uint64(ceiling)
        self._candidates: list[Keys] = []

    def consider(self, groups: Groups, drop_repeats: bool) -> None:
        """Take the candidates among some pairs."""
        rows = groups.rows
        if drop_repeats:
            rows = rows[~groups.repeats]
        salted = rows[:, 0] ^ self._salt
        is_low = salted <= self._ceiling
        self._candidates.append(rows[is_low])

    def choose(self, kept: int) -> Keys:
        """Return the ordinals of the pairs to be set aside: at most a twentieth of those kept."""
        share = max(1, kept // 20)
        limit = min(self._most, share)
        rows = np.concatenate(self._candidates)
        salted = rows[:, 0] ^ self._salt
        order = np.argsort(salted, kind="stable")
        sources, ordinals = rows[order].T
        differs = sources[1:] != sources[:-1]
        begins = np.append(True, differs)
        starts = np.flatnonzero(begins)
        of_sources = np.split(ordinals, starts[1:])
        chosen = []
        total = 0
        for pairs in of_sources:
            if total + len(pairs) <= limit:
                chosen.append(pairs)
                total += len(pairs)
        if not chosen and len(starts) > 1:
            smallest = min(of_sources, key=len)
            chosen.append(smallest)
        return np.concatenate(chosen) if chosen else ordinals[:0]
