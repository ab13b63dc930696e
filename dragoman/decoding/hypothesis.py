"""What a search finds. Imports no torch, so that a runtime without it can answer in the same words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """One output; `tokens` has neither the start nor the end."""

    tokens: tuple[int, ...]
    # The log-probability (with terms, less what their places cost) divided by the length penalty;
    # -inf where nothing was found.
    score: float
    log_probs: tuple[float, ...]  # of each token and, where the hypothesis is finished, of the end

    @property
    def finished(self) -> bool:
        """False where the output was cut at its maximum length."""
        return len(self.log_probs) > len(self.tokens)
