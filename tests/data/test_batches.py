"""Batches: what lies in them, that every pair comes as often as it should, and that a run can go
on by counting."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.data import batch_plan
from dragoman.data.batch_plan import fill_padded, plan_epoch, plan_once
from dragoman.data.batches import Draw, Pairs
from dragoman.data.prefetch import prefetch

EOS = 3
Sentences = Sequence[tuple[Sequence[int], Sequence[int]]]


def store(folder: Path, pairs: Sentences, dtype: str = "uint16") -> Pairs:
    """The pairs in the files of a prepared folder, each side with its end."""
    folder.mkdir(exist_ok=True)
    for side, name in enumerate(("source", "target")):
        rows = [[*pair[side], EOS] for pair in pairs]
        np.array([token for row in rows for token in row], dtype).tofile(folder / f"{name}.bin")
        np.cumsum([0, *map(len, rows)], dtype=np.int64).tofile(folder / f"{name}.idx")
    return Pairs(folder, dtype)


def lengths_store(folder: Path, source: Sequence[int], target: Sequence[int]) -> Pairs:
    """Pairs of which only the lengths matter, the end counted."""
    lengths = zip(source, target, strict=True)
    return store(folder, [([7] * (s - 1), [7] * (t - 1)) for s, t in lengths])


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    """20,000 pairs with lengths as real text has them: log-normal, 28 tokens on average, the
    sides alike to a fifth or so."""
    draw = np.random.default_rng(5)
    source = np.clip(np.exp(draw.normal(3.1, 0.65, 20_000)), 2, 256)
    target = np.clip(source * np.exp(draw.normal(0.05, 0.2, 20_000)), 2, 256)
    return lengths_store(
        tmp_path_factory.mktemp("mixture"), source.astype(int).tolist(), target.astype(int).tolist()
    )


TINY: Sentences = [([10, 11], [20]), ([12], [21, 22, 23]), ([], [])]


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_what_lies_in_a_batch(tmp_path: Path, dtype: str) -> None:
    pairs = store(tmp_path, TINY, dtype)
    assert len(pairs) == 3
    assert [side.tolist() for side in pairs.lengths(np.array([2, 0]))] == [[1, 3], [1, 2]]
    batch = pairs.batch(np.array([1, 0]))
    assert batch.source.tolist() == [[12, 3, 0], [10, 11, 3]]
    assert batch.target.tolist() == [[2, 21, 22, 23], [2, 20, 3, 0]]
    assert batch.lengths is not None
    assert batch.lengths.tolist() == [2, 3]
    assert batch.positions.tolist() == [0, 1, 2, 3, 4, 5]
    assert batch.labels.tolist() == [21, 22, 23, 3, 20, 3]
    tensors = (batch.source, batch.target, batch.positions, batch.labels)
    assert {tensor.dtype for tensor in tensors} == {torch.int64}


def test_a_large_id(tmp_path: Path) -> None:
    pairs = store(tmp_path, [([65_535], [200_000])], "uint32")
    assert pairs.batch(np.array([0])).labels.tolist() == [200_000, 3]


def test_full_rows_have_no_lengths(tmp_path: Path) -> None:
    batch = store(tmp_path, TINY).batch(np.array([0, 0]))
    assert batch.lengths is None
    assert batch.source.tolist() == [[10, 11, 3]] * 2


def test_pairs_end_to_end(tmp_path: Path) -> None:
    """20 tokens a side, of which 14 and 13 are left: one more pair without labels, and
    empty ones up to five."""
    batch = store(tmp_path, TINY).packed(np.array([1, 2, 0]), unit=20)
    assert batch.source.tolist() == [12, 3, 3, 10, 11, 3] + [0] * 14
    assert batch.labels.tolist() == [21, 22, 23, 3, 3, 20, 3] + [-1] * 13
    assert batch.target[:7].tolist() == [2, 21, 22, 23, 2, 2, 20]
    assert len(batch.target) == 20
    assert batch.target.min() >= 0
    assert batch.sources.tolist() == [0, 2, 3, 6, 20, 20]
    assert batch.targets.tolist() == [0, 4, 5, 7, 20, 20]
    assert batch.longest == 16
    assert [tensor.dtype for tensor in (batch.sources, batch.targets)] == [torch.int32] * 2


def test_pairs_end_to_end_twice(tmp_path: Path) -> None:
    pairs = store(tmp_path, TINY)
    once = pairs.packed(np.array([1, 0]), 20, 1)
    twice = pairs.packed(np.array([1, 0]), 20, 2)
    for name in ("source", "target", "labels"):
        assert getattr(twice, name).tolist() == getattr(once, name).tolist() * 2
    starts = once.sources.tolist()
    assert twice.sources.tolist() == starts[:-1] + [20 + start for start in starts]


def test_what_is_left_behind_the_pairs_is_short(tmp_path: Path) -> None:
    """No pair without labels is longer than what attention looks at in any case; the pairs keep
    their own longest."""
    batch = store(tmp_path, [([7] * 99, [7] * 20)]).packed(np.array([0]), unit=160)
    assert batch.longest == 128
    assert np.diff(batch.sources)[1:].max() <= 16
    assert np.diff(batch.targets)[1:].max() <= 16
    assert batch.sources[-1] == batch.targets[-1] == 160


def test_packed_batches_are_full(mixture: Pairs) -> None:
    plan = list(plan_epoch(mixture, [(len(mixture), 1.0)], 25_000, Draw(1, 0), packed=True))
    assert np.array_equal(np.sort(np.concatenate(plan)), np.arange(len(mixture)))
    sums = np.array([[side.sum() for side in mixture.lengths(rows)] for rows in plan])
    assert sums.max() <= 25_000
    assert np.median(sums.max(1)) > 24_500
    widths = [np.maximum(*mixture.lengths(rows)) for rows in plan]
    assert np.median([width.max() - width.min() for width in widths]) <= 3


def test_an_empty_store(tmp_path: Path) -> None:
    pairs = store(tmp_path, [])
    assert len(pairs) == 0
    assert plan_once(pairs, 100) == []
    assert list(plan_epoch(pairs, [(0, 1.0)], 100, Draw(1, 0))) == []


def test_every_pair_once_an_epoch(mixture: Pairs) -> None:
    for epoch in (0, 1):
        plan = plan_epoch(mixture, [(len(mixture), 1.0)], 4096, Draw(1, epoch))
        rows = np.concatenate(list(plan))
        assert np.array_equal(np.sort(rows), np.arange(len(mixture)))
    rows = np.concatenate(plan_once(mixture, 4096))
    assert np.array_equal(np.sort(rows), np.arange(len(mixture)))


def test_every_pair_once_over_many_pools(mixture: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pools of 16 blocks of 100: 13 pools, and the pairs of a block travel together."""
    monkeypatch.setattr(batch_plan, "BLOCK", 100)
    monkeypatch.setattr(batch_plan, "POOL", 1600)
    corpora = [(12_345, 1.0), (len(mixture) - 12_345, 1.0)]
    plan = list(plan_epoch(mixture, corpora, 4096, Draw(1, 0)))
    rows = np.concatenate(plan)
    assert np.array_equal(np.sort(rows), np.arange(len(mixture)))
    first_pool = {int(row) // 100 for row in rows[:1600] if row < 12_300}
    assert len(first_pool) <= 16


def test_the_budget_holds(mixture: Pairs) -> None:
    for budget in (64, 300, 4096):
        for rows in plan_epoch(mixture, [(len(mixture), 1.0)], budget, Draw(1, 0)):
            longest = max(side.max() for side in mixture.lengths(rows))
            assert len(rows) == 1 or len(rows) * longest <= budget


def test_a_pair_over_the_budget_stands_alone(tmp_path: Path) -> None:
    pairs = lengths_store(tmp_path, [5, 90, 5, 5], [5, 5, 5, 5])
    plan = as_lists(list(plan_epoch(pairs, [(4, 1.0)], 50, Draw(1, 0))))
    assert [rows for rows in plan if 1 in rows] == [[1]]
    assert sorted(row for rows in plan for row in rows) == [0, 1, 2, 3]


def test_little_of_a_batch_is_padding(mixture: Pairs) -> None:
    epoch = plan_epoch(mixture, [(len(mixture), 1.0)], 4096, Draw(1, 0))
    for plan in (epoch, plan_once(mixture, 4096)):
        real = 0
        padded = 0
        for rows in plan:
            for side in mixture.lengths(rows):
                real += int(side.sum())
                padded += len(rows) * int(side.max())
        assert real / padded >= 0.9


def test_batches_are_filled(mixture: Pairs) -> None:
    """Few batches stop far below the budget."""
    plan = list(plan_epoch(mixture, [(len(mixture), 1.0)], 4096, Draw(1, 0)))
    filled = [len(rows) * max(int(side.max()) for side in mixture.lengths(rows)) for rows in plan]
    assert np.mean(filled) >= 0.95 * 4096


def as_lists(plan: Sequence[np.ndarray]) -> list[list[int]]:
    return [rows.tolist() for rows in plan]


def test_order(mixture: Pairs) -> None:
    """The same for the same seed and epoch, another for another; batches of like length do not
    follow one another."""
    corpora = [(len(mixture), 1.0)]
    first = as_lists(list(plan_epoch(mixture, corpora, 4096, Draw(1, 0))))
    assert first == as_lists(list(plan_epoch(mixture, corpora, 4096, Draw(1, 0))))
    for seed, epoch in ((1, 1), (2, 0)):
        other = as_lists(list(plan_epoch(mixture, corpora, 4096, Draw(seed, epoch))))
        assert other != first
        # The batches themselves are others, but for the few that one long pair fills.
        shared = {frozenset(rows) for rows in first} & {frozenset(rows) for rows in other}
        assert len(shared) < 0.05 * len(first)
    widths = [int(mixture.lengths(np.array(rows))[1].max()) for rows in first]
    assert abs(np.corrcoef(widths[:-1], widths[1:])[0, 1]) < 0.3


def test_going_on_by_counting(mixture: Pairs) -> None:
    corpora = [(len(mixture), 1.0)]
    whole = as_lists(list(plan_epoch(mixture, corpora, 4096, Draw(1, 3))))
    rest = as_lists(list(islice(plan_epoch(mixture, corpora, 4096, Draw(1, 3)), 57, None)))
    assert rest == whole[57:]


def test_weights(tmp_path: Path) -> None:
    """Weight 2 shows each pair twice, 0.5 about half of them once, 1.5 each once and half of
    them again."""
    pairs = lengths_store(tmp_path, [4] * 4000, [4] * 4000)
    corpora = [(1000, 2.0), (1000, 0.5), (1000, 1.0), (1000, 1.5)]
    epochs = [
        Counter(np.concatenate(list(plan_epoch(pairs, corpora, 400, Draw(1, epoch)))).tolist())
        for epoch in range(20)
    ]
    for seen in epochs:
        assert all(seen[row] == 2 for row in range(1000))
        assert all(seen[row] in (0, 1) for row in range(1000, 2000))
        assert all(seen[row] == 1 for row in range(2000, 3000))
        assert all(seen[row] in (1, 2) for row in range(3000, 4000))
        half = sum(seen[row] for row in range(1000, 2000))
        assert abs(half - 500) < 5 * 1000**0.5 / 2  # five standard deviations
    # Over the epochs each pair of the half-weighted corpus comes in its turn.
    total = Counter(row for seen in epochs for row in range(1000, 2000) if seen[row])
    assert len(total) == 1000
    assert 3 <= max(total.values()) <= 19


def test_batches_of_nothing(mixture: Pairs) -> None:
    assert fill_padded(mixture, np.arange(0), 100) == []


def test_a_thread_that_makes_items_ends_when_no_more_are_wanted() -> None:
    before = threading.active_count()
    for number in prefetch(itertools.count()):
        if number == 20:
            break
    assert threading.active_count() == before
