"""The record of a search: what was chosen at each position, and the hypotheses read back from it at
the end.

Knows nothing of how the choice was made. Reading back once is cheaper than carrying every history
along.

Shapes: B sentences, K beams, T positions, N best hypotheses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy
import numpy.typing
import torch
from torch import Tensor

from dragoman.decoding.hypothesis import Hypothesis, length_penalty
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER, Choice

Array = numpy.typing.NDArray[Any]
# While more than this share of a batch is running, dropping the finished sentences costs more than
# computing them.
_FULL_ENOUGH = 0.75
# Subtracted from the score of an unfinished hypothesis, so that it ranks behind all finished ones.
_BEHIND = 1e6


class Record(NamedTuple):
    """What was chosen, each (T, B, K); -inf or 0 at positions after a sentence was dropped."""

    tokens: Array
    log_probs: Array
    totals: Array
    beams: Array


class _Picks(NamedTuple):
    """The N best hypotheses of each sentence, each (B, N)."""

    last: Array  # the position of the last token
    beam: Array  # the beam of that token
    exists: Array  # False where a sentence has fewer hypotheses
    scores: Array
    ended: Array


class Trace:
    """One entry per position. A sentence that was dropped from the batch has no more of them."""

    def __init__(self, max_lengths: Tensor, beams: int, capacity: int = 0) -> None:
        """With a `capacity` of that many positions, entries are written to fixed memory and no
        sentence is ever dropped, as a captured graph needs it."""
        self._fixed: Choice | None = None
        if capacity:
            n_rows = len(max_lengths)
            numbers = torch.zeros(2, capacity, n_rows, beams, device=max_lengths.device)
            integers = torch.zeros_like(numbers, dtype=torch.long)
            self._fixed = Choice(
                tokens=integers[0],
                log_probs=numbers[0],
                totals=numbers[1],
                beams=integers[1],
            )
        self.reset(max_lengths)

    def reset(self, max_lengths: Tensor) -> None:
        """Forget all entries."""
        self._max_lengths = max_lengths
        self._rows = torch.arange(len(max_lengths), device=max_lengths.device)
        self._open: list[Choice] = []  # entries since sentences were last dropped
        self._closed: list[tuple[Array, Record]] = []
        if self._fixed is not None:
            self._fixed.totals.fill_(NEVER)

    def add(self, choice: Choice, position: Tensor) -> None:
        """Record what was chosen at the next position, (1,)."""
        if self._fixed is None:
            self._open.append(choice)
            return
        for memory, values in zip(self._fixed, choice, strict=True):
            memory.index_copy_(0, position, values[None])

    def extend(self, record: Record) -> None:
        """Record what was chosen at the next positions, each (T, B, K)."""
        self._close()
        self._closed.append((self._rows.numpy(), record))

    def thin(self, over: Tensor, running: int) -> Tensor | None:
        """Return the rows that stay, once enough sentences are over to drop them."""
        if self._fixed is not None or not running or running > most_left(len(over)):
            return None
        self._close()
        is_left = ~over
        left = is_left.nonzero().flatten()
        self._rows = self._rows[left]
        return left

    def hypotheses(
        self, options: SearchOptions, end: int, positions: int | None = None
    ) -> list[list[Hypothesis]]:
        """Return the n best of each sentence, best first; finished ones come before those cut at
        the maximum length."""
        record = Record._make(values[:positions] for values in self.record())
        max_lengths = self._max_lengths.cpu().numpy()
        picks = _pick(record, max_lengths, options, end)
        paths, log_probs = _read_back(record, picks)
        rows = []
        for sentence in range(len(paths)):
            of_sentence = _Picks._make(values[sentence] for values in picks)
            best = _hypotheses(paths[sentence], log_probs[sentence], of_sentence)
            rows.append(best or [Hypothesis((), NEVER, ())])
        return rows

    def record(self) -> Record:
        """Return everything that was chosen."""
        if self._fixed is not None:
            return Record._make(values.cpu().numpy() for values in self._fixed)
        self._close()
        parts = [part for _, part in self._closed]
        first = parts[0]
        if len(parts) == 1:
            return first
        positions = sum(len(part.tokens) for part in parts)
        n_beams = first.tokens.shape[2]
        shape = (positions, len(self._max_lengths), n_beams)
        whole = Record._make(_empty(shape, values) for values in first)
        start = 0
        for rows, part in self._closed:
            stop = start + len(part.tokens)
            for values, given in zip(whole, part, strict=True):
                values[start:stop, rows] = given
            start = stop
        return whole

    def _close(self) -> None:
        if not self._open:
            return
        columns = [torch.stack(values) for values in zip(*self._open, strict=True)]
        record = Record._make(values.cpu().numpy() for values in columns)
        rows = self._rows.cpu().numpy()
        self._closed.append((rows, record))
        self._open = []


def most_left(rows: int) -> int:
    """Return how many sentences of a batch are left at most when the others are dropped."""
    return int(_FULL_ENOUGH * rows)


def _empty(shape: tuple[int, ...], like: Array) -> Array:
    fill = NEVER if like.dtype.kind == "f" else 0
    return numpy.full(shape, fill, like.dtype)


def _pick(record: Record, max_lengths: Array, options: SearchOptions, end: int) -> _Picks:
    """The n best of each sentence, among all tokens that end a hypothesis."""
    n_positions, n_rows, n_beams = record.tokens.shape
    lengths = numpy.arange(1.0, n_positions + 1)
    lengths = lengths[:, None, None]
    totals = record.totals.astype(numpy.float64)
    scores = totals / length_penalty(lengths, options.alpha)
    ended = record.tokens == end
    cut = lengths == max_lengths[:, None]
    alive = record.totals > NEVER
    possible = (ended | cut) & alive
    ranks = numpy.where(ended, scores, scores - _BEHIND)
    ranks = numpy.where(possible, ranks, NEVER)
    ranks = ranks.transpose(1, 0, 2)
    ranks = ranks.reshape(n_rows, -1)  # (B, T * K)
    order = numpy.argsort(-ranks, axis=1, kind="stable")
    best = order[:, : options.nbest]  # (B, N)
    last, beam = numpy.divmod(best, n_beams)
    rows = numpy.arange(n_rows)
    picked = (last, rows[:, None], beam)
    ranks_of_best = numpy.take_along_axis(ranks, best, 1)
    return _Picks(
        last=last,
        beam=beam,
        exists=ranks_of_best > NEVER,
        scores=scores[picked],
        ended=ended[picked],
    )


def _read_back(record: Record, picks: _Picks) -> tuple[Array, Array]:
    """Tokens and log-probabilities (B, N, T) of the hypotheses; those behind the last position mean
    nothing."""
    n_positions = int(picks.last.max()) + 1
    shortest = int(picks.last.min())
    rows = numpy.arange(len(picks.last))
    row = rows[:, None]
    beam = picks.beam
    beams = numpy.empty((*beam.shape, n_positions), beam.dtype)
    for position in reversed(range(n_positions)):
        beams[..., position] = beam
        before = record.beams[position, row, beam]
        is_said = position <= picks.last
        beam = before if position <= shortest else numpy.where(is_said, before, beam)
    here = (numpy.arange(n_positions), row[..., None], beams)
    return record.tokens[here], record.log_probs[here]


def _hypotheses(tokens: Array, log_probs: Array, picks: _Picks) -> list[Hypothesis]:
    """The hypotheses of one sentence."""
    found = []
    for index in numpy.flatnonzero(picks.exists):
        count = int(picks.last[index]) + 1
        n_tokens = count - int(picks.ended[index])
        score = float(picks.scores[index])
        said = tokens[index, :n_tokens].tolist()
        values = log_probs[index, :count].tolist()
        hypothesis = Hypothesis(tuple(said), score, tuple(values))
        found.append(hypothesis)
    return found
