"""Beam search that says given terms, each in one of its forms. Knows tokens and numbers; no text
and no glossary.

After Post and Vilar (2018) and Hu et al. (2019), simplified: a hypothesis is free, or it has begun
a form and says that form to its end. The beam is shared out over banks, a bank being the hypotheses
that have said or begun equally many terms, so that those that have paid for a term are not crowded
out by those that have not.

Where a term belongs is known by where the hypothesis looks in the source. It pays for beginning a
term while it looks elsewhere, and for saying something else while it looks at a term that is still
to be said. All but the first token of a form count only in the end: they cost much the same
anywhere, and a hypothesis that has begun a form would lose to one that begins it later.

Shapes: B sentences, K beams, V vocabulary, C terms, E edges, L tokens of the longest form, S source
tokens; see term_tree.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from dragoman.decoding.choosers import sums, top
from dragoman.decoding.step import NEVER, Choice, Problem, S
from dragoman.decoding.term_tree import ANY, Tree, Wanted, plant, spots

# The price of beginning a term, times the logarithm of the attention to it, which counts as
# _LEAST at least.
_ELSEWHERE = 2.0
_LEAST = 0.05
# The price of another token while a term is looked at, times the attention to it.
_PASSED = 2.0
_NOTHING = -3  # in place of a token of a form: nothing was said
# Added to the log-probability of what would spoil a form, in one pass over the vocabulary. It is
# finite because 0 * -inf is NaN.
_GLUED = -1e30


def required_length(terms: Sequence[Sequence[Sequence[int]]]) -> int:
    """Return the fewest tokens, including the end, of an output with one form of each term."""
    return 1 + sum(min(map(len, forms)) for forms in terms)


class Terms:
    """Chooses the likeliest continuations such that every output says all terms of its sentence.

    Forms of different terms do not overlap. The maximum lengths have room for the prefix and the
    `required_length`; what cannot be met (a rule may forbid a form) leaves the sentence without a
    hypothesis. `joins` (V,) is True for tokens that are written onto the word before them: they do
    not follow a form, except within a prefix. `looks` returns how much each hypothesis looks at
    each source token at this position, (B, K, S).
    """

    def __init__(
        self,
        wanted: Wanted,
        problem: Problem[S],
        beams: int,
        joins: Tensor,
        looks: Callable[[], Tensor] | None = None,
    ) -> None:
        device = problem.max_lengths.device
        n_rows = len(wanted.terms)
        prefixes = problem.prefixes or [[]] * n_rows
        self._end = problem.end
        self._max_lengths = problem.max_lengths[:, None]  # (B, 1)
        self._prefix_lengths = torch.tensor([[len(row)] for row in prefixes], device=device)
        self._glue = joins * _GLUED
        self._glue[problem.end] = 0.0
        self._tree = plant(wanted, joins)
        self._n_banks = 2 + max(map(len, wanted.terms))
        self._looks = looks
        self._spots = spots(wanted).to(device)
        shape = (n_rows, beams)
        n_terms = self._tree.counts.size(1)
        n_said = self._tree.head.size(2)
        self._now = _Progress(
            lent=torch.zeros(shape, device=device),
            met=torch.zeros(*shape, n_terms, dtype=torch.long, device=device),
            node=torch.zeros(shape, dtype=torch.long, device=device),
            fresh=torch.full(shape, -1, device=device),
            said=torch.full((*shape, n_said), _NOTHING, device=device),
        )

    def choose(self, live: Tensor, log_probs: Tensor, length: int) -> Choice:
        """Choose K continuations, shared out over the banks."""
        tree = self._tree
        now = self._now
        missing = tree.counts[:, None] - now.met  # (B, K, C)
        # (B, K, 1) tokens of the terms to come
        need = (missing * tree.shortest[:, None]).sum(-1, keepdim=True)
        # (B, 1, 1) tokens between this one and the end
        room = (self._max_lengths - length - 2)[..., None]
        bound, free = self._candidates(log_probs, (missing, need, room), length)
        values = torch.cat([free.values, bound.values], -1)  # (B, K, width + E)
        width = free.values.size(2)
        inside = (tree.parent != 0)[:, None] & (bound.values > NEVER)
        of_form = torch.where(inside, bound.values, 0.0)
        lent = now.lent[..., None] + pad(of_form, (width, 0))
        totals = sums(live[..., None], values) - self._prices(missing, width)
        said = now.met.sum(-1, keepdim=True)
        banks = torch.cat([said.expand_as(free.tokens), said + tree.adds[:, None]], -1)
        ranked = (totals - lent).flatten(1)
        picks = _share_out(ranked, banks.flatten(1), self._n_banks, live.size(1))
        totals = totals.flatten(1).gather(1, picks)
        beams = picks // values.size(2)
        tokens = torch.cat([free.tokens, bound.tokens], -1).flatten(1).gather(1, picks)
        edges = (picks % values.size(2) - width).masked_fill(totals == NEVER, -1)
        self._follow(tokens, beams, edges, lent.flatten(1).gather(1, picks))
        return Choice(tokens, values.flatten(1).gather(1, picks), totals, beams)

    def keep(self, sentences: Tensor) -> None:
        """Drop finished sentences, as `State.keep` does."""
        self._max_lengths = self._max_lengths[sentences]
        self._prefix_lengths = self._prefix_lengths[sentences]
        self._spots = self._spots[sentences]
        self._tree = Tree._make(part[sentences] for part in self._tree)
        self._now = _Progress._make(part[sentences] for part in self._now)

    def _candidates(
        self, log_probs: Tensor, needs: tuple[Tensor, Tensor, Tensor], length: int
    ) -> tuple[_Candidates, _Candidates]:
        """What may follow along the edges, and what the free hypotheses may say."""
        tree = self._tree
        now = self._now
        missing, need, room = needs
        rest = tree.rest[:, None].masked_fill(missing[:, :, None] == 0, torch.inf)
        rest = rest.amin(-1)  # (B, K, E)
        # (B, K) forms just completed, which nothing may be written onto outside of a prefix
        fresh = now.fresh.masked_fill(length < self._prefix_lengths, -1)
        parent = tree.parent[:, None]
        leaves = (parent == now.node[..., None]) | (parent == fresh[..., None])
        edges = tree.token[:, None].expand_as(rest)
        bound = log_probs.gather(2, edges).masked_fill(~leaves | (need + rest > room), NEVER)
        self._forbid(log_probs, edges, rest, need)
        log_probs.addcmul_((fresh >= 0)[..., None].to(log_probs), self._glue)
        values, tokens = top(log_probs, min(now.node.size(1), log_probs.size(2)))
        is_free = now.node[..., None] == 0
        fits = (need == 0) | (need <= room)
        free = is_free & fits & (values > _GLUED / 2)
        return _Candidates(bound, edges), _Candidates(values.masked_fill(~free, NEVER), tokens)

    def _forbid(self, log_probs: Tensor, edges: Tensor, rest: Tensor, need: Tensor) -> None:
        """Forbid what a free hypothesis may not say: the last token of a term that it has not
        begun as such, and its end too early."""
        head = self._tree.head[:, None]  # (B, 1, E, L - 1)
        same = (self._now.said[:, :, None] == head) | (head == ANY)
        completes = same.all(-1) & rest.isfinite()
        limit = torch.where(completes, NEVER, torch.inf).to(log_probs)
        log_probs.scatter_reduce_(2, edges, limit, "amin")
        log_probs[..., self._end].masked_fill_(need[..., 0] > 0, NEVER)

    def _prices(self, missing: Tensor, width: int) -> Tensor:
        """(B, K, width + E) what each continuation pays for where it looks; 0 where that is not
        known."""
        if self._looks is None:
            return torch.zeros((), device=missing.device)
        looks = self._looks().float()
        places = pad(self._spots, (0, looks.size(-1) - self._spots.size(-1)))
        looked = torch.einsum("bks,bcs->bkc", looks, places).clamp(max=1.0)
        looked = looked.masked_fill(missing == 0, 0.0)  # (B, K, C)
        serves = self._tree.rest.isfinite()[:, None]  # (B, 1, E, C)
        begins = (self._tree.parent == 0)[:, None] & serves.any(-1)
        there = looked[:, :, None].masked_fill(~serves, 0.0).amax(-1)  # (B, K, E)
        elsewhere = -_ELSEWHERE * there.clamp(min=_LEAST).log()
        passed = _PASSED * looked.amax(-1, keepdim=True)
        return torch.cat([passed.expand(-1, -1, width), elsewhere.masked_fill(~begins, 0.0)], -1)

    def _follow(self, tokens: Tensor, beams: Tensor, edges: Tensor, lent: Tensor) -> None:
        """edges (B, K) are below 0 where a free hypothesis stays free."""
        tree = self._tree
        bound = edges >= 0
        edges = edges.clamp(min=0)
        row = torch.arange(len(beams), device=beams.device)[:, None]
        said = torch.cat([tokens[..., None], self._now.said[row, beams]], -1)[..., :-1]
        self._now = _Progress(
            lent=lent,
            met=self._now.met[row, beams] + tree.meets[row, edges] * bound[..., None],
            node=tree.target[row, edges] * bound,
            fresh=tree.fresh[row, edges].masked_fill(~bound, -1),
            said=said.masked_fill(bound[..., None], _NOTHING),
        )


class _Candidates(NamedTuple):
    """Continuations, each (B, K, N)."""

    values: Tensor  # log-probabilities; -inf where one is not allowed
    tokens: Tensor


class _Progress(NamedTuple):
    """How far each hypothesis is."""

    # (B, K) the log-probabilities of all but the first tokens of its forms, which do not count when
    # the beam is shared out
    lent: Tensor
    met: Tensor  # (B, K, C) how often it has said the term
    node: Tensor  # (B, K) that it is bound to; 0 where it is free
    fresh: Tensor  # (B, K) the node of the form that it has just completed, or -1
    said: Tensor  # (B, K, L - 1) its last tokens, newest first, since it was bound to a form


def _share_out(totals: Tensor, banks: Tensor, n_banks: int, count: int) -> Tensor:
    """The indices of `count` of the totals (B, N): the best of each bank, then the second best of
    each, and so on."""
    totals, order = totals.sort(descending=True, stable=True)
    banks = banks.gather(1, order)
    ranks = one_hot(banks, n_banks).cumsum(1).gather(2, banks[..., None])[..., 0]
    ranks = ranks.masked_fill(totals == NEVER, totals.size(1) + 1)
    picks = ranks.argsort(stable=True)[:, :count]
    return order.gather(1, picks)
