"""Batches and their parts: the same for any number of processes, and true to what they say of
themselves while another thread changes what fits."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dragoman.data.batches import Batch, Rows
from dragoman.errors import TrainingError
from dragoman.training.distributed import World
from dragoman.training.progress import Progress
from dragoman.training.step_batches import StepBatches
from dragoman.training.training_data import TrainingData
from dragoman.training.training_options import TrainingOptions
from dragoman.training.validation import ValidSet


class Numbers:
    """Row i has i % 5 + 1 source tokens and one target token fewer or as many: i itself."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        return rows % 5 + 1, np.maximum(rows % 5, 1)

    def batch(self, rows: Rows) -> Batch:
        source = torch.from_numpy(np.tile(rows[:, None], (1, int(max(rows % 5)) + 1)))
        positions = torch.arange(len(rows))
        return Batch(source, source, None, positions, torch.from_numpy(rows))


def made(examples: Any, world: World | None = None, **options: Any) -> StepBatches:
    data = TrainingData(
        Path("run"), "translate", lambda _: examples, [(len(examples), 1.0)], ValidSet(examples)
    )
    given = TrainingOptions(**{"batch_tokens": 40, **options})
    return StepBatches(data, given, world or World(torch.device("cpu")), packed=False)


def test_a_walk_goes_on_from_any_batch() -> None:
    whole = list(islice(made(Numbers(50)).walk(Progress()), 12))
    middle = whole[5]
    progress = Progress(step=5, epoch=middle.epoch, batch=middle.index)
    later = list(islice(made(Numbers(50)).walk(progress), 7))
    assert [work.rows.tolist() for work in later] == [work.rows.tolist() for work in whole[5:]]
    assert {work.epoch for work in whole} == {0, 1, 2}


def test_the_parts_of_all_processes_are_the_batch() -> None:
    """Also where there are fewer rows than processes; all have equally many parts."""
    for rows in (np.arange(11), np.arange(2)):
        labels = []
        counts = set()
        for rank in range(3):
            batches = made(Numbers(50), World(torch.device("cpu"), rank, 3))
            parts = batches.split(Numbers(50), rows, micro_tokens=10)
            assert all(part.source.numel() <= 10 for part in parts)
            counts.add(len(parts))
            for part in parts:
                labels += part.labels.tolist()
        assert sorted(labels) == rows.tolist()
        assert len(counts) == 1


@pytest.mark.parametrize("call", [2, 3])
def test_a_batch_says_what_its_parts_were_made_for(call: int) -> None:
    """Memory runs out in the main thread while a batch is being made in another: once the plan has
    been made, in the batch or in its parts."""

    class Shrinking(Numbers):
        calls = 0

        def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
            self.calls += 1
            if self.calls == call:
                batches.micro_tokens = 5
            return super().lengths(rows)

    examples = Shrinking(50)
    batches = made(examples)
    work = next(batches.walk(Progress()))
    assert batches.micro_tokens == 5
    assert max(part.source.numel() for part in work.parts) <= work.micro_tokens
    expected = batches.split(examples, work.rows, work.micro_tokens)
    assert len(work.parts) == len(expected)


def test_r_drop_lays_each_row_twice() -> None:
    parts = made(Numbers(50), r_drop=1.0).split(Numbers(50), np.arange(4), micro_tokens=100)
    assert parts[0].labels.tolist() == [0, 1, 2, 3] * 2


def test_no_examples() -> None:
    with pytest.raises(TrainingError, match="run holds no training pairs"):
        next(made(Numbers(0)).walk(Progress()))
