"""The forms of the terms of each sentence as a tree, in tensors. Knows tokens; no text, no
glossary, and nothing of the search.

The root of a sentence's tree is the free state; an edge is one token further into a form, and the
last one of a form leads back to the root. From there a form may still grow to a longer one of the
same term, by a token that is written onto it.

Shapes: B sentences, C terms (and one, the first, for the growing of forms), O occurrences of terms
in the source, E edges, L tokens of the longest form, S source tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

Form = tuple[int, ...]
Forms = frozenset[Form]  # those of one term
# In place of a token of a form: every token matches, no token matches.
ANY = -1
NONE = -2
_ROOT: tuple[Form, int] = ((), 0)


@dataclass(frozen=True)
class Wanted:
    """The terms that the outputs must say.

    terms[b][c][f] are the tokens, at least one, of form f of term c of sentence b; places[b][c] are
    the indices of the source tokens that the term translates. Without `places`, a term may come
    anywhere.
    """

    terms: Sequence[Sequence[Sequence[Sequence[int]]]]
    places: Sequence[Sequence[Sequence[int]]] = ()


class Tree(NamedTuple):
    """The forms of each sentence; an edge that does not exist serves no term."""

    counts: Tensor  # (B, C) how often the term is to be said
    shortest: Tensor  # (B, C) tokens of its shortest form
    parent: Tensor  # (B, E) the node that the edge leaves
    token: Tensor  # (B, E)
    target: Tensor  # (B, E) the node that it leads to, 0 where a form is complete
    fresh: Tensor  # (B, E) the node of the form that it completes, or -1
    adds: Tensor  # (B, E) 1, or 0 where a form grows
    # (B, E, C) tokens of the term after the edge, less its shortest form; inf where the edge does
    # not serve the term
    rest: Tensor
    meets: Tensor  # (B, E, C) 1 where the edge completes a form of the term
    # (B, E, L - 1) the form that it completes, backwards without its last token; else NONE
    head: Tensor


@dataclass(frozen=True)
class Extent:
    """How large the tables of a batch are at most."""

    terms: int  # C
    occurrences: int  # O
    edges: int  # E
    form: int  # L
    source: int  # S

    def rounded(self) -> Extent:
        """A size that many batches share."""
        return Extent(
            terms=_up(self.terms, 4),
            occurrences=_up(self.occurrences, 4),
            edges=_up(self.edges, 16),
            form=_up(self.form, 4),
            source=self.source,
        )


class _Edge(NamedTuple):
    """One row of the tree's tables."""

    # parent, token, target, fresh, adds, and 1 where the token is written onto a whole form
    way: Sequence[float]
    rest: Sequence[float]
    meets: Sequence[float]
    head: Sequence[float]


def plant(wanted: Wanted, joins: Tensor) -> Tree:
    """Build the trees; `joins` (V,) is True for tokens that are written onto the word before."""
    counted = [_counted(sentence) for sentence in wanted.terms]
    sizes = [_sizes(sentence) for sentence in counted]
    edges = [_edges(list(sentence)) for sentence in counted]
    device = joins.device
    ways = _column(edges, "way", 0).to(device)
    rest = _column(edges, "rest", torch.inf).to(device)
    counts, shortest = _table(sizes, 0).to(device).unbind(2)
    parent, token, target, fresh, adds, written_on = ways.unbind(2)
    # A form grows only by tokens that are written onto it; other tokens are free anyway.
    cannot_grow = (written_on == 1) & ~joins[token]
    return Tree(
        counts=counts,
        shortest=shortest,
        parent=parent,
        token=token,
        target=target,
        fresh=fresh,
        adds=adds,
        rest=rest.masked_fill(cannot_grow[..., None], torch.inf),
        meets=_column(edges, "meets", 0).to(device),
        head=_column(edges, "head", ANY).to(device),
    )


