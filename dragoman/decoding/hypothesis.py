"""What a search finds. Imports no torch, so that a runtime without it can use the same words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy
    from torch import Tensor

Number = TypeVar("Number", float, "Tensor", "numpy.ndarray")


@dataclass(frozen=True)
class Hypothesis:
    """One output; `tokens` includes neither the start nor the end."""

    tokens: tuple[int, ...]
    # The log-probability (with terms, less the price of where they were said) divided by the length
    # penalty; -inf where nothing was found.
    score: float
    # Of each token and, where the hypothesis is finished, of the end.
    log_probs: tuple[float, ...]

    @property
    def finished(self) -> bool:
        """Whether the output reached its end, rather than its maximum length."""
        return len(self.log_probs) > len(self.tokens)


def length_penalty(length: Number, alpha: float) -> Number:
    """What a log-probability is divided by; `length` counts every token with a probability,
    including the end."""
    return ((5.0 + length) / 6.0) ** alpha
