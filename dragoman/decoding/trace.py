"""The record of a search: what was chosen at each position, and the hypotheses read back from it at the end.

Knows nothing of how the choice was made. Reading back once is cheaper than carrying every history along.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.decoding.options import SearchOptions
from dragoman.decoding.seam import Hypothesis, State, length_penalty

NEVER = float("-inf")
_FULL_ENOUGH = 0.75  # share of the batch still running above which sentences that are over cost less than moving the others
Found = tuple[bool, float, int, int]  # finished, score, position, beam: the greatest is the best


class Trace:
    """One entry per position. Sentences that have left the batch have no more of them."""

    def __init__(self, max_lengths: Tensor) -> None:
        self._max_lengths = max_lengths.cpu()
        self._rows = torch.arange(len(max_lengths), device=max_lengths.device)
        self._open: list[tuple[Tensor, ...]] = []  # entries since the last sentences left
        self._closed: list[tuple[Tensor, list[Tensor]]] = []

    def add(self, tokens: Tensor, log_probs: Tensor, totals: Tensor, beams: Tensor) -> None:
        """All (B, K): the token, its log-probability, the sum up to it (-inf: not a choice), the beam it continues."""
        self._open.append((tokens, log_probs, totals, beams))

    def thin(self, over: Tensor, running: int, state: State, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Lets the sentences that are over leave the state and the tensors, as soon as there are enough of them."""
        if running > _FULL_ENOUGH * len(over):
            return tensors
        self._close()
        left = (~over).nonzero().flatten()
        self._rows = self._rows[left]
        state.keep(left)
        return tuple(tensor[left] for tensor in tensors)

    def hypotheses(self, options: SearchOptions, eos: int) -> list[list[Hypothesis]]:
        """The n best of each sentence, best first; those cut at the maximum length come after all that finished."""
        self._close()
        tokens, log_probs, totals, beams = self._whole()  # (T, B, K)
        lengths = torch.arange(1, len(tokens) + 1)[:, None, None]
        scores = totals.double() / length_penalty(lengths.double(), options.alpha)
        ended = tokens == eos
        choices = (ended | (lengths == self._max_lengths[:, None])) & (totals > NEVER)
        found: list[list[Found]] = [[] for _ in self._max_lengths]
        for (position, row, beam), finished, score in zip(
            choices.nonzero().tolist(), ended[choices].tolist(), scores[choices].tolist(), strict=True
        ):
            found[row].append((finished, score, position, beam))
        best = [sorted(row, reverse=True)[: options.nbest] for row in found]
        paths = iter(_read_back(best, tokens, log_probs, beams))
        nothing = [Hypothesis((), NEVER, ())]
        return [[_hypothesis(pick, *next(paths)) for pick in row] or nothing for row in best]

    def _close(self) -> None:
        if self._open:
            self._closed.append((self._rows.cpu(), [torch.stack(values).cpu() for values in zip(*self._open, strict=True)]))
        self._open = []

    def _whole(self) -> list[Tensor]:
        """Each kind of value as (T, B, K), -inf or 0 where a sentence had left."""
        _, first = self._closed[0]
        shape = sum(len(parts[0]) for _, parts in self._closed), len(self._max_lengths), first[0].size(2)
        whole = [torch.full(shape, NEVER if part.is_floating_point() else 0, dtype=part.dtype) for part in first]
        start = 0
        for rows, parts in self._closed:
            for values, part in zip(whole, parts, strict=True):
                values[start : start + len(part), rows] = part
            start += len(parts[0])
        return whole


def _read_back(
    best: list[list[Found]], tokens: Tensor, log_probs: Tensor, beams: Tensor
) -> list[tuple[list[int], list[float]]]:
    """Tokens and log-probabilities from the first position on, of every choice in order."""
    ends = [(position, row, beam) for row, picks in enumerate(best) for _, _, position, beam in picks]
    last, row, beam = torch.tensor(ends).reshape(-1, 3).long().T
    path, values = [], []
    for position in reversed(range(len(tokens))):
        path.append(tokens[position, row, beam])
        values.append(log_probs[position, row, beam])
        beam = torch.where(position <= last, beams[position, row, beam], beam)
    columns = zip(torch.stack(path[::-1], 1).tolist(), torch.stack(values[::-1], 1).tolist(), last.tolist(), strict=True)
    return [(line[: end + 1], probs[: end + 1]) for line, probs, end in columns]


def _hypothesis(pick: Found, tokens: list[int], log_probs: list[float]) -> Hypothesis:
    finished, score, _, _ = pick
    return Hypothesis(tuple(tokens[:-1] if finished else tokens), score, tuple(log_probs))
