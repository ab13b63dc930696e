"""Two runtimes of one model: the faster one for all that it can do, the other for the rest. Knows
tokens; no text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search import Loop
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.trace import Record
from dragoman.model.cache import DecoderState
from dragoman.runtimes.beginning import Beginning, Guide
from dragoman.runtimes.runtime import TERMS, Request, Runtime
from dragoman.runtimes.torch_runtime import TorchRuntime


class Routed:
    """Asks `fast` where it can do what is asked, else `able`."""

    def __init__(self, fast: Runtime, able: TorchRuntime) -> None:
        self.name = able.name
        self.can = fast.can | able.can
        self.fast = fast
        self.able = able
        self.model = able.model
        self.config = able.config
        self.device = able.device

    def batch_rows(self, width: int, beams: int) -> int:
        """Return how many sentences of up to `width` source tokens one batch should hold."""
        return self.able.batch_rows(width, beams)

    def search(self, batch: Sequence[Request], options: SearchOptions) -> list[list[Hypothesis]]:
        """Return the n best outputs of each request, best first, and always at least one."""
        has_terms = any(request.terms for request in batch)
        fits = TERMS in self.fast.can or not has_terms
        return (self.fast if fits else self.able).search(batch, options)

    def watch(
        self, request: Request, options: SearchOptions, guide: Guide | None = None
    ) -> tuple[Hypothesis, Record]:
        """Return the best output of one request and the record of its search."""
        return self.able.watch(request, options, guide)

    def start(self, batch: Sequence[Request], options: SearchOptions) -> Beginning:
        """Return the beginning of a search that `able` makes."""
        return self.able.start(batch, options)

    def loop(
        self, start: Beginning, options: SearchOptions, guide: Guide | None = None
    ) -> Loop[DecoderState]:
        """Return a search from this beginning, ready to run."""
        return self.able.loop(start, options, guide)

    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[numpy.ndarray]:
        """Return for each pair where each target token and the end looked in the source."""
        return self.able.attention(sources, targets)
