"""Beam search that says given terms, each in one of its forms. Knows tokens and numbers; no text
and no glossary.

After Post and Vilar (2018) and Hu et al. (2019), simplified: a hypothesis is free, or it has begun
a form and says that form to its end. The beam is shared out over banks, a bank being the hypotheses
that have said or begun equally many terms, so that those that have paid for a term are not crowded
out by those that have not.

Shapes: B sentences, K beams, V vocabulary, C terms (and one for the growing of forms), E edges, L
tokens of the longest form. The forms of a sentence are a tree whose root is the free state; an edge
is one token further into a form, the last one leads back to the root. From there a form may still
grow to a longer one of the same term, by a token that is written onto it.

Where a term belongs is known by where the hypothesis looks in the source. It pays for beginning a
term while it looks elsewhere, and for saying something else while it looks at a term that is still
to be said. All but the first token of a form count only in the end: they cost much the same
anywhere, and who has begun a form would lose to who begins it later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from dragoman.decoding.choosers import sums, top
from dragoman.decoding.step import NEVER, Choice

Form = tuple[int, ...]
_ELSEWHERE, _LEAST = (
    2.0,
    0.05,
)  # the price, times the logarithm of how much is looked at the term, and that at least
_PASSED = 2.0  # the price of a token while a term is looked at, times how much
_ANY, _NONE, _NOTHING = (
    -1,
    -2,
    -3,
)  # in the place of a token in a form: every token matches, none does; nothing was said
# what spoils a form is this much less likely: in one pass over the vocabulary, and 0 times -inf is
# no number
_GLUED = -1e30


def required_length(terms: Sequence[Sequence[Sequence[int]]]) -> int:
    """The tokens, the end counted, that an output with one form of each of the terms has at least."""
    return 1 + sum(min(map(len, forms)) for forms in terms)


class Terms:
    """Takes the likeliest continuations such that every output says all terms of its sentence.

    terms[b][c][f] are the tokens, at least one, of form f of term c of sentence b. Forms of
    different terms do not overlap. max_lengths (B,) have room for the prefix and the
    `required_length`; what cannot be met (another rule may forbid a form) leaves the sentence
    without a hypothesis. `joins` (V,) is True for tokens that are written onto the word before
    them: they do not follow a form. `given` (B,) is the length of each prefix, in which they may.
    places[b][c] are the source tokens of term c, and `looks` tells how much each hypothesis looks
    at each source token just now, (B, K, S).
    """

    def __init__(
        self,
        terms: Sequence[Sequence[Sequence[Sequence[int]]]],
        beam: int,
        max_lengths: Tensor,
        joins: Tensor,
        eos: int,
        given: Tensor | None = None,
        places: Sequence[Sequence[Sequence[int]]] = (),
        looks: Callable[[], Tensor] | None = None,
    ) -> None:
        device, shape = max_lengths.device, (len(terms), beam)
        given = torch.zeros_like(max_lengths) if given is None else given
        self._eos, self._glue, self._lengths = (
            eos,
            joins * _GLUED,
            torch.stack([max_lengths, given], 1),
        )
        self._glue[eos] = 0.0
        self._tree, self._banks = _plant(terms, joins), 2 + max(map(len, terms))
        self._looks, self._spots = looks, _spots(terms, places).to(device)
        self._now = _Place(
            lent=torch.zeros(shape, device=device),
            met=torch.zeros(*shape, self._tree.counts.size(1), dtype=torch.long, device=device),
            node=torch.zeros(shape, dtype=torch.long, device=device),
            fresh=torch.full(shape, -1, device=device),
            said=torch.full((*shape, self._tree.head.size(2)), _NOTHING, device=device),
        )

    def choose(self, live: Tensor, log_probs: Tensor, length: int) -> Choice:
        tree, now, width = self._tree, self._now, min(live.size(1), log_probs.size(2))
        missing = tree.counts[:, None] - now.met  # (B, K, C)
        need = (missing * tree.shortest[:, None]).sum(-1)[
            ..., None
        ]  # (B, K, 1) tokens of the terms to come
        rest = (
            tree.rest[:, None].masked_fill(missing[:, :, None] == 0, torch.inf).amin(-1)
        )  # (B, K, E)
        room = (self._lengths[:, :1] - length - 2)[
            ..., None
        ]  # (B, 1, 1) between this token and the end
        grown = now.fresh.masked_fill(
            length < self._lengths[:, 1:], -1
        )  # (B, K) forms that nothing may be written onto
        begun = (tree.parent[:, None] == now.node[..., None]) | (
            tree.parent[:, None] == grown[..., None]
        )
        edges = tree.token[:, None].expand_as(rest)
        bound = log_probs.gather(2, edges).masked_fill(~begun | (need + rest > room), NEVER)
        self._forbid(log_probs, edges, rest, need, grown >= 0)
        values, tokens = top(log_probs, width)
        free = (now.node[..., None] == 0) & ((need == 0) | (need <= room)) & (values > _GLUED / 2)
        values = torch.cat([values.masked_fill(~free, NEVER), bound], -1)  # (B, K, width + E)
        inside = (tree.parent != 0)[:, None] & (bound > NEVER)
        lent = now.lent[..., None] + pad(torch.where(inside, bound, 0.0), (width, 0))
        met = now.met.sum(-1, keepdim=True)
        banks = torch.cat([met.expand_as(tokens), met + tree.adds[:, None]], -1).flatten(1)
        totals = sums(live[..., None], values) - self._prices(missing, width)
        picks = _share_out((totals - lent).flatten(1), banks, self._banks, live.size(1))
        totals = totals.flatten(1).gather(1, picks)
        beams = picks // values.size(2)
        chosen = torch.cat([tokens, edges], -1).flatten(1).gather(1, picks)
        edges = (picks % values.size(2) - width).masked_fill(totals == NEVER, -1)
        self._follow(chosen, beams, edges, lent.flatten(1).gather(1, picks))
        return Choice(chosen, values.flatten(1).gather(1, picks), totals, beams)

    def keep(self, sentences: Tensor) -> None:
        """As State.keep."""
        self._lengths = self._lengths[sentences]
        self._spots = self._spots[sentences]
        self._tree = _Tree(*(part[sentences] for part in self._tree))
        self._now = _Place(*(part[sentences] for part in self._now))

    def _forbid(
        self, log_probs: Tensor, edges: Tensor, rest: Tensor, need: Tensor, fresh: Tensor
    ) -> None:
        """What a free hypothesis may not say: a term without having begun it, its end too early,
        what spoils a form."""
        head = self._tree.head[:, None]  # (B, 1, E, L - 1)
        whole = ((self._now.said[:, :, None] == head) | (head == _ANY)).all(-1) & rest.isfinite()
        log_probs.scatter_reduce_(
            2, edges, torch.where(whole, NEVER, torch.inf).to(log_probs), "amin"
        )
        log_probs[..., self._eos].masked_fill_(need[..., 0] > 0, NEVER)
        log_probs.addcmul_(fresh[..., None].to(log_probs), self._glue)

    def _prices(self, missing: Tensor, width: int) -> Tensor:
        """(B, K, width + E) what each continuation pays for its place; nothing where nobody
        knows about places."""
        if self._looks is None:
            return torch.zeros((), device=missing.device)
        looks = self._looks().float()
        spots = pad(self._spots, (0, looks.size(-1) - self._spots.size(-1)))
        looked = torch.einsum("bks,bcs->bkc", looks, spots).clamp(max=1.0)
        looked = looked.masked_fill(missing == 0, 0.0)  # (B, K, C)
        serves = self._tree.rest.isfinite()[:, None]  # (B, 1, E, C)
        begins = (self._tree.parent == 0)[:, None] & serves.any(-1)
        there = looked[:, :, None].masked_fill(~serves, 0.0).amax(-1)  # (B, K, E)
        price = (-_ELSEWHERE * there.clamp(min=_LEAST).log()).masked_fill(~begins, 0.0)
        return torch.cat(
            [(_PASSED * looked.amax(-1, keepdim=True)).expand(-1, -1, width), price], -1
        )

    def _follow(self, tokens: Tensor, beams: Tensor, edges: Tensor, lent: Tensor) -> None:
        """edges (B, K) are below 0 where a free hypothesis stays free."""
        tree, bound, edges = self._tree, edges >= 0, edges.clamp(min=0)
        row = torch.arange(len(beams), device=beams.device)[:, None]
        met = self._now.met[row, beams] + tree.meets[row, edges] * bound[..., None]
        said = torch.cat([tokens[..., None], self._now.said[row, beams]], -1)[..., :-1].masked_fill(
            bound[..., None], _NOTHING
        )
        self._now = _Place(
            lent,
            met,
            tree.target[row, edges] * bound,
            tree.fresh[row, edges].masked_fill(~bound, -1),
            said,
        )


class _Place(NamedTuple):
    """Where each hypothesis is."""

    # (B, K) the log-probabilities of all but the first tokens of its forms, which the beam is
    # shared out without
    lent: Tensor
    met: Tensor  # (B, K, C) how often it has said the term
    node: Tensor  # (B, K) that it is bound to; 0 where it is free
    fresh: Tensor  # (B, K) the node of the form that it has just completed, or -1
    said: Tensor  # (B, K, L - 1) its last tokens, the last first, since it was bound to a form


class _Tree(NamedTuple):
    """The forms of each sentence; an edge that is not there serves no term."""

    counts: Tensor  # (B, C) how often the term is to be said
    shortest: Tensor  # (B, C) tokens of its shortest form
    parent: Tensor  # (B, E) the node that the edge leaves
    token: Tensor  # (B, E)
    target: Tensor  # (B, E) the node that it leads to, 0 where a form is complete
    fresh: Tensor  # (B, E) the node of the form that it completes, or -1
    adds: Tensor  # (B, E) 1, or 0 where a form grows
    # (B, E, C) tokens that the term has behind the edge, less its shortest form; inf where it is
    # not there
    rest: Tensor
    meets: Tensor  # (B, E, C) 1 where the edge completes a form of the term
    # (B, E, L - 1) that form backwards without its last token; _NONE where there is none
    head: Tensor


def _spots(
    terms: Sequence[Sequence[Sequence[Sequence[int]]]], places: Sequence[Sequence[Sequence[int]]]
) -> Tensor:
    """(B, C, S) 1 where the source token is one of the term's."""
    rows = []
    for sentence, spots in zip(
        terms, places or [[[]] * len(sentence) for sentence in terms], strict=True
    ):
        found: dict[frozenset[Form], set[int]] = {}  # equal terms are one, as in the tree
        for forms, spot in zip(sentence, spots, strict=True):
            found.setdefault(frozenset(map(tuple, forms)), set()).update(spot)
        rows.append([set(), *found.values()])
    width = 1 + max((place for row in rows for spot in row for place in spot), default=0)
    filled = [[[int(place in spot) for place in range(width)] for spot in row] for row in rows]
    return _table(filled, 0).float()


