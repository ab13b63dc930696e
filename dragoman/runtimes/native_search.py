"""A search that nothing steers, by the native library: whole positions in one call. Twin of `Loop`,
which finds the same outputs. Knows tensors and the model; no text.

B sentences, K beams, T positions, D d_model, V vocabulary.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy
import torch
from torch import Tensor

from dragoman.decoding.giving_way import give_way, is_awaited
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search import Loop
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER
from dragoman.decoding.trace import Array, Record, most_left
from dragoman.kernels import native
from dragoman.kernels import native_structs as structs
from dragoman.model.cache import DecoderState
from dragoman.model.transformer import Transformer
from dragoman.runtimes import native_int8
from dragoman.runtimes.beginning import Guide, Searched


def fits(model: Transformer, options: SearchOptions, guide: Guide) -> bool:
    """Return whether the library can search with this model by itself."""
    decoder: Any = model.decoder
    if not native.available() or getattr(decoder, "native", None) is None:
        return False
    few = options.hypotheses <= native.MOST_BEAMS and options.nbest == 1
    return few and decoder.relative is None and not guide.steers(options)


class NativeLoop(Loop[DecoderState]):
    """The search loop, as many positions of it in one call as take a fiftieth of a second."""

    def __init__(
        self,
        model: Any,
        problem: Searched,
        options: SearchOptions,
        own_tokens: Sequence[Tensor] | None = None,
    ) -> None:
        """`own_tokens` are, for each sentence, the tokens that its output may have; by default all
        of them."""
        super().__init__(problem, options)
        self._decoder = model.decoder
        self._own_tokens = own_tokens
        self._outputs: list[native.PackedMatrix] = []
        if own_tokens is None:
            self._outputs = [model.output_matrix()]
        else:
            self._outputs = [model.output_matrix(tokens) for tokens in own_tokens]
        self._left = len(problem.max_lengths)
        self._made: Record | None = None  # each (T, B, K)
        self._count = 0  # positions of these that are filled

    def run(self) -> list[list[Hypothesis]]:
        """Search to the end and return the best output of each sentence."""
        while not self.done:
            self._advance(1 if is_awaited() else None)
            self.thin()
            if not self.done:
                give_way()
        return self.hypotheses()

    def advance(self) -> None:
        """Move one position further."""
        self._advance(1)

    def look_again(self) -> None:
        """The state was changed from outside: forget where its parts were."""
        self._record()

    def thin(self) -> None:
        """Drop finished sentences from the batch where the others need more space, and enough have
        finished: the library leaves them out anyway, and to drop them is to copy what stays."""
        self.done = self._left == 0
        if self.done or self._has_space or self._left > most_left(len(self.over)):
            return
        self._record()
        if self._own_tokens is not None:
            left = (~self.over).nonzero().flatten().tolist()
            self._own_tokens = [self._own_tokens[row] for row in left]
            self._outputs = [self._outputs[row] for row in left]
        self.running.fill_(self._left)
        super().thin()

    @property
    def _has_space(self) -> bool:
        """Whether there is space for one more position."""
        return self._made is not None and self._count < len(self._made.tokens)

    def _advance(self, most: int | None) -> None:
        """Compute up to that many positions; by default up to the space that there is."""
        if not self._has_space:
            self._prepare()
        assert self._made is not None
        before = self._standing.length
        space = len(self._made.tokens) - self._count
        asked = space if most is None else min(most, space)
        self._left = native.turn(self._turn, asked)
        done = self._standing.length - before
        self._count += done
        self.positions += done
        self.state.advance(done)

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Return the n best outputs so far of each sentence, best first."""
        self._record()
        alpha = self.options.alpha
        return read_back(self.trace.record(), self.problem.max_lengths, self.problem.end, alpha)

    def _record(self) -> None:
        """Hand over to the trace what the library has chosen."""
        if self._made is not None:
            self.trace.extend(Record._make(values[: self._count] for values in self._made))
        self._made = None
        self._count = 0

    def _prepare(self) -> None:
        """Make space for the next positions, and tell the library where everything is."""
        self._record()
        rows, beams = self.tokens.shape
        stack: native_int8.NativeStack = self._decoder.native
        self._features = torch.empty(rows, beams, stack.width)
        self._running = torch.empty(rows, dtype=torch.long)
        native_int8.make_space(stack, self.state, self._features)
        self._seen = native_int8.past_of(stack, self.state, beams)
        positions = self._seen.positions - self.state.length
        shape = (positions, rows, beams)
        self._made = Record(
            tokens=numpy.empty(shape, numpy.int64),
            log_probs=numpy.empty(shape, numpy.float32),
            totals=numpy.empty(shape, numpy.float32),
            beams=numpy.empty(shape, numpy.int64),
        )
        self._places = structs.Choice(
            tokens=self._made.tokens.ctypes.data,
            beams=self._made.beams.ctypes.data,
            log_probs=self._made.log_probs.ctypes.data,
            totals=self._made.totals.ctypes.data,
        )
        self._standing = structs.Standing(
            live=self.live.data_ptr(),
            finished=self.finished.data_ptr(),
            over=self.over.data_ptr(),
            max_lengths=self.max_lengths.data_ptr(),
            rows=rows,
            beams=beams,
            size=self._outputs[0].rows,
            length=self.positions,
            end=self.problem.end,
            alpha=self.options.alpha,
        )
        self._turn = structs.Turn(
            stack=ctypes.addressof(stack.struct),
            past=ctypes.addressof(self._seen.struct),
            standing=ctypes.addressof(self._standing),
            choice=ctypes.addressof(self._places),
            tokens=self.tokens.data_ptr(),
            features=self._features.data_ptr(),
            running=self._running.data_ptr(),
        )
        self._point_at_outputs()

    def _point_at_outputs(self) -> None:
        matrices = [matrix.struct for matrix in self._outputs]
        self._matrices = (structs.Matrix * len(matrices))(*matrices)
        self._turn.outputs = ctypes.addressof(self._matrices)
        if self._own_tokens is None:
            beams = self.tokens.size(1)
            self._logits = torch.empty(beams, self._outputs[0].rows)
            self._turn.logits = self._logits.data_ptr()
        else:
            self._ids = native.pointers([tokens.data_ptr() for tokens in self._own_tokens])
            self._turn.ids = ctypes.addressof(self._ids)


