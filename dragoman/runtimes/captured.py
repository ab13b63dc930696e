"""Searches on a GPU in which a step is one captured graph. Knows tokens and the model; no text.

A step is a hundred small kernels, and starting them one by one takes longer than running them.
Captured once, they start together. A graph works on the same memory each time, so there is a plan
for each shape, with memory of its own; see captured_shape.py.

A whole turn of the loop is captured, also where prefixes or terms steer it: what they ask for is in
tensors that keep their place. Other rules and draws run outside of the graph; then the model's step
alone is captured, for one output at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from dragoman.decoding.choosers import Likeliest
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.rules import Rules, rules_for
from dragoman.decoding.search import Loop
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import Choice
from dragoman.decoding.terms import Terms
from dragoman.kernels.graphs import Capture, GpuCapture, Graph, GraphCache, MemoryLimit
from dragoman.model.cache import DecoderState
from dragoman.model.transformer import Transformer
from dragoman.runtimes.beginning import Beginning, Guide, Searched, embedded, read_head
from dragoman.runtimes.captured_shape import Shape, can_steer, shape_of

_PLANS = 24  # shapes that are kept ready, those used last, while they take no more than
_SHARE = 1 / 8  # of the GPU's memory


class Graphs:
    """The plans of one model, those used last."""

    def __init__(self, model: Transformer, device: torch.device, capture: Capture | None = None):
        self._model = model
        self._plans: GraphCache[Plan] = GraphCache(_PLANS, MemoryLimit(device, _SHARE))
        self._capture = capture or GpuCapture()

    def loop(self, start: Beginning, options: SearchOptions, guide: Guide) -> Loop[Any] | None:
        """Return a search that replays graphs, ready to run; None where it cannot be captured."""
        is_alone = len(start.max_lengths) == 1
        if not can_steer(guide, options) and (not is_alone or guide.terms is not None):
            return None
        shape = shape_of(self._model.config, start, options, guide)
        make = partial(Plan, self._model, start, shape, self._capture)
        plan = self._plans.get(shape, make)
        return plan.loop(start, options, guide)


class Plan:
    """A decoder's state of one shape, in memory of its own, and the graphs that work on it."""

    def __init__(
        self,
        model: Transformer,
        start: Beginning,
        shape: Shape,
        capture: Capture,
    ) -> None:
        self._model = model
        self._shape = shape
        self._capture = capture
        self._end = start.end
        device = start.max_lengths.device
        self._max_lengths = torch.ones(shape.rows, dtype=torch.long, device=device)
        self._source, self._lengths = self._memory(start)
        self._read: Graph | None = None
        self._loop: CapturedLoop | None = None
        self._step: CapturedStep | None = None
        self._state = self._fixed_state()
        if self._source is not None:
            self._read = capture(self._fill)

    def loop(self, start: Beginning, options: SearchOptions, guide: Guide) -> Loop[Any]:
        """Read the beginning and return the search, ready to run."""
        self._begin(start)
        if self._shape.step_alone:
            if self._step is None:
                self._step = CapturedStep(self._model, self._state, self._shape, self._capture)
                self._begin(start)  # capturing has taken a step
            problem = guide.problem(self._step, self._state, start)
            return guide.loop(problem, options, self._shape.turns)
        guide = guide.for_rows(self._shape.rows)
        if self._loop is None:
            beginning = replace(start, max_lengths=self._max_lengths)
            problem = guide.problem(self._model.step, self._state, beginning)
            self._loop = CapturedLoop(problem, self._shape, self._capture, guide)
            self._begin(start)
        self._loop.restart(start, guide)
        return self._loop

    def _memory(self, start: Beginning) -> tuple[Tensor | None, Tensor | None]:
        """Where the source is put for the graphs to read it."""
        shape = self._shape
        given = start.source
        if given is None:
            return None, None
        if not shape.width:
            rest = given.shape[1:]
            return given.new_zeros(shape.rows, *rest), None
        size = (shape.rows, shape.width)
        source = given.new_full(size, self._end)
        return source, torch.ones_like(self._max_lengths)

    def _begin(self, start: Beginning) -> None:
        """Read the source and the head."""
        rows = len(start.max_lengths)
        self._max_lengths.fill_(1)
        self._max_lengths[:rows] = start.max_lengths
        if self._read is None or self._source is None or start.source is None:
            read_head(self._model, self._state, start, self._shape.options.hypotheses)
            return
        if start.read is not None:
            self._take_memory(start.read)
        elif self._lengths is None:
            self._source[:rows] = start.source
        else:
            width = start.source.size(1)
            self._source.fill_(self._end)
            self._source[:rows, :width] = start.source
            self._lengths.fill_(1)  # a row that is but its end
            self._lengths[:rows] = width if start.lengths is None else start.lengths
        self._read.replay()

    def _fill(self) -> None:
        """Put what the source and the head make of the state into its memory."""
        model = self._model
        shape = self._shape
        beams = shape.options.hypotheses
        if not shape.has_read:
            fresh = model.start(self._source, self._lengths)
            self._take_memory(fresh)
        self._state.begin(0, beams, embedded(model))
        start = Beginning(
            source=self._source,
            lengths=self._lengths,
            head=shape.head,
            max_lengths=self._max_lengths,
            end=self._end,
        )
        read_head(model, self._state, start, beams)

    def _take_memory(self, fresh: DecoderState) -> None:
        for kept, new in zip(self._state.memory, fresh.memory, strict=True):
            assert kept is not None
            assert new is not None
            for memory, fresh_part in zip(kept, new, strict=True):
                rows = memory[: len(fresh_part)]
                rows.copy_(fresh_part)
        if self._state.memory_mask is not None and fresh.memory_mask is not None:
            self._state.memory_mask.copy_(fresh.memory_mask)

    def _fixed_state(self) -> DecoderState:
        model = self._model
        config = model.config
        shape = self._shape
        state = model.start(self._source, self._lengths)
        like = embedded(model)
        beams = shape.options.hypotheses
        size = (2, shape.rows, config.n_heads, beams, config.size)
        state.fix(shape.capacity, like.new_empty(size))
        return state