def _plant(terms: Sequence[Sequence[Sequence[Sequence[int]]]], joins: Tensor) -> _Tree:
    counted = [
        Counter(frozenset(map(tuple, forms)) for forms in sentence) for sentence in terms
    ]  # equal terms are one
    sizes = _table(
        [
            [[1, 0], *([n, min(map(len, forms))] for forms, n in sentence.items())]
            for sentence in counted
        ],
        0,
    )
    plans = [_edges(list(sentence)) for sentence in counted]
    tables = [
        _table([[edge[i] for edge in plan] for plan in plans], fill)
        for i, fill in enumerate((0, torch.inf, 0, _ANY))
    ]
    sizes, ways, rest, meets, head = (table.to(joins.device) for table in (sizes, *tables))
    *columns, written_on = ways.unbind(2)
    rest = rest.masked_fill(
        ((written_on == 1) & ~joins[columns[1]])[..., None], torch.inf
    )  # other tokens are free to come
    return _Tree._make((*sizes.unbind(2), *columns, rest, meets, head))


def _edges(terms: list[frozenset[Form]]) -> list[list[Sequence[float]]]:
    """The rows of ways, rest, meets and head; the first edge is none. Term 0 is the growing of
    forms."""
    rests: dict[
        tuple[Form, int], dict[int, int]
    ] = {}  # of the last edge of a path; 0, or the term of a whole or growing form
    for term, forms in enumerate(terms, 1):
        for form in forms:
            root = next(
                (end for end in range(1, len(form)) if form[:end] in forms), 0
            )  # end of the form that it grows from
            if root == 0 and any(form[start:] in forms for start in range(1, len(form))):
                continue  # the shorter form will do: what comes before it is free to come
            for end in range(root + 1, len(form) + 1):
                rest = rests.setdefault((form[:end], term if root or end == len(form) else 0), {})
                column, left = (
                    (0, len(form) - end) if root else (term, len(form) - end - min(map(len, forms)))
                )
                rest[column] = min(left, rest.get(column, left))
    nodes = {((), 0): 0} | {key: node for node, key in enumerate(rests, 1)}
    edges: list[list[Sequence[float]]] = [
        [[0] * 6, [torch.inf] * (len(terms) + 1), [0] * (len(terms) + 1), [_NONE]]
    ]
    for (path, term), rest in rests.items():
        forms, node, grows = terms[term - 1] if term else frozenset(), nodes[path, term], 0 in rest
        parent = nodes.get((path[:-1], term if grows else 0), _NONE)
        ends = (0, node) if path in forms else (node, -1)
        meets = [
            int(path in forms and column == term and not grows) for column in range(len(terms) + 1)
        ]
        way = [parent, path[-1], *ends, int(not grows), int(grows and path[:-1] in forms)]
        head = path[-2::-1] if any(meets) else [_NONE]
        edges.append(
            [way, [rest.get(column, torch.inf) for column in range(len(terms) + 1)], meets, head]
        )
    return edges


def _table(rows: Sequence[Sequence[Sequence[float]]], fill: float) -> Tensor:
    """(B, N, M), filled up."""
    height, width = max(map(len, rows)), max(len(line) for row in rows for line in row)
    filled = [
        [[*line, *[fill] * (width - len(line))] for line in row]
        + [[fill] * width] * (height - len(row))
        for row in rows
    ]
    return torch.tensor(filled, dtype=torch.float if fill == torch.inf else torch.long)


def _share_out(totals: Tensor, banks: Tensor, n_banks: int, count: int) -> Tensor:
    """Where `count` of the totals (B, N) are: the best of each bank, then the second best of
    each, and so on."""
    totals, order = totals.sort(descending=True, stable=True)
    banks = banks.gather(1, order)
    ranks = one_hot(banks, n_banks).cumsum(1).gather(2, banks[..., None])[..., 0]
    ranks = ranks.masked_fill(totals == NEVER, totals.size(1) + 1)
    picks = ranks.argsort(stable=True)[:, :count]
    return order.gather(1, picks)
