"""Outputs that keep to a grammar: an automaton says which tokens may follow in each beam. Knows
numbers only.

An automaton is whatever can tell the tokens that may come next from those that came before: nested
brackets (`tree_grammar`), or one that walks through a schema. It lives beside the model, so that a
step of any runtime serves it: in float, in 8 bits, or as a captured graph.

Shapes: B sentences, K beams, V vocabulary.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from dragoman.decoding.rules import Rules
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER, Problem, S


class Automaton(Protocol):
    """What may be said next. What it remembers moves with the beams.

    Beams that are dead are walked as well, with tokens that were not allowed; whatever it answers
    for them is ignored. A living beam always has a token that is allowed, so that every output can
    be finished within its maximum length.
    """

    def allowed(self, length: int) -> Tensor:
        """Return (B, K, V), True for each token that may come after `length` others."""

    def follow(self, tokens: Tensor, beams: Tensor) -> None:
        """Take the tokens (B, K) that were chosen and the beams they continue."""

    def keep(self, sentences: Tensor) -> None:
        """Drop finished sentences, as `State.keep` does."""


class GrammarRules(Rules):
    """The rules of a search, and those of an automaton."""

    def __init__(self, problem: Problem[S], options: SearchOptions, automaton: Automaton) -> None:
        super().__init__(problem, options)
        self._automaton = automaton

    def apply(self, log_probs: Tensor, length: int) -> None:
        """Forbid tokens in log_probs (B, K, V), those of the token after `length` others."""
        super().apply(log_probs, length)
        forbidden = ~self._automaton.allowed(length)
        log_probs.masked_fill_(forbidden, NEVER)

    def follow(self, tokens: Tensor, beams: Tensor) -> None:
        """Remember the tokens (B, K) that were chosen and the beams they continue."""
        super().follow(tokens, beams)
        self._automaton.follow(tokens, beams)

    def keep(self, sentences: Tensor) -> None:
        """Drop finished sentences, as `State.keep` does."""
        super().keep(sentences)
        self._automaton.keep(sentences)
