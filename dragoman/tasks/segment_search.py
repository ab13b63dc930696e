"""From segments to outcomes: searches in batches of like length, second attempts, and where the
outputs looked. Knows a runtime and what an outcome is; knows no lines."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search_options import SearchOptions
from dragoman.runtimes.runtime import TERMS, Request, Runtime
from dragoman.tasks.outcome import Outcome, Renderer
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.segment import Segment, Segmenter
from dragoman.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    import numpy

    from dragoman.tasks.standing_in import Disguised


class SegmentSearch:
    """Searches for the translations of segments, and once more for those that went wrong."""

    def __init__(
        self, runtime: Runtime, tokenizer: Tokenizer, segmenter: Segmenter, renderer: Renderer
    ) -> None:
        self._runtime = runtime
        self._tokenizer = tokenizer
        self._segmenter = segmenter
        self._renderer = renderer

    def outcomes(self, segments: Sequence[Segment], asked: TranslateRequest) -> list[Outcome]:
        """Return an outcome for each segment, with the second attempts and the alignments that the
        request asks for."""
        outcomes = self._outcomes(segments, asked.options, asked.align)
        if asked.protect:
            outcomes = self._kept(outcomes, asked.options)
        if asked.careful:
            outcomes = self._retried(outcomes, asked.options)
        if asked.align:
            outcomes = self._all_aligned(outcomes)
        return outcomes

    def search(self, requests: Sequence[Request], options: SearchOptions) -> list[list[Hypothesis]]:
        """Return the hypotheses of each request, searched for in batches."""
        found: list[list[Hypothesis]] = [[] for _ in requests]
        for batch, results in self._searched(requests, options):
            for index, hypotheses in zip(batch, results, strict=True):
                found[index] = hypotheses
        return found

    def _outcomes(
        self, segments: Sequence[Segment], options: SearchOptions, align: bool = False
    ) -> list[Outcome]:
        """What searches make of segments; with attention if asked to `align`, which costs least
        right after the search of a batch, while the runtime knows what its encoder has read."""
        requests = [segment.request for segment in segments]
        found: list[list[Hypothesis]] = [[] for _ in requests]
        looks: dict[int, numpy.ndarray] = {}
        for batch, results in self._searched(requests, options):
            for index, hypotheses in zip(batch, results, strict=True):
                found[index] = hypotheses
            if align:
                targets = [hypotheses[0].tokens for hypotheses in results]
                tables = self._looks([requests[index] for index in batch], targets)
                looks.update(zip(batch, tables, strict=True))
        outcomes = list(self._renderer.outcomes(segments, found))
        for index, table in looks.items():
            outcomes[index] = replace(outcomes[index], attention=table)
        return outcomes

    def _kept(self, outcomes: list[Outcome], options: SearchOptions) -> list[Outcome]:
        """Segments that lost something they had to carry over, once more: with names in its place
        and, if those get lost too, with it as a term."""
        if options.sample or options.branch or TERMS not in self._runtime.can:
            return outcomes
        kept = list(outcomes)
        for index, second in self._with_names(outcomes, options):
            kept[index] = second
        lost = _lost(kept)
        guarded = [self._guarded(kept[index].segment, options) for index in lost]
        again = self._outcomes(guarded, options)
        for index, second in zip(lost, again, strict=True):
            if "protected" not in second.flags:
                kept[index] = second
        return kept

    def _with_names(
        self, outcomes: list[Outcome], options: SearchOptions
    ) -> Iterator[tuple[int, Outcome]]:
        """Yield what becomes of segments that lost something if it has a name meanwhile; of those
        that lose nothing then."""
        lost = _lost(outcomes)
        if not lost:
            return
        from dragoman.tasks.standing_in import disguised, revealed  # few texts need it

        tried: dict[int, Disguised] = {}
        for index in lost:
            one = disguised(outcomes[index].segment, self._tokenizer)
            if one is not None:
                tried[index] = one
        found = self.search([one.request for one in tried.values()], options)
        for (index, one), hypotheses in zip(tried.items(), found, strict=True):
            shown = [revealed(each, one.names, self._tokenizer) for each in hypotheses]
            if shown[0] is None:
                continue
            whole = [each for each in shown if each is not None]
            (outcome,) = self._renderer.outcomes([one.segment], [whole])
            if "protected" not in outcome.flags:
                yield index, outcome

    def _searched(
        self, requests: Sequence[Request], options: SearchOptions
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        """Yield the indices of the requests of each batch, and their hypotheses."""
        for batch in self._batches(requests, options.hypotheses):
            together = [requests[index] for index in batch]
            yield batch, self._runtime.search(together, options)

    def _batches(self, requests: Sequence[Request], hypotheses: int) -> Iterator[list[int]]:
        """Indices of requests of like length, the longest first, so that a lack of memory shows
        at once. All requests of a batch have equally many terms: the beam is as wide as the most
        terms ask for."""

        def terms(index: int) -> int:
            return len(requests[index].terms)

        def length(index: int) -> int:
            return len(requests[index].tokens) + len(requests[index].before)

        indices = range(len(requests))
        order = sorted(indices, key=lambda index: (terms(index), -length(index)))
        for _, same_terms in itertools.groupby(order, terms):
            remaining = list(same_terms)
            while remaining:
                width = length(remaining[0]) + 1
                rows = self._runtime.batch_rows(width, hypotheses)
                yield remaining[:rows]
                remaining = remaining[rows:]

    def _retried(self, outcomes: list[Outcome], options: SearchOptions) -> list[Outcome]:
        """Segments with flags once more, with a wider beam, no repeats, and what must survive as
        terms; the better outcome of the two."""
        flagged = [index for index, outcome in enumerate(outcomes) if outcome.flags]
        no_repeat = options.no_repeat_ngram or 4
        harder = replace(options, beam=2 * options.beam, no_repeat_ngram=no_repeat)
        if not (options.sample or options.branch):
            harder = replace(harder, coverage=options.coverage or 0.2)
        guarded = [self._guarded(outcomes[index].segment, options) for index in flagged]
        again = self._outcomes(guarded, harder)
        better = list(outcomes)
        for index, second in zip(flagged, again, strict=True):
            first = outcomes[index]
            if len(second.flags) < len(first.flags):
                better[index] = second
        return better

    def _guarded(self, segment: Segment, options: SearchOptions) -> Segment:
        """With the placeholders and addresses of the source as terms, if the search can take
        terms."""
        if options.sample or options.branch or TERMS not in self._runtime.can:
            return segment
        return self._segmenter.with_copies(segment)

    def _all_aligned(self, outcomes: list[Outcome]) -> list[Outcome]:
        """With the attention of those that have none, computed in batches of like length."""

        def length(index: int) -> int:
            outcome = outcomes[index]
            return len(outcome.segment.request.read) + len(outcome.best.tokens)

        aligned = list(outcomes)
        missing = [index for index, outcome in enumerate(outcomes) if outcome.attention is None]
        order = sorted(missing, key=length)
        order.reverse()
        while order:
            rows = self._runtime.batch_rows(length(order[0]) + 2, 4)
            batch = order[:rows]
            order = order[rows:]
            requests = [outcomes[index].segment.request for index in batch]
            tables = self._looks(requests, [outcomes[index].best.tokens for index in batch])
            for index, table in zip(batch, tables, strict=True):
                aligned[index] = replace(outcomes[index], attention=table)
        return aligned

    def _looks(
        self, requests: Sequence[Request], targets: Sequence[Sequence[int]]
    ) -> list[numpy.ndarray]:
        """Where the tokens of each output looked in its own source."""
        tables = self._runtime.attention([request.read for request in requests], targets)
        return [request.own_columns(table) for request, table in zip(requests, tables, strict=True)]


def _lost(outcomes: Sequence[Outcome]) -> list[int]:
    """Which of them have lost something that had to be carried over."""
    return [index for index, outcome in enumerate(outcomes) if "protected" in outcome.flags]
