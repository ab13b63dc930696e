"""Shortlists: what Model 1 finds in texts small enough to know the answer, and the union for a
batch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman.runtimes.shortlist import Learning, Side, candidates, learn

END = 3
Sentences = Sequence[Sequence[int]]


def laid_out(sentences: Sentences) -> tuple[Any, Any]:
    """Ids end to end and offsets, as they lie on disk."""
    ids = np.array([token for sentence in sentences for token in sentence], np.uint16)
    return ids, np.cumsum([0, *map(len, sentences)])


def learnt(
    source: Sentences, target: Sentences, size: int, **options: Any
) -> tuple[list[int], list[list[int]]]:
    sides = (Side(*laid_out(source), size), Side(*laid_out(target), size))
    frequent, table = learn(*sides, Learning(**{"joint": False, **options}))
    assert table.dtype == np.int32
    return frequent.tolist(), table.tolist()


def cipher(sentences: int = 300) -> tuple[list[list[int]], list[list[int]]]:
    """Source tokens 10 to 39; each becomes the token 30 higher, in the other order."""
    random = np.random.default_rng(1)
    words = [random.choice(np.arange(10, 40), 6, replace=False).tolist() for _ in range(sentences)]
    return [[*row, END] for row in words], [
        [*(token + 30 for token in reversed(row)), END] for row in words
    ]


def model_1(
    source: Sentences, target: Sentences, skip: set[int], iterations: int
) -> dict[int, Counter[int]]:
    """The textbook's Model 1: expected counts of each target token under each source token."""
    chances: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
    for _ in range(iterations):
        counts: dict[int, Counter[int]] = defaultdict(Counter)
        for sentence, translation in zip(source, target, strict=True):
            for word in translation:
                whole = sum(chances[token, word] for token in sentence)
                for token in sentence:
                    counts[token][word] += 0 if word in skip else chances[token, word] / whole  # type: ignore[assignment]
        chances = defaultdict(
            float,
            {(a, b): n / sum(row.values()) for a, row in counts.items() for b, n in row.items()},
        )
    return counts


def test_a_cipher_is_read() -> None:
    frequent, table = learnt(*cipher(), 70, frequent=1)
    assert frequent == [END]
    assert [row[0] for row in table[10:40]] == list(range(40, 70))
    assert table[5] == [-1] * 48


def test_the_textbook_agrees() -> None:
    random = np.random.default_rng(2)
    source = [[*random.integers(4, 12, random.integers(1, 6)).tolist(), END] for _ in range(60)]
    target = [[*random.zipf(1.5, 5).clip(1, 9) + 3, END] for _ in range(60)]
    frequent, table = learnt(source, target, 13, frequent=2, iterations=3, best=20)
    counts = model_1(source, target, set(frequent), 3)
    for token in range(3, 12):
        row = [word for word in table[token] if word >= 0]
        expected = sorted((n for n in counts[token].values() if n > 0.01), reverse=True)
        assert [counts[token][word] for word in row] == pytest.approx(expected, rel=1e-4)


def test_the_most_frequent_are_given_apart_from_the_table() -> None:
    source, target = cipher()
    target = [[50, 4, *row] for row in target]
    frequent, table = learnt(source, target, 70, frequent=3, best=2)
    assert frequent == [END, 4, 50]
    assert not {END, 4, 50} & {word for row in table for word in row}
    assert all(len(row) == 2 for row in table)


def test_a_joint_vocabulary_may_copy() -> None:
    source, target = [[10, 11, END]] * 5 + [[12, END]] * 5, [[20, 11, END]] * 5 + [[21, END]] * 5
    _, table = learnt(source, target, 30, joint=True, frequent=1, best=2)
    assert table[12] == [21, 12]
    assert table[25] == [25, -1]  # never seen
    assert sorted(table[10]) == [10, 11] or sorted(table[10]) == [
        10,
        20,
    ]  # the second place makes room
    assert sorted(table[11]) == [11, 20]
    assert END not in table[END]  # always there as one of the frequent


def test_a_sample_is_spread_over_the_text() -> None:
    source = [[token, END] for token in range(10, 60)]
    target = [[token + 100, END] for token in range(10, 60)]
    _, table = learnt(source, target, 200, frequent=1, pairs=5)
    assert [token for token in range(10, 60) if table[token][0] >= 0] == [10, 22, 34, 46, 59]
    assert table[59][0] == 159


def test_memory_mapped_text_is_read(tmp_path: Path) -> None:
    source, target = cipher(50)
    arrays = []
    for number, array in enumerate([*laid_out(source), *laid_out(target)]):
        array.tofile(tmp_path / f"{number}")
        arrays.append(np.memmap(tmp_path / f"{number}", dtype=array.dtype, mode="r"))
    sides = (Side(arrays[0], arrays[1], 70), Side(arrays[2], arrays[3], 70))
    _, table = learn(*sides, Learning(joint=False))
    assert table.tolist() == learnt(source, target, 70)[1]


@pytest.mark.parametrize("text", [[], [[10, END]]])
def test_little_text_leaves_the_table_to_copying(text: Sentences) -> None:
    frequent, table = learnt(text, text, 12, joint=True, best=3)
    assert frequent == sorted({token for row in text for token in row})
    assert table[11] == [11, -1, -1]
    assert table[10] == [-1 if text else 10, -1, -1]


def test_candidates_are_the_union_for_a_batch() -> None:
    table = np.array([[7, 2, -1], [-1, -1, -1], [9, 7, 4], [5, -1, -1]], np.int32)
    found = candidates(table, np.array([8, 0, 2]), [[0, 2, 0], [1]], 10)
    assert found.dtype == np.int64
    assert found.tolist() == [0, 2, 4, 7, 8, 9]
    assert candidates(table, np.array([0, 8]), [[], []], 10).tolist() == [0, 8]
