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

A term that occurs several times is said as often, and each time it belongs to the occurrence that
was looked at most.

Shapes: B sentences, K beams, V vocabulary, C terms, O occurrences, E edges, L tokens of the longest
form, S source tokens; see term_tree.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from dragoman.decoding.choosers import sums, top
from dragoman.decoding.step import NEVER, Choice, Problem, S
from dragoman.decoding.term_tree import ANY, Tree, Wanted, owners, plant, spots

# The price of beginning a term, times the logarithm of the attention to it, which counts as
# _LEAST at least.
_ELSEWHERE = 2.0
_ELSEWHERE_AGAIN = 4.0
_LEAST = 0.05
# The price of another token while a term is looked at, times the attention to it: where there is
# one term, where there are several, and of a term that occurs several times. The more there is to
# say, the likelier it is put off to the end, where to repeat a form costs little.
_PASSED = 2.0
_PASSED_OF_SEVERAL = 6.0
_PASSED_AGAIN = 20.0
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
        self._owners = owners(wanted).to(device)
        shape = (n_rows, beams)
        n_terms = self._tree.counts.size(1)
        n_said = self._tree.head.size(2)
        n_occurrences = self._spots.size(1)
        self._now = _Progress(
            lent=torch.zeros(shape, device=device),
            met=torch.zeros(*shape, n_terms, dtype=torch.long, device=device),
            node=torch.zeros(shape, dtype=torch.long, device=device),
            fresh=torch.full(shape, -1, device=device),
            said=torch.full((*shape, n_said), _NOTHING, device=device),
            served=torch.zeros(*shape, n_occurrences, dtype=torch.bool, device=device),
            begun=torch.zeros(*shape, n_occurrences, device=device),
        )
        self._seen = self._now.begun  # (B, K, O) how much each occurrence is looked at now

    def choose(self, live: Tensor, log_probs: Tensor, length: int) -> Choice:
        """Choose K continuations, shared out over the banks."""
        needs = self._needs(length)
        bound, free = self._candidates(log_probs, needs, length)
        n_free = free.values.size(2)
        values = torch.cat([free.values, bound.values], -1)  # (B, K, n_free + E)
        n_values = values.size(2)
        lent = self._lent(bound, n_free)
        totals = sums(live[..., None], values)
        totals = totals - self._prices(needs.missing, n_free)

        banks = self._banks(free)
        picks = _share_out(totals - lent, banks, self._n_banks)  # (B, K)
        beams = picks // n_values
        edges = picks % n_values - n_free
        tokens = _picked(torch.cat([free.tokens, bound.tokens], -1), picks)
        totals = _picked(totals, picks)
        edges = edges.masked_fill(totals == NEVER, -1)
        self._follow(tokens, beams, edges, _picked(lent, picks))
        return Choice(tokens, _picked(values, picks), totals, beams)

    def keep(self, sentences: Tensor) -> None:
        """Drop finished sentences, as `State.keep` does."""
        self._max_lengths = self._max_lengths[sentences]
        self._prefix_lengths = self._prefix_lengths[sentences]
        self._spots = self._spots[sentences]
        self._owners = self._owners[sentences]
        self._seen = self._seen[sentences]
        self._tree = Tree._make(part[sentences] for part in self._tree)
        self._now = _Progress._make(part[sentences] for part in self._now)

    def _needs(self, length: int) -> _Needs:
        """What is still to be said after `length` tokens."""
        missing = self._tree.counts[:, None] - self._now.met
        shortest = self._tree.shortest[:, None]
        need = (missing * shortest).sum(-1, keepdim=True)
        room = self._max_lengths - length - 2
        return _Needs(missing, need, room[..., None])

    def _candidates(
        self, log_probs: Tensor, needs: _Needs, length: int
    ) -> tuple[_Candidates, _Candidates]:
        """What may follow along the edges, and what the free hypotheses may say."""
        tree = self._tree
        met = needs.missing[:, :, None] == 0
        rest = tree.rest[:, None].masked_fill(met, torch.inf)
        rest = rest.amin(-1)  # (B, K, E)
        edges = tree.token[:, None].expand_as(rest)
        # (B, K) forms just completed, which nothing may be written onto outside of a prefix
        in_prefix = length < self._prefix_lengths
        fresh = self._now.fresh.masked_fill(in_prefix, -1)
        bound = log_probs.gather(2, edges)
        allowed = self._leaves(fresh) & (needs.tokens + rest <= needs.room)
        bound = bound.masked_fill(~allowed, NEVER)
        self._forbid(log_probs, edges, rest, needs.tokens)
        free = self._free(log_probs, needs, fresh)
        return _Candidates(bound, edges), free

    def _leaves(self, fresh: Tensor) -> Tensor:
        """(B, K, E) whether the edge leaves the node of the hypothesis, or the form that it has
        just completed."""
        parent = self._tree.parent[:, None]
        node = self._now.node[..., None]
        return (parent == node) | (parent == fresh[..., None])

    def _free(self, log_probs: Tensor, needs: _Needs, fresh: Tensor) -> _Candidates:
        """The likeliest tokens of the hypotheses that are bound to no form."""
        is_fresh = (fresh >= 0)[..., None]
        log_probs.addcmul_(is_fresh.to(log_probs), self._glue)
        count = min(fresh.size(1), log_probs.size(2))
        values, tokens = top(log_probs, count)
        is_free = self._now.node[..., None] == 0
        fits = (needs.tokens == 0) | (needs.tokens <= needs.room)
        allowed = is_free & fits & (values > _GLUED / 2)
        return _Candidates(values.masked_fill(~allowed, NEVER), tokens)

    def _lent(self, bound: _Candidates, n_free: int) -> Tensor:
        """(B, K, n_free + E) what each continuation would have on loan."""
        inside = (self._tree.parent != 0)[:, None]
        counts_later = inside & (bound.values > NEVER)
        of_form = torch.where(counts_later, bound.values, 0.0)
        return self._now.lent[..., None] + pad(of_form, (n_free, 0))

    def _banks(self, free: _Candidates) -> Tensor:
        """(B, K, n_free + E) how many terms each continuation has said or begun."""
        said = self._now.met.sum(-1, keepdim=True)
        of_free = said.expand_as(free.tokens)
        of_bound = said + self._tree.adds[:, None]
        return torch.cat([of_free, of_bound], -1)

    def _forbid(self, log_probs: Tensor, edges: Tensor, rest: Tensor, need: Tensor) -> None:
        """Forbid what a free hypothesis may not say: the last token of a term that it has not
        begun as such, and its end too early."""
        head = self._tree.head[:, None]  # (B, 1, E, L - 1)
        same = (self._now.said[:, :, None] == head) | (head == ANY)
        completes = same.all(-1) & rest.isfinite()
        limit = torch.where(completes, NEVER, torch.inf)
        log_probs.scatter_reduce_(2, edges, limit.to(log_probs), "amin")
        of_end = log_probs[..., self._end]
        too_early = need[..., 0] > 0
        of_end.masked_fill_(too_early, NEVER)

    def _prices(self, missing: Tensor, n_free: int) -> Tensor:
        """(B, K, n_free + E) what each continuation pays for where it looks; 0 where that is not
        known."""
        if self._looks is None:
            return torch.zeros((), device=missing.device)
        looked = self._looked(missing)
        serves = self._tree.rest.isfinite()[:, None]  # (B, 1, E, C)
        at_root = (self._tree.parent == 0)[:, None]
        begins = at_root & serves.any(-1)
        there = looked[:, :, None].masked_fill(~serves, 0.0)
        there = there.amax(-1).clamp(min=_LEAST)  # (B, K, E)
        is_repeated = (self._tree.counts > 1)[:, None]  # (B, 1, C)
        repeats = (serves & is_repeated[:, :, None]).any(-1)  # (B, 1, E)
        elsewhere = -torch.where(repeats, _ELSEWHERE_AGAIN, _ELSEWHERE) * there.log()
        elsewhere = elsewhere.masked_fill(~begins, 0.0)
        is_several = self._tree.counts[:, 1:].sum(-1)[:, None, None] > 1
        price = torch.where(is_several, _PASSED_OF_SEVERAL, _PASSED)
        price = torch.where(is_repeated, _PASSED_AGAIN, price)
        passed = (price * looked).amax(-1, keepdim=True)
        passed = passed.expand(-1, -1, n_free)
        return torch.cat([passed, elsewhere], -1)

    def _looked(self, missing: Tensor) -> Tensor:
        """(B, K, C) how much each hypothesis looks at the occurrences of terms that it has not
        translated."""
        assert self._looks is not None
        looks = self._looks().float()
        n_unmarked = looks.size(-1) - self._spots.size(-1)
        spots_there = pad(self._spots, (0, n_unmarked))
        seen = torch.einsum("bks,bos->bko", looks, spots_there).clamp(max=1.0)
        self._seen = seen.masked_fill(self._now.served, 0.0)
        looked = torch.einsum("bko,boc->bkc", self._seen, self._owners)
        return looked.clamp(max=1.0).masked_fill(missing == 0, 0.0)

    def _follow(self, tokens: Tensor, beams: Tensor, edges: Tensor, lent: Tensor) -> None:
        """edges (B, K) are below 0 where a free hypothesis stays free."""
        tree = self._tree
        now = self._now
        bound = edges >= 0
        edges = edges.clamp(min=0)
        row = torch.arange(len(beams), device=beams.device)[:, None]
        newly_met = tree.meets[row, edges] * bound[..., None]
        completed = tree.fresh[row, edges]
        said = torch.cat([tokens[..., None], now.said[row, beams]], -1)
        said = said[..., :-1]
        begins = bound & (tree.parent[row, edges] == 0)
        begun = torch.where(begins[..., None], self._seen[row, beams], now.begun[row, beams])
        self._now = _Progress(
            lent=lent,
            met=now.met[row, beams] + newly_met,
            node=tree.target[row, edges] * bound,
            fresh=completed.masked_fill(~bound, -1),
            said=said.masked_fill(bound[..., None], _NOTHING),
            served=self._served(now.served[row, beams], begun, newly_met),
            begun=begun,
        )

    def _served(self, served: Tensor, begun: Tensor, newly_met: Tensor) -> Tensor:
        """(B, K, O) the occurrences that are translated, with one of each term that is said now:
        that which was looked at most when its form was begun."""
        owned = torch.einsum("bkc,boc->bko", newly_met.float(), self._owners) > 0
        open_ones = owned & ~served
        best = begun.masked_fill(~open_ones, -1.0).argmax(-1)
        chosen = one_hot(best, served.size(-1)).bool()
        return served | (chosen & open_ones)


