"""What a search is given and what it gives back. Knows no model and no text: a step is a function, a state can be reordered.

Shapes: B sentences, K beams, V vocabulary, T positions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from torch import Tensor

Number = TypeVar("Number", float, Tensor)


class State(Protocol):
    """What the step remembers of each sentence and beam; the K beams of a sentence share its memory."""

    def reorder(self, beams: Tensor) -> None:
        """In place; beams (B, K) says, within each sentence, which old beam every new beam continues."""

    def keep(self, sentences: Tensor) -> None:
        """In place; sentences (B',) are the rows that stay, in order. The others are over."""


S = TypeVar("S", bound=State)
# (tokens (B, K), state) -> log-probabilities of the next token (B, K, V), float32; the state moves on by one position.
Step = Callable[[Tensor, S], Tensor]


@dataclass(frozen=True)
class Hypothesis:
    """One output; `tokens` has neither the start nor the end."""

    tokens: tuple[int, ...]
    score: float  # the log-probability divided by the length penalty; -inf when the step gave no numbers to go by
    log_probs: tuple[float, ...]  # of each token and, where the hypothesis is finished, of the end

    @property
    def finished(self) -> bool:
        """False where the output was cut at its maximum length."""
        return len(self.log_probs) > len(self.tokens)


def length_penalty(length: Number, alpha: float) -> Number:
    """What a log-probability is divided by; `length` counts every token with a probability, the end among them."""
    return ((5.0 + length) / 6.0) ** alpha
