"""Beam search that says given terms, each in one of its forms. Knows tokens and numbers; no text
and no glossary.

After Post and Vilar (2018) and Hu et al. (2019), simplified: a hypothesis is free, or it has begun
a form and says that form to its end. The beam is shared out over banks, a bank being the hypotheses
that have said or begun equally many terms, so that those that have paid for a term are not crowded
out by those that have not.

Where a term belongs is known by where the hypothesis looks in the source, and it pays for what it
says elsewhere; see term_prices.py. All but the first token of a form count only in the end: they
cost much the same anywhere, and a hypothesis that has begun a form would lose to one that begins it
later.

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
from dragoman.decoding.step import NEVER, Choice, Place, Problem, S
from dragoman.decoding.term_prices import prices
from dragoman.decoding.term_progress import NOTHING, Progress, beginning
from dragoman.decoding.term_tree import (
    ANY,
    Extent,
    Tree,
    Wanted,
    grown,
    owners,
    plant,
    spots,
    widened,
)

# Added to the log-probability of what would spoil a form, in one pass over the vocabulary. It is
# finite because 0 * -inf is NaN.
_GLUED = -1e30


def required_length(terms: Sequence[Sequence[Sequence[int]]]) -> int:
    """Return the fewest tokens, including the end, of an output with one form of each term."""
    shortest = [min(map(len, forms)) for forms in terms]
    return sum(shortest) + 1


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
        max_lengths = problem.max_lengths
        device = max_lengths.device
        end = problem.end
        n_rows = len(wanted.terms)
        prefixes = problem.prefixes or [[]] * n_rows
        prefix_lengths = [[len(row)] for row in prefixes]
        self._end = end
        self._max_lengths = max_lengths[:, None]  # (B, 1)
        self._prefix_lengths = torch.tensor(prefix_lengths, device=device)
        self._glue = joins * _GLUED
        self._glue[end] = 0.0
        self._tree = plant(wanted, joins)
        self._n_banks = 2 + max(map(len, wanted.terms))
        self._looks = looks
        self._spots = spots(wanted).to(device)
        self._owners = owners(wanted).to(device)
        n_occurrences = self._spots.size(1)
        self._now = beginning(self._tree, (n_rows, beams), n_occurrences)
        # (B, K, O) how much each occurrence is looked at now
        self._seen = torch.zeros_like(self._now.begun)

    def choose(self, live: Tensor, log_probs: Tensor, length: Place) -> Choice:
        """Choose K continuations, shared out over the banks."""
        needs = self._needs(length)
        bound, free = self._candidates(log_probs, needs, length)
        n_free = free.values.size(2)
        values = torch.cat([free.values, bound.values], -1)  # (B, K, n_free + E)
        tokens = torch.cat([free.tokens, bound.tokens], -1)
        n_values = values.size(2)
        lent = self._lent(bound, n_free)
        totals = sums(live[..., None], values)
        if self._looks is not None:
            looked = self._looked(self._looks(), needs.missing)
            totals = totals - prices(self._tree, looked, n_free)

        banks = self._banks(free)
        picks = _share_out(totals - lent, banks, self._n_banks)  # (B, K)
        chosen = Choice(
            tokens=_picked(tokens, picks),
            log_probs=_picked(values, picks),
            totals=_picked(totals, picks),
            beams=picks // n_values,
        )
        edges = picks % n_values - n_free
        edges = edges.masked_fill(chosen.totals == NEVER, -1)
        self._follow(chosen, edges, _picked(lent, picks))
        return chosen

    def keep(self, sentences: Tensor) -> None:
        """Drop finished sentences, as `State.keep` does."""
        self._max_lengths = self._max_lengths[sentences]
        self._prefix_lengths = self._prefix_lengths[sentences]
        self._spots = self._spots[sentences]
        self._owners = self._owners[sentences]
        self._seen = self._seen[sentences]
        self._tree = Tree._make(part[sentences] for part in self._tree)
        self._now = Progress._make(part[sentences] for part in self._now)

    def widen(self, extent: Extent) -> None:
        """Give all tables this size, which is large enough, as other sentences in the batch might
        have done. From then on they keep their place in memory."""
        n_rows, n_beams = self._now.node.shape
        self._tree = widened(self._tree, extent)
        self._spots = grown(self._spots, (n_rows, extent.occurrences, extent.source), 0.0)
        self._owners = grown(self._owners, (n_rows, extent.occurrences, extent.terms), 0.0)
        self._now = beginning(self._tree, (n_rows, n_beams), extent.occurrences)
        self._seen = torch.zeros_like(self._now.begun)
        self._n_banks = extent.occurrences + 2

    def take(self, other: Terms) -> None:
        """Begin anew with the terms of the other, whose tables have the same size."""
        for kept, new in zip(self._tables(), other._tables(), strict=True):
            kept.copy_(new)

    def _tables(self) -> list[Tensor]:
        """All that differs from search to search, but for the maximum lengths."""
        own = [self._prefix_lengths, self._spots, self._owners, self._seen]
        return [*own, *self._tree, *self._now]

    def _needs(self, length: Place) -> _Needs:
        """What is still to be said after `length` tokens."""
        tree = self._tree
        missing = tree.counts[:, None] - self._now.met
        tokens = missing * tree.shortest[:, None]
        room = self._max_lengths - length - 2
        return _Needs(
            missing=missing,
            tokens=tokens.sum(-1, keepdim=True),
            room=room[..., None],
        )

    def _candidates(
        self, log_probs: Tensor, needs: _Needs, length: Place
    ) -> tuple[_Candidates, _Candidates]:
        """What may follow along the edges, and what the free hypotheses may say."""
        tree = self._tree
        is_met = needs.missing == 0
        rest = tree.rest[:, None]
        rest = rest.masked_fill(is_met[:, :, None], torch.inf)
        rest = rest.amin(-1)  # (B, K, E)
        edges = tree.token[:, None]
        edges = edges.expand_as(rest)
        # (B, K) forms just completed, which nothing may be written onto outside of a prefix
        in_prefix = length < self._prefix_lengths
        fresh = self._now.fresh.masked_fill(in_prefix, -1)
        of_edges = log_probs.gather(2, edges)
        fits = needs.tokens + rest <= needs.room
        allowed = self._leaves(fresh) & fits
        of_edges = of_edges.masked_fill(~allowed, NEVER)
        bound = _Candidates(of_edges, edges)
        self._forbid(log_probs, edges, rest, needs.tokens)
        free = self._free(log_probs, needs, fresh)
        return bound, free

    def _leaves(self, fresh: Tensor) -> Tensor:
        """(B, K, E) whether the edge leaves the node of the hypothesis, or the form that it has
        just completed."""
        parent = self._tree.parent[:, None]
        node = self._now.node[..., None]
        completed = fresh[..., None]
        return (parent == node) | (parent == completed)

    def _free(self, log_probs: Tensor, needs: _Needs, fresh: Tensor) -> _Candidates:
        """The likeliest tokens of the hypotheses that are bound to no form."""
        is_fresh = fresh >= 0
        is_fresh = is_fresh[..., None]
        log_probs.addcmul_(is_fresh.to(log_probs), self._glue)
        n_beams = fresh.size(1)
        vocabulary = log_probs.size(2)
        values, tokens = top(log_probs, min(n_beams, vocabulary))
        is_free = self._now.node == 0
        fits = (needs.tokens == 0) | (needs.tokens <= needs.room)
        unglued = values > _GLUED / 2
        allowed = is_free[..., None] & fits & unglued
        values = values.masked_fill(~allowed, NEVER)
        return _Candidates(values, tokens)

    def _lent(self, bound: _Candidates, n_free: int) -> Tensor:
        """(B, K, n_free + E) what each continuation would have on loan."""
        inside = self._tree.parent != 0
        allowed = bound.values > NEVER
        counts_later = inside[:, None] & allowed
        of_form = torch.where(counts_later, bound.values, 0.0)
        before = self._now.lent[..., None]
        return before + pad(of_form, (n_free, 0))

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
        said = self._now.said[:, :, None]
        same = (said == head) | (head == ANY)
        completes = same.all(-1) & rest.isfinite()
        limit = torch.where(completes, NEVER, torch.inf)
        log_probs.scatter_reduce_(2, edges, limit.to(log_probs), "amin")
        of_end = log_probs[..., self._end]
        too_early = need[..., 0] > 0
        of_end.masked_fill_(too_early, NEVER)

    def _looked(self, looks: Tensor, missing: Tensor) -> Tensor:
        """(B, K, C) how much each hypothesis looks at the occurrences of terms that it has not
        translated."""
        n_unmarked = looks.size(-1) - self._spots.size(-1)
        spots_there = pad(self._spots, (0, n_unmarked))
        seen = torch.einsum("bks,bos->bko", looks.float(), spots_there)
        seen = seen.clamp(max=1.0)
        self._seen.copy_(seen.masked_fill(self._now.served, 0.0))
        looked = torch.einsum("bko,boc->bkc", self._seen, self._owners)
        looked = looked.clamp(max=1.0)
        return looked.masked_fill(missing == 0, 0.0)

    def _follow(self, chosen: Choice, edges: Tensor, lent: Tensor) -> None:
        """edges (B, K) are below 0 where a free hypothesis stays free."""
        tree = self._tree
        sentences = torch.arange(len(edges), device=edges.device)
        row = sentences[:, None]
        now = self._now
        continued = (row, chosen.beams)
        is_bound = edges >= 0
        edge = (row, edges.clamp(min=0))
        newly_met = tree.meets[edge] * is_bound[..., None]
        completed = tree.fresh[edge]
        said = torch.cat([chosen.tokens[..., None], now.said[continued]], -1)
        said = said[..., :-1]
        at_root = tree.parent[edge] == 0
        begins = is_bound & at_root
        begun = torch.where(begins[..., None], self._seen[continued], now.begun[continued])
        moved = Progress(
            lent=lent,
            met=now.met[continued] + newly_met,
            node=tree.target[edge] * is_bound,
            fresh=completed.masked_fill(~is_bound, -1),
            said=said.masked_fill(is_bound[..., None], NOTHING),
            served=self._served(now.served[continued], begun, newly_met),
            begun=begun,
        )
        for kept, new in zip(now, moved, strict=True):
            kept.copy_(new)

    def _served(self, served: Tensor, begun: Tensor, newly_met: Tensor) -> Tensor:
        """(B, K, O) the occurrences that are translated, with one of each term that is said now:
        that which was looked at most when its form was begun."""
        owned = torch.einsum("bkc,boc->bko", newly_met.float(), self._owners)
        open_ones = (owned > 0) & ~served
        looked = begun.masked_fill(~open_ones, -1.0)
        best = looked.argmax(-1)
        n_occurrences = served.size(-1)
        chosen = one_hot(best, n_occurrences).bool()
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


def _share_out(totals: Tensor, banks: Tensor, n_banks: int) -> Tensor:
    """(B, K) indices into the totals (B, K, N) of each sentence: the best of each bank, then the
    second best of each, and so on."""
    n_beams = totals.size(1)
    totals, order = totals.flatten(1).sort(descending=True, stable=True)
    banks = banks.flatten(1).gather(1, order)
    members = one_hot(banks, n_banks).cumsum(1)
    ranks = members.gather(2, banks[..., None])
    ranks = ranks[..., 0]
    behind_all = totals.size(1) + 1
    ranks = ranks.masked_fill(totals == NEVER, behind_all)
    by_rank = ranks.argsort(stable=True)
    best = by_rank[:, :n_beams]
    return order.gather(1, best)


def _picked(values: Tensor, picks: Tensor) -> Tensor:
    """(B, K) the values (B, K, N) at these indices of each sentence."""
    return values.flatten(1).gather(1, picks)
