"""How many steps of training and lines of translation fit into minutes, from a pace that was
measured once. Knows numbers only: the same pace gives the same counts, whatever the clock says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_FEWEST_STEPS = 8
_FEWEST_LINES = 32
VALIDATIONS = 6  # of one training
TOKENS_A_PAIR = 25  # about, of one side


@dataclass(frozen=True)
class Pace:
    """Seconds on this machine."""

    token: float  # of training, for one token of a batch
    line: float  # of greedy translation
    start: float  # of a training, besides its steps and its text
    pair: float = 0.0  # of text that becomes tokens, before a training

    @classmethod
    def of(cls, numbers: Mapping[str, float]) -> Pace:
        """The pace that a journal has."""
        return cls(numbers["token"], numbers["line"], numbers["start"], numbers["pair"])


@dataclass(frozen=True)
class Allotment:
    """What one training has to do besides its steps."""

    minutes: float
    batch_tokens: int
    r_drop: bool = False
    sentences: int = 0  # translated at each validation
    judged: int = 0  # translated by beam search in the end
    pairs: int = 0
    passes: float = 0.0  # most passes over the pairs; 0 sets no limit


def steps_within(allotment: Allotment, pace: Pace) -> int:
    """The optimiser steps that fit."""
    scoring = (VALIDATIONS * allotment.sentences + 4 * allotment.judged) * pace.line
    preparing = pace.start + allotment.pairs * pace.pair
    seconds = 60 * allotment.minutes - preparing - scoring
    of_one = pace.token * allotment.batch_tokens * (2 if allotment.r_drop else 1)
    steps = int(seconds / max(of_one, 1e-9))
    if allotment.passes:
        tokens = allotment.passes * allotment.pairs * TOKENS_A_PAIR
        steps = min(steps, int(tokens / allotment.batch_tokens) + 1)
    return max(_FEWEST_STEPS, steps)


def lines_within(minutes: float, pace: Pace) -> int:
    """The lines that can be translated."""
    return max(_FEWEST_LINES, int(60 * minutes / max(pace.line, 1e-9)))