def read_back(
    record: Record, max_lengths: Tensor, end: int, alpha: float
) -> list[list[Hypothesis]]:
    """Return the best output of each sentence. Twin of `Trace.hypotheses`."""
    positions, rows, beams = record.tokens.shape
    tokens = numpy.empty((rows, positions), numpy.int64)
    log_probs = numpy.empty((rows, positions), numpy.float32)
    scores = numpy.empty(rows)
    counts = numpy.empty(rows, numpy.int64)
    chosen = structs.Chosen(
        tokens=record.tokens.ctypes.data,
        beams=record.beams.ctypes.data,
        log_probs=record.log_probs.ctypes.data,
        totals=record.totals.ctypes.data,
        max_lengths=max_lengths.data_ptr(),
        positions=positions,
        rows=rows,
        width=beams,
        end=end,
        alpha=alpha,
    )
    outputs = structs.Outputs(
        tokens=tokens.ctypes.data,
        log_probs=log_probs.ctypes.data,
        scores=scores.ctypes.data,
        counts=counts.ctypes.data,
    )
    native.read_back(chosen, outputs)
    best = []
    for row, count in enumerate(counts.tolist()):
        output = _output(tokens[row, :count], log_probs[row, :count], float(scores[row]), end)
        best.append([output])
    return best


def _output(tokens: Array, log_probs: Array, score: float, end: int) -> Hypothesis:
    """What was found for one sentence, of its tokens with the end, if it has one."""
    said = tokens.tolist()
    if not said:
        return Hypothesis((), NEVER, ())
    if said[-1] == end:
        said.pop()
    return Hypothesis(tuple(said), score, tuple(log_probs.tolist()))
