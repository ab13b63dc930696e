"""Ways to take the next tokens: the likeliest of all, one drawn for each beam, one branch for
each beam. Knows numbers only."""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER, Choice

_BLOCK = 64  # a vocabulary is looked through in blocks of so many


def likeliest(live: Tensor, logits: Tensor) -> Choice:
    """Beam search without more ado: the K likeliest continuations of all. The logits are used up."""
    values, tokens = top(logits.float(), min(live.size(1), logits.size(2)))
    highest = values[..., :1]
    norms = logits.float().sub_(highest).exp_().sum(-1).log_() + highest[..., 0]  # (B, K)
    return _best(live, values.sub_(norms[..., None]), tokens)


class Likeliest:
    """The same among what the rules have left of the log-probabilities."""

    def choose(self, live: Tensor, log_probs: Tensor, length: int) -> Choice:
        return _best(live, *top(log_probs, min(live.size(1), log_probs.size(2))))

    def keep(self, sentences: Tensor) -> None:
        """Nothing is remembered."""


class Drawn:
    """Sampling: each beam goes its own way, a token drawn from what temperature, top-k and top-p
    leave of its distribution."""

    def __init__(self, options: SearchOptions, device: torch.device) -> None:
        self._options = options
        self._generator = torch.Generator(device).manual_seed(options.seed)

    def choose(self, live: Tensor, log_probs: Tensor, length: int) -> Choice:
        wanted = self._options
        size = log_probs.size(2)
        # Ranked, the likeliest first, both limits are a cut at some rank.
        values, tokens = (
            top(log_probs, min(wanted.top_k, size))
            if wanted.top_k
            else log_probs.sort(-1, descending=True)
        )
        chances = (values / wanted.temperature).softmax(-1).nan_to_num(0.0)
        before = chances.cumsum(-1) - chances
        chances = chances.masked_fill(before >= wanted.top_p, 0.0)
        chances[..., 0].masked_fill_(
            chances.sum(-1) == 0.0, 1.0
        )  # a row without numbers dies of its sum, not of the draw
        drawn = torch.multinomial(chances.flatten(0, 1), 1, generator=self._generator).view(
            *live.shape, 1
        )
        picked = values.gather(2, drawn)[..., 0]
        return Choice(tokens.gather(2, drawn)[..., 0], picked, sums(live, picked), own(live))

    def keep(self, sentences: Tensor) -> None:
        """Nothing is remembered."""


class Branches:
    """Alternatives at one position: the K likeliest tokens there, each followed by what is
    likeliest after it."""

    def __init__(self, position: int) -> None:
        self._position = position

    def choose(self, live: Tensor, log_probs: Tensor, length: int) -> Choice:
        if length == self._position:
            return Likeliest().choose(
                live, log_probs, length
            )  # all beams but the first are dead, so these are its own
        values, tokens = (found[..., 0] for found in top(log_probs, 1))
        return Choice(tokens, values, sums(live, values), own(live))

    def keep(self, sentences: Tensor) -> None:
        """Nothing is remembered."""


def _best(live: Tensor, values: Tensor, tokens: Tensor) -> Choice:
    """The best K of all are among the best K of each beam, (B, K, K): `values` are their
    log-probabilities."""
    if live.size(1) == 1:
        return Choice(
            tokens[:, 0], values[:, 0], sums(live, values[:, 0]), torch.zeros_like(tokens[:, 0])
        )
    totals, picks = sums(live[:, :, None], values).flatten(1).topk(live.size(1))
    return Choice(
        tokens.flatten(1).gather(1, picks),
        values.flatten(1).gather(1, picks),
        totals,
        picks // values.size(2),
    )


def top(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` greatest of the last dimension and where they are, as `topk`, and several times
    as fast.

    The greatest values are in the blocks with the greatest maxima, and finding the maximum of a
    block is quick.
    """
    whole = values.size(-1) // _BLOCK
    if whole <= count:
        return values.topk(count)
    blocks = values[..., : whole * _BLOCK].unflatten(-1, (whole, _BLOCK))
    best = blocks.amax(-1).topk(count).indices  # (…, count)
    inside = torch.arange(_BLOCK, device=values.device)
    places = (best[..., None] * _BLOCK + inside).flatten(-2)
    rest = torch.arange(whole * _BLOCK, values.size(-1), device=values.device).expand(
        *values.shape[:-1], -1
    )
    places = torch.cat([places, rest], -1)
    greatest, picks = values.gather(-1, places).topk(count)
    return greatest, places.gather(-1, picks)


def sums(live: Tensor, values: Tensor) -> Tensor:
    """live + values; what is not a number is never chosen."""
    return (live + values).nan_to_num(nan=NEVER, neginf=NEVER)


def own(live: Tensor) -> Tensor:
    """(B, K): every beam continues itself."""
    return torch.arange(live.size(1), device=live.device).expand_as(live)