def extent_of(wanted: Wanted, source: int) -> Extent:
    """Return sizes that are large enough for the tables of these terms."""
    of_sentences = [_extent(sentence, source) for sentence in wanted.terms]
    return Extent(
        terms=max(one.terms for one in of_sentences),
        occurrences=max(one.occurrences for one in of_sentences),
        edges=max(one.edges for one in of_sentences),
        form=max(one.form for one in of_sentences),
        source=source,
    )


def widened(tree: Tree, extent: Extent) -> Tree:
    """Return the tree with tables of this size; what is added serves no term."""
    n_rows = len(tree.counts)
    per_term = (n_rows, extent.terms)
    per_edge = (n_rows, extent.edges)
    per_service = (*per_edge, extent.terms)
    return Tree(
        counts=grown(tree.counts, per_term, 0),
        shortest=grown(tree.shortest, per_term, 0),
        parent=grown(tree.parent, per_edge, 0),
        token=grown(tree.token, per_edge, 0),
        target=grown(tree.target, per_edge, 0),
        fresh=grown(tree.fresh, per_edge, 0),
        adds=grown(tree.adds, per_edge, 0),
        rest=grown(tree.rest, per_service, torch.inf),
        meets=grown(tree.meets, per_service, 0),
        head=grown(tree.head, (*per_edge, extent.form - 1), ANY),
    )


def grown(values: Tensor, shape: tuple[int, ...], fill: float) -> Tensor:
    """Return the values in the first corner of a larger tensor that is filled up."""
    larger = values.new_full(shape, fill)
    corner = tuple(slice(size) for size in values.shape)
    larger[corner] = values
    return larger


def spots(wanted: Wanted) -> Tensor:
    """(B, O, S) 1 where the source token is one of the occurrence's; a sentence has an occurrence
    for each of its terms, equal ones too."""
    n_sentences = len(wanted.terms)
    rows = [_places(wanted, sentence) for sentence in range(n_sentences)]
    furthest = 0
    for row in rows:
        for place in row:
            furthest = max([furthest, *place])
    return _marked(rows, furthest + 1)


def owners(wanted: Wanted) -> Tensor:
    """(B, O, C) 1 where the occurrence is one of the term."""
    rows = []
    most = 0
    for sentence in wanted.terms:
        counted = _counted(sentence)
        columns = {forms: column for column, forms in enumerate(counted, 1)}
        owned = [{columns[_frozen(forms)]} for forms in sentence]
        rows.append(owned or [set()])
        most = max(most, len(columns))
    return _marked(rows, most + 1)


def _extent(sentence: Sequence[Sequence[Sequence[int]]], source: int) -> Extent:
    counted = _counted(sentence)
    forms = [form for of_term in counted for form in of_term]
    longest = max(map(len, forms), default=0)
    return Extent(
        terms=1 + len(counted),
        occurrences=max(1, len(sentence)),
        edges=1 + sum(map(len, forms)),  # at most one for each token of each form
        form=max(2, longest),
        source=source,
    )


