"""A vocabulary shortlist: the target tokens that each source token may become, by IBM Model 1.
Knows ids; no text, no model.

A sentence needs few of a vocabulary's tokens. With a shortlist the output layer is computed only
for those that the source tokens of a batch may become, and for those that are frequent anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[Any]  # integers of any kind, also memory-mapped
Ints = npt.NDArray[np.int64]

_LEAST = 0.01  # an expected count below this is noise, and most of the memory


def learn(
    source_ids: Ids,
    source_offsets: Ids,
    target_ids: Ids,
    target_offsets: Ids,
    source_size: int,
    target_size: int,
    *,
    joint: bool,
    best: int = 48,
    frequent: int = 256,
    pairs: int = 500_000,
    iterations: int = 4,
) -> tuple[Ints, npt.NDArray[np.int32]]:
    """The most frequent target tokens, and a table (source_size, best) of other target tokens, best
    first, padded with -1.

    The text lies as `data.prepare` writes it: the end of each source sentence stands for what
    translates nothing. At most `pairs` sentence pairs are taken, spread evenly. With a `joint`
    vocabulary every token may also be copied.
    """
    count = len(source_offsets) - 1
    rows = np.arange(count)
    if count > pairs:
        rows = np.linspace(0, count - 1, pairs).astype(np.int64)
    source, lengths = _sample(source_ids, source_offsets, rows)
    target, target_lengths = _sample(target_ids, target_offsets, rows)
    seen = np.bincount(target, minlength=target_size)
    common = np.argsort(-seen, kind="stable")[: min(frequent, np.count_nonzero(seen))]
    rare = np.ones(target_size, np.bool_)
    rare[common] = False
    order = np.argsort(target, kind="stable")
    order = order[rare[target[order]]]
    sentences = np.repeat(np.arange(len(rows), dtype=np.int32), target_lengths)[order]
    words, edges = np.unique(target[order], return_index=True)
    counts = []
    if len(words):
        by_word = np.split(sentences, edges[1:])
        counts = _model_1(source, lengths, by_word, source_size, iterations)
    copied = np.flatnonzero(rare & joint)
    return np.sort(common), _table(words, counts, source_size, best, copied)


def candidates(
    table: Ids, frequent: Ids, tokens: Sequence[Sequence[int]], target_size: int
) -> Ints:
    """The sorted ids that the translations of a batch may need."""
    chosen = np.zeros(target_size + 1, np.bool_)  # the last place takes the padding, -1
    chosen[frequent] = True
    chosen[table[[*{token for row in tokens for token in row}]]] = True
    return np.flatnonzero(chosen[:-1])


def _sample(ids: Ids, offsets: Ids, rows: Ints) -> tuple[Ids, Ints]:
    """The tokens of the rows end to end, and the length of each."""
    lengths = np.asarray(offsets[rows + 1] - offsets[rows])
    return np.asarray(ids[_spans(np.asarray(offsets[rows]), lengths)]), lengths


def _spans(starts: Ints, lengths: Ints) -> Ints:
    """start, start + 1, ... of each span, end to end."""
    return np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())


def _model_1(
    source: Ids, lengths: Ints, places: list[Ids], source_size: int, iterations: int
) -> list[tuple[Ids, Ids]]:
    """For each target token the source tokens that became it, and how often, by EM; `places` are
    the sentences it stands in.

    An occurrence is shared out among the source tokens of its sentence, whatever stands beside it.
    So the text is walked by target token: what is looked up fits into the processor's cache, and
    memory holds little more than the counts.
    """
    starts, totals = np.cumsum(lengths) - lengths, np.ones(source_size)
    found: list[tuple[Ids, Ids]] = [(np.arange(source_size), np.ones(source_size))] * len(places)
    for _ in range(iterations):
        sums = np.zeros(source_size)
        for word, rows in enumerate(places):
            widths = lengths[rows]
            tokens = source[_spans(starts[rows], widths)]
            at, counts = found[word]
            chances = np.zeros(source_size)
            chances[at] = counts / totals[at]
            shares = chances[tokens]
            whole = np.maximum(np.add.reduceat(shares, np.cumsum(widths) - widths), 1e-30)
            expected = np.bincount(tokens, shares / np.repeat(whole, widths), source_size)
            at = np.flatnonzero(expected > _LEAST)
            sums[at] += expected[at]
            found[word] = at.astype(np.int32), expected[at].astype(np.float32)
        totals = sums
    return found


def _table(
    words: Ids, found: list[tuple[Ids, Ids]], source_size: int, best: int, copied: Ints
) -> npt.NDArray[np.int32]:
    """The target tokens with the highest counts for each source token; what may be copied comes
    in besides."""
    table = np.full((source_size, best), -1, np.int32)
    if found:
        source = np.concatenate([at for at, _ in found])
        target = np.repeat(words, [len(at) for at, _ in found])
        order = np.lexsort((-np.concatenate([counts for _, counts in found]), source))
        source, target = source[order], target[order]
        rank = np.arange(len(source)) - np.searchsorted(source, source)
        table[source[rank < best], rank[rank < best]] = target[rank < best]
    copied = copied[(table[copied] != copied[:, None]).all(axis=1)]
    table[copied, np.minimum((table[copied] >= 0).sum(axis=1), best - 1)] = copied
    return table
