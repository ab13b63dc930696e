"""A sentence that waits for a model: what it costs, and which others may share a batch with it.
Knows requests and turns; nothing of threads."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dragoman.decoding.search_options import SearchOptions
from dragoman.server.turns import Flow
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translate import Translator

# All of a batch are answered at its end, so sentences share one with those of like cost: up to this
# one with each other, up to the next likewise but with fewer, and above it with their own request
# alone, which can end when its client has gone.
SHORT = 200
_LONG = 400
# How much more than its beam says a search costs that is held to terms, or that is done twice.
_GLOSSARY = 4
_CAREFUL = 2
_FUNCTION = 8  # what a function of the translator costs, in times of a translation

# Sentences with equal requests are translated together.
Work = TranslateRequest | Callable[[Translator], Any]


@dataclass(frozen=True, eq=False)
class Item:
    """A sentence that waits."""

    text: str
    work: Work
    flow: Flow
    cost: float
    begin: float  # the virtual time at which it would begin, were all served side by side
    turn: float  # and the one at which it would be done
    before: tuple[str, ...] = ()  # the sentences before it in its text, if they are read along
    future: Future[Any] = field(default_factory=Future)
    since: float = field(default_factory=time.monotonic)

    @property
    def characters(self) -> int:
        return len(self.text) + 1

    @cached_property
    def group(self) -> Hashable:
        """What those have in common that may share a batch."""
        # What is drawn depends on all that is drawn together, so a sample stays alone.
        if not isinstance(self.work, TranslateRequest) or self.work.options.sample:
            return self.future
        if self.cost > _LONG:
            return self.work, self.flow
        return self.work, self.cost > SHORT


def fitting(group: list[Item], most: float, without: frozenset[Flow]) -> list[Item]:
    """Return what costs no more than `most` and belongs to other requests."""
    return [item for item in group if item.cost <= most and item.flow not in without]


def shared_out(group: list[Item], most: float) -> list[Item]:
    """Return what may share a batch, in the order of its turns.

    A request that would fill more than `most` of it leaves the rest for later, unless nobody else
    waits.
    """
    if all(item.flow is group[0].flow for item in group):
        return list(group)
    filled: Counter[Flow] = Counter()
    chosen = []
    for item in group:
        if filled[item.flow] < most:
            chosen.append(item)
            filled[item.flow] += math.ceil(item.cost)
    return chosen


def largest_share(batch: list[Item]) -> float:
    """Return the most that a request has in a batch.

    By this a batch gives way: short sentences of many clients do not pass each other, which would
    make those wait longest who came first.
    """
    shares: Counter[Flow] = Counter()
    for item in batch:
        shares[item.flow] += math.ceil(item.cost)
    return float(max(shares.values()))


def cost_of(text: str, work: Work) -> float:
    """Return what a sentence costs, in characters of a plain translation."""
    characters = len(text) + 1
    if not isinstance(work, TranslateRequest):
        return _FUNCTION * characters
    cost = characters * max(1.0, work.options.hypotheses / SearchOptions.beam)
    if work.glossary is not None:
        cost *= _GLOSSARY
    return cost * _CAREFUL if work.careful else cost
