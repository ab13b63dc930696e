"""The record of a search: what was chosen at each position, and the hypotheses read back from it at
the end.

Knows nothing of how the choice was made. Reading back once is cheaper than carrying every history
along.
"""

from __future__ import annotations

from typing import Any

import numpy
import numpy.typing
import torch
from torch import Tensor

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER, Choice, length_penalty

Array = numpy.typing.NDArray[Any]
# share of the batch still running above which sentences that are over cost less than moving the
# others
_FULL_ENOUGH = 0.75
_BEHIND = 1e6  # what a hypothesis that was cut is put back by; no score is as low


class Trace:
    """One entry per position. Sentences that have left the batch have no more of them."""

    def __init__(self, max_lengths: Tensor, beam: int, room: int = 0) -> None:
        """With room for so many positions, entries are written to one place, and sentences never
        leave."""
        self._fixed: Choice | None = None
        if room:
            numbers = torch.zeros(2, room, len(max_lengths), beam, device=max_lengths.device)
            whole = torch.zeros_like(numbers, dtype=torch.long)
            self._fixed = Choice(whole[0], numbers[0], numbers[1], whole[1])
        self.reset(max_lengths)

    def reset(self, max_lengths: Tensor) -> None:
        """Nothing has been chosen yet."""
        self._max_lengths = max_lengths
        self._rows = torch.arange(len(max_lengths), device=max_lengths.device)
        self._open: list[Choice] = []  # entries since the last sentences left
        self._closed: list[tuple[Array, list[Array]]] = []
        if self._fixed is not None:
            self._fixed.totals.fill_(NEVER)

    def add(self, choice: Choice, position: Tensor) -> None:
        """What was chosen at the next position, (1,)."""
        if self._fixed is None:
            self._open.append(choice)
        else:
            for place, values in zip(self._fixed, choice, strict=True):
                place.index_copy_(0, position, values[None])

    def thin(self, over: Tensor, running: int) -> Tensor | None:
        """The rows that stay, where enough sentences are over to let them leave."""
        if not 0 < running <= _FULL_ENOUGH * len(over):
            return None
        self._close()
        left = (~over).nonzero().flatten()
        self._rows = self._rows[left]
        return left

    def hypotheses(
        self, options: SearchOptions, eos: int, positions: int | None = None
    ) -> list[list[Hypothesis]]:
        """The n best of each sentence, best first; those cut at the maximum length come after
        all that finished."""
        tokens, log_probs, totals, beams = (
            values[:positions] for values in self.whole()
        )  # (T, B, K)
        lengths = numpy.arange(1.0, len(tokens) + 1)[:, None, None]
        scores = totals.astype(numpy.float64) / length_penalty(lengths, options.alpha)
        ended = tokens == eos
        choices = (ended | (lengths == self._max_lengths.cpu().numpy()[:, None])) & (totals > NEVER)
        ranks = numpy.where(choices, numpy.where(ended, scores, scores - _BEHIND), NEVER)
        ranks = ranks.transpose(1, 0, 2).reshape(ranks.shape[1], -1)  # (B, T * K)
        picks = numpy.argsort(-ranks, axis=1, kind="stable")[:, : options.nbest]  # (B, n)
        last, beam = numpy.divmod(picks, tokens.shape[2])
        row = numpy.arange(len(picks))[:, None]
        found = (
            numpy.take_along_axis(ranks, picks, 1) > NEVER,
            scores[last, row, beam],
            ended[last, row, beam],
        )
        paths, values = _read_back(last, row, beam, tokens, log_probs, beams)
        rows = zip(paths, values, last.tolist(), *(kind.tolist() for kind in found), strict=True)
        return [_hypotheses(*of_row) or [Hypothesis((), NEVER, ())] for of_row in rows]

    def _close(self) -> None:
        if self._open:
            parts = [torch.stack(values).cpu().numpy() for values in zip(*self._open, strict=True)]
            self._closed.append((self._rows.cpu().numpy(), parts))
        self._open = []

    def whole(self) -> list[Array]:
        """What was chosen: tokens, log_probs, totals and beams, each (T, B, K), -inf or 0 where
        a sentence had left."""
        if self._fixed is not None:
            return [values.cpu().numpy() for values in self._fixed]
        self._close()
        if len(self._closed) == 1:
            return self._closed[0][1]
        _, first = self._closed[0]
        shape = (
            sum(len(parts[0]) for _, parts in self._closed),
            len(self._max_lengths),
            first[0].shape[2],
        )
        whole = [
            numpy.full(shape, NEVER if part.dtype.kind == "f" else 0, part.dtype) for part in first
        ]
        start = 0
        for rows, parts in self._closed:
            for values, part in zip(whole, parts, strict=True):
                values[start : start + len(part), rows] = part
            start += len(parts[0])
        return whole


def _read_back(
    last: Array, row: Array, beam: Array, tokens: Array, log_probs: Array, beams: Array
) -> tuple[list[list[list[int]]], list[list[list[float]]]]:
    """Tokens and log-probabilities at all positions of the n choices (B, n); those behind the
    last mean nothing."""
    path = numpy.empty((*last.shape, len(tokens)), tokens.dtype)
    values = numpy.empty(path.shape, log_probs.dtype)
    for position in reversed(range(len(tokens))):
        path[..., position], values[..., position] = (
            tokens[position, row, beam],
            log_probs[position, row, beam],
        )
        beam = numpy.where(position <= last, beams[position, row, beam], beam)
    return path.tolist(), values.tolist()


def _hypotheses(
    tokens: list[list[int]],
    log_probs: list[list[float]],
    last: list[int],
    found: list[bool],
    scores: list[float],
    ended: list[bool],
) -> list[Hypothesis]:
    """Those of one sentence that were found."""
    rows = zip(tokens, log_probs, last, found, scores, ended, strict=True)
    return [
        Hypothesis(tuple(t[: n + 1 - e]), s, tuple(p[: n + 1]))
        for t, p, n, there, s, e in rows
        if there
    ]
