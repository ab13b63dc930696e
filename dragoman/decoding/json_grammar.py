"""Outputs that a finite automaton over characters accepts: which tokens may follow in each state,
and where they lead. Knows numbers only.

A token is a row of character classes. From a state it leads where its characters lead one after the
other; a table of that for all tokens is made when a state is first met, and kept. Every output can
be finished: a token may follow only if the rest fits into the maximum length, character by
character.

Shapes: B sentences, K beams, V vocabulary, L characters of the longest token, N states, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.decoding.step import Problem, S

DEAD = 0
_KEPT = 2**26  # numbers of the tables that are kept
Integers = NDArray[numpy.int32]


@dataclass(frozen=True)
class TokenMachine:
    """An automaton and the tokens that walk through it."""

    table: Integers  # (N, C): the next state; DEAD where there is none
    accepts: NDArray[numpy.bool_]  # (N,): where an output may end
    distance: Integers  # (N,): the fewest characters, each a token, until it may
    tokens: Integers  # (V, L): the classes of each token's characters, then the class C - 1
    usable: NDArray[numpy.bool_]  # (V,): tokens that are text
    start: int

    @property
    def shortest(self) -> int:
        """The tokens of the shortest output and its end, one for each character."""
        return int(self.distance[self.start]) + 1


class JsonAutomaton:
    """Where each beam stands."""

    def __init__(self, machine: TokenMachine, problem: Problem[S], beams: int) -> None:
        max_lengths = problem.max_lengths
        assert int(max_lengths.min()) >= machine.shortest, "an output has room for the shortest"
        self._machine = machine
        self._end = problem.end
        self._device = max_lengths.device
        self._max_lengths = max_lengths.cpu().numpy()[:, None]  # (B, 1)
        self._states = numpy.full((len(max_lengths), beams), machine.start, dtype=numpy.int32)
        self._leads: dict[int, Integers] = {}

    def allowed(self, length: int) -> Tensor:
        """Return (B, K, V), True for each token that may come after `length` others."""
        machine = self._machine
        # What is left after this token and the end.
        room = self._max_lengths - (length + 2)
        shape = (*self._states.shape, len(machine.usable))
        allowed = numpy.zeros(shape, dtype=numpy.bool_)
        for place in numpy.ndindex(*self._states.shape):
            state = int(self._states[place])
            following = self._following(state)
            reached = machine.distance[following] <= room[place[0], 0]
            allowed[place] = reached & (following != DEAD)
            allowed[(*place, self._end)] = machine.accepts[state]
        return torch.from_numpy(allowed).to(self._device)

    def follow(self, tokens: Tensor, beams: Tensor) -> None:
        """Take the tokens (B, K) that were chosen and the beams they continue."""
        chosen = tokens.cpu().numpy()
        continued = numpy.take_along_axis(self._states, beams.cpu().numpy(), axis=1)
        states = numpy.zeros_like(continued)
        for place in numpy.ndindex(*continued.shape):
            state = int(continued[place])
            token = int(chosen[place])
            is_end = token == self._end
            states[place] = state if is_end else self._following(state)[token]
        self._states = states

    def keep(self, sentences: Tensor) -> None:
        """Drop finished sentences, as `State.keep` does."""
        rows = sentences.cpu().numpy()
        self._states = self._states[rows]
        self._max_lengths = self._max_lengths[rows]

    def _following(self, state: int) -> Integers:
        """(V,) the state that each token leads to."""
        known = self._leads.get(state)
        if known is not None:
            return known
        machine = self._machine
        if len(self._leads) * len(machine.usable) > _KEPT:
            self._leads.clear()
        reached = numpy.full(len(machine.usable), state, dtype=numpy.int32)
        for column in machine.tokens.T:
            reached = machine.table[reached, column]
        reached[~machine.usable] = DEAD
        self._leads[state] = reached
        return reached
