"""What a search is given. Knows no model and no text: a step is a function, a state can be
reordered.

Shapes: B sentences, K beams, V vocabulary, T positions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

import numpy
from torch import Tensor

NEVER = float("-inf")
Number = TypeVar("Number", float, Tensor, numpy.ndarray)


class State(Protocol):
    """What the step remembers of each sentence and beam; the K beams of a sentence share its
    memory."""

    def reorder(self, beams: Tensor) -> None:
        """In place; beams (B, K) says, within each sentence, which old beam every new beam
        continues."""

    def keep(self, sentences: Tensor) -> None:
        """In place; sentences (B',) are the rows that stay, in order. The others are over."""


S = TypeVar("S", bound=State)
# (tokens (B, K), state) -> logits of the next token (B, K, V), which become the search's own; the
# state moves on by one position. Log-probabilities are logits too.
Step = Callable[[Tensor, S], Tensor]


class Choice(NamedTuple):
    """The continuations taken at one position, each (B, K)."""

    tokens: Tensor
    log_probs: Tensor  # of these tokens
    totals: Tensor  # the sums up to them; -inf where nothing was to be had
    beams: Tensor  # the beam that each of them continues


class Chooser(Protocol):
    """How the next tokens are taken; what it remembers moves with the beams."""

    def choose(self, live: Tensor, log_probs: Tensor, length: int) -> Choice:
        """live (B, K) are the sums so far, -inf where nothing lives; `length` tokens have been
        chosen before."""

    def keep(self, sentences: Tensor) -> None:
        """As State.keep."""


def length_penalty(length: Number, alpha: float) -> Number:
    """What a log-probability is divided by; `length` counts every token with a probability, the
    end among them."""
    return ((5.0 + length) / 6.0) ** alpha
