"""Ways to choose the next tokens: the likeliest of all, one drawn for each beam, one branch for
each beam. Knows numbers only.

Shapes: B sentences, K beams, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER, Choice, Place

_BLOCK = 64  # a vocabulary is looked through in blocks of this size


def likeliest(live: Tensor, logits: Tensor) -> Choice:
    """Plain beam search: the K likeliest continuations of all. Overwrites the logits."""
    count = min(live.size(1), logits.size(2))
    logits = logits.float()
    values, tokens = top(logits, count)
    highest = values[..., :1]
    shifted = logits.sub_(highest)
    chances = shifted.exp_()
    total = chances.sum(-1, keepdim=True)
    norms = total.log_() + highest  # (B, K, 1)
    log_probs = values.sub_(norms)
    return _best(live, log_probs, tokens)


class Likeliest:
    """Beam search among what the rules have left of the log-probabilities."""

    def choose(self, live: Tensor, log_probs: Tensor, length: Place) -> Choice:
        """Choose the K likeliest continuations of all."""
        count = min(live.size(1), log_probs.size(2))
        values, tokens = top(log_probs, count)
        return _best(live, values, tokens)

    def keep(self, sentences: Tensor) -> None:
        """Do nothing: this chooser has no memory."""


class Drawn:
    """Sampling: each beam goes its own way, a token drawn from what temperature, top-k and top-p
    leave of its distribution."""

    def __init__(self, options: SearchOptions, device: torch.device) -> None:
        self._options = options
        self._generator = torch.Generator(device).manual_seed(options.seed)

    def choose(self, live: Tensor, log_probs: Tensor, length: Place) -> Choice:
        """Draw one token for each beam."""
        values, tokens = self._ranked(log_probs)
        chances = self._chances(values)
        rows = chances.flatten(0, 1)
        drawn = torch.multinomial(rows, 1, generator=self._generator)
        drawn = drawn.view(*live.shape, 1)
        token = tokens.gather(2, drawn)
        log_prob = values.gather(2, drawn)
        return _one_each(live, token, log_prob)

    def keep(self, sentences: Tensor) -> None:
        """Do nothing: this chooser has no memory of sentences."""

    def _chances(self, values: Tensor) -> Tensor:
        """What temperature and top-p make of the log-probabilities, the likeliest first."""
        scaled = values / self._options.temperature
        chances = scaled.softmax(-1).nan_to_num(0.0)
        before = chances.cumsum(-1) - chances
        beyond = before >= self._options.top_p
        chances = chances.masked_fill(beyond, 0.0)
        # A row of NaN gets some chance, so that drawing works; its sum will rule it out.
        hopeless = chances.sum(-1) == 0.0
        first = chances[..., 0]
        first.masked_fill_(hopeless, 1.0)
        return chances

    def _ranked(self, log_probs: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities and their tokens, the likeliest first, so that top-k and top-p both
        keep the first few."""
        if self._options.top_k:
            count = min(self._options.top_k, log_probs.size(2))
            return top(log_probs, count)
        ranked = log_probs.sort(-1, descending=True)
        return ranked.values, ranked.indices


class Branches:
    """Alternatives at one position: the K likeliest tokens there, each followed by what is
    likeliest after it."""

    def __init__(self, position: int) -> None:
        self._position = position

    def choose(self, live: Tensor, log_probs: Tensor, length: Place) -> Choice:
        """Choose K tokens at the position where the outputs part, and one for each beam
        elsewhere."""
        if length == self._position:
            # All beams but the first are dead here, so these are continuations of the first.
            return Likeliest().choose(live, log_probs, length)
        values, tokens = top(log_probs, 1)
        return _one_each(live, tokens, values)

    def keep(self, sentences: Tensor) -> None:
        """Do nothing: this chooser has no memory."""


def top(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the `count` greatest of the last dimension and their indices, as `topk` does but
    several times as fast.

    The greatest values are in the blocks with the greatest maxima, and finding the maximum of a
    block is quick.
    """
    size = values.size(-1)
    n_blocks = size // _BLOCK
    if n_blocks <= count:
        return values.topk(count)
    in_blocks = n_blocks * _BLOCK
    blocks = values[..., :in_blocks]
    blocks = blocks.unflatten(-1, (n_blocks, _BLOCK))
    maxima = blocks.amax(-1)
    _, best = maxima.topk(count)  # (…, count)
    first = best[..., None] * _BLOCK
    inside = torch.arange(_BLOCK, device=values.device)
    indices = first + inside
    indices = indices.flatten(-2)
    rest = torch.arange(in_blocks, size, device=values.device)
    rest = rest.expand(*values.shape[:-1], -1)
    indices = torch.cat([indices, rest], -1)
    candidates = values.gather(-1, indices)
    greatest, picks = candidates.topk(count)
    return greatest, indices.gather(-1, picks)


def sums(live: Tensor, values: Tensor) -> Tensor:
    """Return live + values, with -inf for NaN, so that it is never chosen."""
    totals = live + values
    return totals.nan_to_num(nan=NEVER, neginf=NEVER)


def own(live: Tensor) -> Tensor:
    """Return (B, K) indices by which every beam continues itself."""
    every = torch.arange(live.size(1), device=live.device)
    return every.expand_as(live)


def _one_each(live: Tensor, tokens: Tensor, values: Tensor) -> Choice:
    """Every beam continues itself with its one token; tokens and their log-probabilities are
    (B, K, 1)."""
    log_probs = values[..., 0]
    return Choice(
        tokens=tokens[..., 0],
        log_probs=log_probs,
        totals=sums(live, log_probs),
        beams=own(live),
    )


def _best(live: Tensor, values: Tensor, tokens: Tensor) -> Choice:
    """The best K of all are among the best K of each beam, (B, K, K); `values` are their
    log-probabilities."""
    n_beams = live.size(1)
    if n_beams == 1:
        return _one_each(live, tokens, values)
    candidates = sums(live[..., None], values)
    totals, picks = candidates.flatten(1).topk(n_beams)
    tokens = tokens.flatten(1)
    log_probs = values.flatten(1)
    return Choice(
        tokens=tokens.gather(1, picks),
        log_probs=log_probs.gather(1, picks),
        totals=totals,
        beams=picks // values.size(2),
    )
