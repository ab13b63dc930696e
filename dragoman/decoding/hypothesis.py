"""What a search finds. Imports no torch, so that a runtime without it can use the same words."""

from __future__ import annotations

from dataclasses import dataclass


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
