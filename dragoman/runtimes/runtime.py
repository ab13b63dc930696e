"""What a runtime is asked, what it can do and what it answers. Knows tokens; no text. Importing
this loads no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search_options import SearchOptions

if TYPE_CHECKING:
    import torch

    from dragoman.model.model_config import ModelConfig

# What a runtime may say that it can do with its model, in `can`:
DECODE = "decode"  # search for outputs, token by token
TERMS = "terms"  # hold an output to the terms of a glossary
GRAMMAR = "grammar"  # hold an output to a grammar
HEADS = "heads"  # show where every head looked, and the tree of a search
INT8 = "int8"  # compute in 8-bit integers
GRAPHS = "graphs"  # decode by captured GPU graphs
SHORTLIST = "shortlist"  # compute the output layer for a part of the vocabulary


@dataclass(frozen=True)
class Request:
    """One sentence to translate, in tokens."""

    tokens: Sequence[int]  # of the source, without the end
    prefix: Sequence[int] = ()  # target tokens that the output begins with
    # Of each term one of its forms must occur, a form being target tokens.
    terms: Sequence[Sequence[Sequence[int]]] = ()
    # For each term, the indices of the source tokens that it translates.
    places: Sequence[Sequence[int]] = ()
    once: Sequence[int] = ()  # target tokens that the output may have once
    # Source tokens that are read first and not translated: a tag for the tone, sentences before.
    before: Sequence[int] = ()

    @property
    def read(self) -> list[int]:
        """All tokens that are read, without the end."""
        return [*self.before, *self.tokens]

    def own_columns(self, table: numpy.ndarray) -> numpy.ndarray:
        """Return the attention to the source itself of a table for all that is read; what looked
        at the tokens before it counts as looking at its end."""
        count = len(self.before)
        if not count:
            return table
        own = table[:, count:].copy()
        own[:, -1] += table[:, :count].sum(1)
        return own


class Runtime(Protocol):
    """A model that is loaded and ready to translate."""

    name: str
    can: frozenset[str]

    def batch_rows(self, width: int, beams: int) -> int:
        """Return how many sentences of up to `width` source tokens one batch should hold, at least
        1."""

    def search(self, batch: Sequence[Request], options: SearchOptions) -> list[list[Hypothesis]]:
        """Return the n best outputs of each request, best first, and always at least one."""

    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[numpy.ndarray]:
        """Return for each pair (target + 1, source + 1): where each target token and the end looked
        in the source; rows sum to 1."""


def abilities(config: ModelConfig, device: torch.device) -> frozenset[str]:
    """Return what our own runtime can do with a model of this shape on this device."""
    from dragoman.runtimes import int8

    words = {HEADS}
    if config.decoder_layers:
        words |= {DECODE, GRAMMAR}
    if config.decoder_layers and device.type != "cpu":
        words.add(GRAPHS)
    if device.type == "cpu" and int8.available():
        words.add(INT8)
    if config.decoder_layers and config.encoder_layers and config.input == "tokens":
        words.add(TERMS)
    if not config.departures:
        words.add(SHORTLIST)
    return frozenset(words)
