"""Which pairs are most like a small text, by the words and pairs of words that they share. Knows
strings; sees only the sources of that text, never its references.

A shared word counts by how rare it is in the training text; sentences are compared by length, so
that long ones are not preferred. One number is kept for each pair, so any amount can be ranked.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import numpy as np

_MOST_TERMS = 2_000_000  # counted at once


def nearest(texts: Callable[[], Iterable[str]], samples: Sequence[str], count: int) -> list[int]:
    """The places of the `count` texts that are nearest to any of the samples, in their order.

    `texts` is called twice, and gives the same texts each time.
    """
    wanted = {term for sample in samples for term in _terms(sample)}
    seen: Counter[str] = Counter()
    total = 0
    for text in texts():
        total += 1
        if len(seen) < _MOST_TERMS:
            seen.update(set(_terms(text)) & wanted)
    rarity = {term: math.log((total + 1) / (seen[term] + 1)) for term in wanted}
    scores = array("d")
    for text in texts():
        terms = _terms(text)
        shared = sum(rarity[term] for term in set(terms) if term in rarity)
        scores.append(shared / math.sqrt(len(terms) + 1))
    ranked = np.argsort(-np.frombuffer(scores, dtype=np.float64), kind="stable")
    return sorted(int(place) for place in ranked[:count])


def _terms(text: str) -> list[str]:
    """The words of a text and each two neighbours."""
    words = text.casefold().split()
    return words + [f"{one} {other}" for one, other in pairwise(words)]