class CapturedStep:
    """The model's step as one graph, for a search that rules or draws steer."""

    def __init__(
        self,
        model: Transformer,
        state: DecoderState,
        shape: Shape,
        capture: Capture,
    ) -> None:
        size = (shape.rows, shape.options.hypotheses)
        self._tokens = torch.zeros(size, dtype=torch.long, device=state.position.device)
        self._logits = torch.empty(0)

        def work() -> None:
            self._logits = model.step(self._tokens, state)

        self._graph = capture(work)

    def __call__(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """Take the step; the state is the one that was captured."""
        self._tokens.copy_(tokens)
        self._graph.replay()
        return self._logits


class CapturedLoop(Loop[DecoderState]):
    """The search loop with its turn captured as one graph. Sentences stay to the end, and the
    loop looks at each position only while the next is under way, so that the GPU never waits."""

    def __init__(self, problem: Searched, shape: Shape, capture: Capture, guide: Guide) -> None:
        self._steering = shape.steering
        self.problem = problem
        self.options = shape.options
        rules, terms = self._steered_by(guide)
        super().__init__(problem, shape.options, rules, terms, shape.turns)
        self._terms = terms
        on_gpu = problem.max_lengths.device.type == "cuda"
        size = (shape.turns, shape.rows, shape.options.hypotheses)
        self._running = torch.zeros(shape.turns, dtype=torch.long, pin_memory=on_gpu)
        self._newest = torch.zeros(size, dtype=torch.long, pin_memory=on_gpu)
        self._events: list[torch.cuda.Event | None] = []
        self._rows = shape.rows
        self._limit = shape.turns
        self._seen = 0  # positions that we have looked at
        self._reset = capture(lambda: Loop.reset(self, problem.max_lengths))
        self._turn = capture(lambda: Loop.turn(self))

    def restart(self, start: Beginning, guide: Guide) -> None:
        """Go back to before the first position, to be steered by this guide."""
        self._reset.replay()
        rules, terms = self._steered_by(guide)
        if self.rules is not None and rules is not None:
            self.rules.take(rules)
        if self._terms is not None and terms is not None:
            self._terms.take(terms)
        self.tokens.fill_(start.head[-1])
        self._events = []
        self._rows = len(start.max_lengths)
        self._limit = int(start.max_lengths.max())
        self._seen = 0
        self.positions = 0
        self.done = False

    def turn(self) -> None:
        """Compute one position, and copy what came of it to where we can look at it."""
        self._turn.replay()
        position = self.positions
        running = self._running[position : position + 1]
        newest = self._newest[position]
        running.copy_(self.running, non_blocking=True)
        newest.copy_(self.tokens, non_blocking=True)
        event = None
        if self.running.is_cuda:
            event = torch.cuda.Event()
            event.record()
        self._events.append(event)

    def stream(self, count: int | None = None) -> Iterator[Tensor]:
        """Yield the tokens of the next `count` positions, each while the next is computed."""
        until = self._limit
        if count is not None:
            until = min(until, self._seen + count)
        while not self.done and self._seen < until:
            here = self._seen
            ahead = min(here + 2, until)
            while self.positions < ahead:
                self.advance()
            event = self._events[here]
            if event is not None:
                event.synchronize()
            newest = self._newest[here, : self._rows]
            is_over = not self._running[here]
            self._seen = here + 1
            self.done = is_over or self._seen == self._limit
            yield newest

    def _steered_choice(self, log_probs: Tensor) -> Choice:
        if self.rules is not None:
            self.rules.apply_anywhere(log_probs, self.length)
        chooser = self.chooser or Likeliest()
        return chooser.choose(self.live, log_probs, self.length)

    def _steered_by(self, guide: Guide) -> tuple[Rules | None, Terms | None]:
        """What the guide asks for, in tables of the captured size."""
        steering = self._steering
        if steering is None:
            return None, None
        problem = replace(self.problem, prefixes=guide.prefixes)
        rules = rules_for(problem, self.options)
        if rules is not None:
            rules.widen(steering.prefix)
        terms = guide.chooser(problem, self.options.hypotheses)
        if terms is not None and steering.terms is not None:
            terms.widen(steering.terms)
        return rules, terms

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Return the n best outputs of each sentence, best first."""
        found = self.trace.hypotheses(self.options, self.problem.end, self._seen)
        return found[: self._rows]
