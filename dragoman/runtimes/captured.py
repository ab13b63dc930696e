"""Searches of fixed shape on a GPU, where one step is one captured graph. Knows tokens; no text.

A step is a hundred small kernels, and starting them one by one takes longer than running them.
Captured once, they start together. A graph works on the same memory each time, so there is a plan
for each shape, with room of its own: the batch is rounded up to a power of two, the width and the
positions to a multiple of 16.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search import Loop
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import Problem
from dragoman.model.cache import DecoderState
from dragoman.model.transformer import Transformer
from dragoman.text.tokenizer import Frame

_ROUND = 16
_PLANS = 24  # shapes that are kept ready, those used last, as long as they take no more than
_SHARE = 8  # an eighth of the GPU


class Graphs:
    """The plans of one model."""

    def __init__(self, model: Transformer, frame: Frame) -> None:
        self._model, self._frame = model, frame
        self._plans: OrderedDict[tuple[object, ...], Plan] = OrderedDict()
        self._pool = torch.cuda.graph_pool_handle()
        self._before = torch.cuda.memory_allocated(model.output_weight.device)

    def search(
        self, source: Tensor, lengths: Tensor, room: Tensor, options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """As `decoding.search`, for plain beam search; source (B, S) with its lengths (B,), room
        (B,) for each output."""
        rows, width = 1 << (len(source) - 1).bit_length(), -(-source.size(1) // _ROUND) * _ROUND
        positions = -(-int(room.max()) // _ROUND) * _ROUND
        key = (rows, width, positions, options)
        if key not in self._plans:
            while self._plans and (len(self._plans) >= _PLANS or self._crowded(source.device)):
                self._plans.popitem(last=False)
            self._plans[key] = Plan(
                self._model, self._frame, (rows, width, positions), options, self._pool
            )
        self._plans.move_to_end(key)
        return self._plans[key].run(source, lengths, room)

    def _crowded(self, device: torch.device) -> bool:
        most = torch.cuda.get_device_properties(device).total_memory // _SHARE
        return torch.cuda.memory_allocated(device) - self._before > most


class Plan:
    """A search of one shape: one graph reads the source, another is a step."""

    def __init__(
        self,
        model: Transformer,
        frame: Frame,
        shape: tuple[int, int, int],
        options: SearchOptions,
        pool: Any,
    ) -> None:
        self._options, self._frame = options, frame
        (rows, width, positions), device = shape, model.output_weight.device
        self._source = torch.full((rows, width), frame.end, device=device)
        self._lengths, self._room = torch.ones(
            2, rows, dtype=torch.long, device=device
        )  # rows that are but their end
        self._running = torch.zeros(positions, dtype=torch.long, pin_memory=True)
        self._loop: Loop[DecoderState] | None = None
        self._read = captured(lambda: self._start(model, positions), pool)
        self._read.replay()  # what was recorded has not been done yet
        assert self._loop is not None
        self._step: torch.cuda.CUDAGraph = captured(self._loop.turn, pool)

    def run(self, source: Tensor, lengths: Tensor, room: Tensor) -> list[list[Hypothesis]]:
        """source (B, S) of at most the plan's rows and width."""
        assert self._loop is not None
        self._source.fill_(self._frame.end)
        self._lengths.fill_(1)
        self._room.fill_(1)
        self._source[: len(source), : source.size(1)] = source
        self._lengths[: len(source)], self._room[: len(source)] = lengths, room
        self._read.replay()
        events: list[torch.cuda.Event] = []
        for position in range(int(room.max())):
            self._step.replay()
            self._running[position : position + 1].copy_(self._loop.running, non_blocking=True)
            events.append(torch.cuda.Event())
            events[-1].record()
            # by the time we look, the next step is under way, so that the GPU never waits for us
            if position:
                events[position - 1].synchronize()
                if not self._running[position - 1]:
                    break
        return self._loop.trace.hypotheses(self._options, self._frame.end, len(events))[
            : len(source)
        ]

    def _start(self, model: Transformer, positions: int) -> None:
        """The first time this makes the loop; captured, it fills it anew, in its place."""
        state = model.start(self._source, self._lengths)
        assert state.memory[0] is not None
        beam, (key, _) = self._options.hypotheses, state.memory[0]
        state.fix(
            positions + len(self._frame.forced),
            key.new_empty(2, len(key), key.size(1), beam, key.size(3)),
        )
        *led, start = self._frame.head
        for token in led:
            model.step(self._source.new_full((len(key), beam), token), state)
        problem = Problem(model.step, state, self._room, start, self._frame.end)
        self._loop = Loop(problem, self._options, capacity=positions)


def captured(work: Callable[[], None], pool: Any = None) -> torch.cuda.CUDAGraph:
    """Done once step by step, which makes the libraries ready, then recorded."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        work()
    return graph
