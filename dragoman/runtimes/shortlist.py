"""A vocabulary shortlist: the target tokens that each source token may become, by IBM Model 1.
Knows ids; no text, no model.

A sentence needs few of a vocabulary's tokens. With a shortlist the output layer is computed only
for those that the source tokens of a batch may become, and for those that are frequent anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[Any]  # integers of any kind, also memory-mapped
Ints = npt.NDArray[np.int64]
Table = npt.NDArray[np.int32]

_LEAST = 0.01  # an expected count below this is noise, and most of the memory
_NONE = -1  # pads the rows of the table


class Side(NamedTuple):
    """One side of the training text, as `data.prepare` writes it."""

    ids: Ids  # tokens of all sentences end to end, each with its end
    offsets: Ids  # where each sentence begins, and where the last one ends
    size: int  # of the vocabulary


@dataclass(frozen=True)
class Learning:
    """How a shortlist is learnt."""

    joint: bool  # whether both sides share a vocabulary, so that any token may be copied
    best: int = 48  # target tokens for each source token
    frequent: int = 256  # target tokens that any sentence may need
    pairs: int = 500_000  # sentence pairs to learn from at most, spread evenly
    iterations: int = 4


class _Counts(NamedTuple):
    """The source tokens that became a target token, and how often."""

    tokens: Ids
    counts: Ids


class _Sample(NamedTuple):
    """Sentences end to end, and the length of each."""

    ids: Ids
    lengths: Ints


def learn(source: Side, target: Side, how: Learning) -> tuple[Ints, Table]:
    """The most frequent target tokens, and a table (source size, best) of other target tokens, best
    first, padded with -1.

    The end of each source sentence stands for what translates nothing.
    """
    n_pairs = len(source.offsets) - 1
    rows = _rows(n_pairs, how.pairs)
    read = _sample(source, rows)
    written = _sample(target, rows)
    common = _most_frequent(written.ids, target.size, how.frequent)
    rare = np.ones(target.size, np.bool_)
    rare[common] = False
    words, places = _places(written, rare)
    counts = _model_1(read, places, source.size, how.iterations)
    table = _table(words, counts, source.size, how.best)
    if how.joint:
        _add_copies(table, np.flatnonzero(rare))
    return np.sort(common), table


def candidates(
    table: Ids, frequent: Ids, tokens: Sequence[Sequence[int]], target_size: int
) -> Ints:
    """The sorted ids that the translations of a batch may need."""
    chosen = np.zeros(target_size + 1, np.bool_)  # the last place takes the padding
    chosen[frequent] = True
    sources = {token for row in tokens for token in row}
    chosen[table[list(sources)]] = True
    return np.flatnonzero(chosen[:-1])


def _rows(count: int, most: int) -> Ints:
    """Numbers of the sentence pairs to learn from."""
    if count <= most:
        return np.arange(count)
    evenly = np.linspace(0, count - 1, most)
    return evenly.astype(np.int64)


def _sample(side: Side, rows: Ints) -> _Sample:
    starts = np.asarray(side.offsets[rows])
    ends = np.asarray(side.offsets[rows + 1])
    lengths = ends - starts
    spans = _spans(starts, lengths)
    ids = np.asarray(side.ids[spans])
    return _Sample(ids, lengths)


def _spans(starts: Ints, lengths: Ints) -> Ints:
    """start, start + 1, ... of each span, end to end."""
    shifts = starts - np.cumsum(lengths) + lengths
    every = np.arange(lengths.sum())
    return np.repeat(shifts, lengths) + every


def _most_frequent(ids: Ids, size: int, most: int) -> Ints:
    seen = np.bincount(ids, minlength=size)
    order = np.argsort(-seen, kind="stable")
    count = min(most, np.count_nonzero(seen))
    return order[:count]


def _places(written: _Sample, rare: npt.NDArray[np.bool_]) -> tuple[Ids, list[Ids]]:
    """The rare target tokens, and for each the sentences that it stands in."""
    ids, lengths = written
    order = np.argsort(ids, kind="stable")
    is_rare = rare[ids[order]]
    order = order[is_rare]
    if not len(order):
        return np.empty(0, np.int64), []
    numbers = np.arange(len(lengths), dtype=np.int32)
    sentences = np.repeat(numbers, lengths)
    words, edges = np.unique(ids[order], return_index=True)
    return words, np.split(sentences[order], edges[1:])


def _model_1(read: _Sample, places: list[Ids], size: int, iterations: int) -> list[_Counts]:
    """For each target token the source tokens that became it, and how often, by EM; `places` are
    the sentences it stands in.

    An occurrence is shared out among the source tokens of its sentence, whatever stands beside it.
    So the text is walked by target token: what is looked up fits into the processor's cache, and
    memory holds little more than the counts.
    """
    starts = np.cumsum(read.lengths) - read.lengths
    totals = np.ones(size)
    alike = _Counts(np.arange(size), np.ones(size))
    found = [alike] * len(places)
    for _ in range(iterations):
        sums = np.zeros(size)
        for word, rows in enumerate(places):
            widths = read.lengths[rows]
            spans = _spans(starts[rows], widths)
            tokens = read.ids[spans]
            chances = np.zeros(size)
            at, counts = found[word]
            chances[at] = counts / totals[at]
            expected = _expected(tokens, widths, chances)
            at = np.flatnonzero(expected > _LEAST)
            kept = expected[at]
            sums[at] += kept
            found[word] = _Counts(
                tokens=at.astype(np.int32),
                counts=kept.astype(np.float32),
            )
        totals = sums
    return found


def _expected(tokens: Ids, widths: Ints, chances: npt.NDArray[np.float64]) -> Any:
    """How often each source token became the target token, by the chances of this round."""
    shares = chances[tokens]
    firsts = np.cumsum(widths) - widths
    whole = np.add.reduceat(shares, firsts)
    whole = np.maximum(whole, 1e-30)
    shares = shares / np.repeat(whole, widths)
    return np.bincount(tokens, shares, len(chances))


def _table(words: Ids, found: list[_Counts], source_size: int, best: int) -> Table:
    """The target tokens with the highest counts for each source token."""
    table = np.full((source_size, best), _NONE, np.int32)
    if not found:
        return table
    source = np.concatenate([one.tokens for one in found])
    counts = np.concatenate([one.counts for one in found])
    n_sources = [len(one.tokens) for one in found]
    target = np.repeat(words, n_sources)
    order = np.lexsort((-counts, source))
    source = source[order]
    target = target[order]
    first = np.searchsorted(source, source)
    rank = np.arange(len(source)) - first
    is_best = rank < best
    best_rank = rank[is_best]
    table[source[is_best], best_rank] = target[is_best]
    return table


def _add_copies(table: Table, copied: Ints) -> None:
    """Put each of these tokens into its own row, if it is not there: behind the others, or in the
    place of the last."""
    is_other = table[copied] != copied[:, None]
    is_missing = is_other.all(axis=1)
    copied = copied[is_missing]
    is_taken = table[copied] >= 0
    n_taken = is_taken.sum(axis=1)
    last = table.shape[1] - 1
    place = np.minimum(n_taken, last)
    table[copied, place] = copied