def _up(number: int, step: int) -> int:
    return -(-number // step) * step


def _places(wanted: Wanted, index: int) -> list[set[int]]:
    """The places of each occurrence in a sentence; at least one, which may have none."""
    if not wanted.places:
        n_terms = len(wanted.terms[index])
        return [set()] * max(1, n_terms)
    places = [set(place) for place in wanted.places[index]]
    return places or [set()]


def _marked(rows: list[list[set[int]]], width: int) -> Tensor:
    """(B, N, width) 1 at each index that is in the set."""
    marks = []
    for row in rows:
        lines = []
        for marked in row:
            line = [int(index in marked) for index in range(width)]
            lines.append(line)
        marks.append(lines)
    return _table(marks, 0).float()


def _frozen(forms: Sequence[Sequence[int]]) -> Forms:
    return frozenset(map(tuple, forms))


def _counted(sentence: Sequence[Sequence[Sequence[int]]]) -> Counter[Forms]:
    """How often each term is to be said; equal terms are one."""
    return Counter(_frozen(forms) for forms in sentence)


def _sizes(sentence: Counter[Forms]) -> list[list[int]]:
    """Count and shortest form of each term, the growing of forms first."""
    rows = [[1, 0]]
    for forms, count in sentence.items():
        shortest = min(map(len, forms))
        rows.append([count, shortest])
    return rows


def _edges(terms: list[Forms]) -> list[_Edge]:
    """The edges of one sentence; the first leads nowhere. Term 0 is the growing of forms."""
    rests = _rests(terms)
    nodes = {key: node for node, key in enumerate([_ROOT, *rests])}
    n_columns = len(terms) + 1
    nowhere = _Edge(
        way=[0] * 6,
        rest=[torch.inf] * n_columns,
        meets=[0] * n_columns,
        head=[NONE],
    )
    edges = [nowhere]
    no_forms: Forms = frozenset()
    forms_of = [no_forms, *terms]
    for key, rest in rests.items():
        _, term = key
        edges.append(_edge(key, forms_of[term], rest, nodes, n_columns))
    return edges


def _rests(terms: list[Forms]) -> dict[tuple[Form, int], dict[int, int]]:
    """For each edge (the path that it ends, and the term of a whole or growing form, else 0), and
    each column that it serves, the tokens that are left behind it."""
    rests: dict[tuple[Form, int], dict[int, int]] = {}
    for term, forms in enumerate(terms, 1):
        shortest = min(map(len, forms))
        for form in forms:
            root = _grows_from(form, forms)
            if root == 0 and _ends_with_another(form, forms):
                continue  # the shorter form will do: what comes before it is free to come
            column = 0 if root else term
            spared = 0 if root else shortest
            size = len(form)
            for end in range(root + 1, size + 1):
                own = root or end == size
                path = form[:end]
                key = (path, term if own else 0)
                rest = rests.setdefault(key, {})
                left = size - end - spared
                rest[column] = min(left, rest.get(column, left))
    return rests


def _grows_from(form: Form, forms: Forms) -> int:
    """The length of the shorter form that this one grows from, or 0."""
    for end in range(1, len(form)):
        if form[:end] in forms:
            return end
    return 0


def _ends_with_another(form: Form, forms: Forms) -> bool:
    return any(form[start:] in forms for start in range(1, len(form)))


def _edge(
    key: tuple[Form, int],
    forms: Forms,
    rest: dict[int, int],
    nodes: dict[tuple[Form, int], int],
    n_columns: int,
) -> _Edge:
    path, term = key
    token = path[-1]
    before = path[:-1]
    node = nodes[key]
    grows = 0 in rest
    is_form = path in forms
    meets_term = is_form and not grows
    from_term = term if grows else 0
    parent = nodes.get((before, from_term), NONE)
    target = 0 if is_form else node
    fresh = node if is_form else -1
    adds = int(not grows)
    written_on = int(grows and before in forms)
    head: Sequence[int] = [NONE]
    meets = [0] * n_columns
    if meets_term:
        head = before[::-1]
        meets[term] = 1
    return _Edge(
        way=[parent, token, target, fresh, adds, written_on],
        rest=[rest.get(column, torch.inf) for column in range(n_columns)],
        meets=meets,
        head=head,
    )


def _column(edges: list[list[_Edge]], name: str, fill: float) -> Tensor:
    """(B, E, M) one part of all edges."""
    rows = []
    for row in edges:
        lines = [getattr(edge, name) for edge in row]
        rows.append(lines)
    return _table(rows, fill)


def _table(rows: Sequence[Sequence[Sequence[float]]], fill: float) -> Tensor:
    """(B, N, M), filled up."""
    height = max(map(len, rows))
    width = max(len(line) for row in rows for line in row)
    empty = [fill] * width
    filled = []
    for row in rows:
        lines = []
        for line in row:
            rest = empty[len(line) :]
            lines.append([*line, *rest])
        missing = height - len(row)
        lines += [empty] * missing
        filled.append(lines)
    kind = torch.float if fill == torch.inf else torch.long
    return torch.tensor(filled, dtype=kind)
