"""What a search is given: a step function, a state that can be reordered, and limits. Knows no
model and no text.

Shapes: B sentences, K beams, V vocabulary, T positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from torch import Tensor

NEVER = float("-inf")
Rows = Sequence[Sequence[int]]  # tokens of each sentence
# How many tokens have been chosen: a number or, where a graph is captured, (1,) on the device.
Place = int | Tensor


class State(Protocol):
    """What the step remembers of each sentence and beam. The K beams of a sentence share its
    memory."""

    def reorder(self, beams: Tensor) -> None:
        """Continue other beams, in place: beams (B, K) names, within each sentence, the old beam
        that every new beam continues."""

    def keep(self, sentences: Tensor) -> None:
        """Drop finished sentences, in place: sentences (B',) are the rows that stay, in order."""


S = TypeVar("S", bound=State)
# (tokens (B, K), state) -> logits of the next token (B, K, V), which the search may overwrite. The
# state moves on by one position.
Step = Callable[[Tensor, S], Tensor]


@dataclass(frozen=True)
class Problem(Generic[S]):
    """A search problem: how to take a step, where to start, and what each output must keep to."""

    step: Step[S]
    state: S
    # (B,), on the step's device: the most tokens each output may have, its end counted; at least 1
    max_lengths: Tensor
    start: int  # the token that the first step reads
    end: int  # the token that finishes an output
    prefixes: Rows = ()  # the tokens each output begins with
    spared: Rows = ()  # tokens of each sentence that may complete an n-gram said before
    once: Rows = ()  # tokens of each sentence that may be said once
    normalised: bool = False  # whether the step returns log-probabilities rather than logits
    # Whether a sentence is over once n outputs have finished, though others might end better.
    eager: bool = False


class Choice(NamedTuple):
    """The continuations taken at one position, each (B, K)."""

    tokens: Tensor
    log_probs: Tensor  # of these tokens
    totals: Tensor  # sums of the log-probabilities up to these tokens; -inf where there is none
    beams: Tensor  # the beam that each of them continues


class Chooser(Protocol):
    """A way to choose the next tokens. What it remembers moves with the beams."""

    def choose(self, live: Tensor, log_probs: Tensor, length: Place) -> Choice:
        """Choose continuations: live (B, K) are the sums so far, -inf where nothing lives;
        `length` tokens have been chosen before."""

    def keep(self, sentences: Tensor) -> None:
        """Drop finished sentences, as `State.keep` does."""
