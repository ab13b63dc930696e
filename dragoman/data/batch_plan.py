"""Which examples go together in a batch: sentences of like length, up to a token budget, in another
order each epoch.

Knows lengths and row numbers; knows no tokens and no model. An epoch is walked in pools of about a
million pairs, so the plan takes the same memory for any corpus. It follows from (seed, epoch)
alone, so that a run can go on from any step by counting.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.data.batches import Draw, Examples, Rows

BLOCK = 256  # neighbouring pairs that move together into a pool, so that the disk is read in runs
POOL = 2**20  # pairs planned at once


class _Block(NamedTuple):
    """Neighbouring rows of one corpus."""

    first: int
    end: int
    weight: float


def plan_epoch(
    pairs: Examples,
    corpora: Sequence[tuple[int, float]],
    budget: int,
    draw: Draw,
    packed: bool = False,
) -> Iterator[Rows]:
    """Yield the batches of an epoch as row numbers.

    `corpora` holds (pairs, weight) of each corpus, in file order: weight 2 shows every pair twice
    an epoch, 0.5 every other one. A batch has at most `budget` tokens on either side, padding
    included unless it is to be packed.
    """
    random = np.random.default_rng(draw)
    blocks = _blocks(corpora)
    order = random.permutation(len(blocks))
    blocks_at_once = POOL // BLOCK
    fill = fill_packed if packed else fill_padded
    for first in range(0, len(order), blocks_at_once):
        chosen = [blocks[index] for index in order[first : first + blocks_at_once]]
        pool = np.concatenate([_drawn(block, random) for block in chosen])
        batches = fill(pairs, random.permutation(pool), budget)
        for index in random.permutation(len(batches)):
            yield batches[index]


def plan_once(pairs: Examples, budget: int) -> list[Rows]:
    """Return batches that have every pair once, as validation needs them."""
    return fill_padded(pairs, np.arange(len(pairs)), budget)


def fill_padded(
    pairs: Examples,
    rows: Rows,
    budget: int,
) -> list[Rows]:
    """Return the rows in batches of like length on both sides, padding counted."""
    if not len(rows):
        return []
    source, target = pairs.lengths(rows)
    order = _by_length(source, target, budget)
    widths = np.maximum(source, target)[order].tolist()
    ends = []
    longest = 0
    count = 0
    for index, width in enumerate(widths):
        longest = max(longest, width)
        count += 1
        if count > 1 and longest * count > budget:
            ends.append(index)
            longest = width
            count = 1
    return np.split(rows[order], ends)


def fill_packed(
    pairs: Examples,
    rows: Rows,
    budget: int,
) -> list[Rows]:
    """Return the rows in batches of like length, each filled with tokens.

    Packed pairs need not be alike on both sides.
    """
    if not len(rows):
        return []
    source, target = pairs.lengths(rows)
    order = np.argsort(np.maximum(source, target), kind="stable")
    source_sums = source[order].cumsum()
    target_sums = target[order].cumsum()
    ends = []
    last = 0
    source_done = 0
    target_done = 0
    while last < len(rows):
        source_fit = int(np.searchsorted(source_sums, source_done + budget, "right"))
        target_fit = int(np.searchsorted(target_sums, target_done + budget, "right"))
        last = max(last + 1, min(source_fit, target_fit))
        source_done = int(source_sums[last - 1])
        target_done = int(target_sums[last - 1])
        ends.append(last)
    return np.split(rows[order], ends[:-1])


def _by_length(
    source: Rows,
    target: Rows,
    budget: int,
) -> Rows:
    """Return an order in which neighbours are alike on both sides.

    Groups of like target length follow each other, each walked by source length.
    """
    by_target = np.argsort(target, kind="stable")
    tokens = np.cumsum(np.maximum(source, target)[by_target])
    total = tokens[-1]
    # As many groups as there are batches in each, or a few more; of equally many tokens, since long
    # pairs differ the most.
    count = max(1, round(1.5 * (int(total) / budget) ** 0.5))
    borders = np.searchsorted(tokens, total / count * np.arange(1, count))
    walked = []
    for number, group in enumerate(np.split(by_target, borders)):
        # Up and down in turn, so that the batch across the border of two groups is of like length
        # as well.
        direction = (-1) ** number
        walked.append(group[np.argsort(source[group] * direction, kind="stable")])
    return np.concatenate(walked)


def _blocks(corpora: Sequence[tuple[int, float]]) -> list[_Block]:
    blocks = []
    start = 0
    for count, weight in corpora:
        end = start + count
        if weight > 0:
            edges = [*range(start, end, BLOCK), end]
            blocks += [_Block(*edge, weight) for edge in itertools.pairwise(edges)]
        start = end
    return blocks


def _drawn(block: _Block, random: np.random.Generator) -> Rows:
    """Return a block's rows as often as its weight says; the fraction is drawn."""
    rows = np.arange(block.first, block.end)
    fraction = block.weight % 1
    repeated = [rows] * int(block.weight)
    if fraction:
        repeated.append(rows[random.random(len(rows)) < fraction])
    return np.concatenate(repeated)