class _Needs(NamedTuple):
    """What is still to be said, and how much may be."""

    missing: Tensor  # (B, K, C) how often each term is still to be said
    tokens: Tensor  # (B, K, 1) that the missing terms take at least
    room: Tensor  # (B, 1, 1) tokens between this one and the end


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
    served: Tensor  # (B, K, O) whether it has translated the occurrence
    begun: Tensor  # (B, K, O) how much it looked at the occurrence when it last began a form


def _share_out(totals: Tensor, banks: Tensor, n_banks: int) -> Tensor:
    """(B, K) indices into the totals (B, K, N) of each sentence: the best of each bank, then the
    second best of each, and so on."""
    n_beams = totals.size(1)
    totals, order = totals.flatten(1).sort(descending=True, stable=True)
    banks = banks.flatten(1).gather(1, order)
    members = one_hot(banks, n_banks).cumsum(1)
    ranks = members.gather(2, banks[..., None])[..., 0]
    ranks = ranks.masked_fill(totals == NEVER, totals.size(1) + 1)
    best = ranks.argsort(stable=True)[:, :n_beams]
    return order.gather(1, best)


def _picked(values: Tensor, picks: Tensor) -> Tensor:
    """(B, K) the values (B, K, N) at these indices of each sentence."""
    return values.flatten(1).gather(1, picks)
