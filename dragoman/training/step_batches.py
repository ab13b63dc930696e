"""What each step works on: the batches of a run in their order, and each in parts that fit into
memory. Knows examples by number; knows no model and no optimiser.

Epochs, batches and parts follow from the seed and from counters alone, so that a run can go on
from any step, and every process of a run plans the same batches and takes its share of the rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from dragoman.data.batch_plan import plan_epoch
from dragoman.data.batches import SHORTEST, Batch, Draw, Examples, PackedBatch, Pairs, Rows
from dragoman.errors import TrainingError
from dragoman.training.distributed import World
from dragoman.training.progress import Progress
from dragoman.training.training_data import TrainingData
from dragoman.training.training_options import TrainingOptions

Part = Batch | PackedBatch


@dataclass(frozen=True)
class StepBatch:
    """A step's work: the rows of all processes, and this process's share of them in parts."""

    epoch: int
    index: int  # of the batch in its epoch
    examples: Examples
    rows: Rows
    tokens: int  # that have a loss, over all processes
    read: int  # tokens that speed is counted in
    parts: list[Part]
    micro_tokens: int  # that the parts were made for


class StepBatches:
    """Makes the batches of a run. A thread may walk them while another lowers `micro_tokens`: each
    batch reads it once, and says what its parts were made for."""

    def __init__(
        self,
        data: TrainingData,
        options: TrainingOptions,
        world: World,
        packed: bool,
    ) -> None:
        self._data = data
        self._options = options
        self._world = world
        self._packed = packed  # whether a part's pairs lie end to end
        self._copies = 2 if options.r_drop else 1
        self.micro_tokens = options.micro_tokens or options.batch_tokens  # in a part, at most

    def walk(self, progress: Progress) -> Iterator[StepBatch]:
        """The batches from where the run stands, without end."""
        done = progress.batch
        for epoch in itertools.count(progress.epoch):
            examples = self._data.epochs(epoch)
            if not len(examples):
                raise TrainingError(
                    f"{self._data.folder} holds no training pairs; prepare it again from text"
                )
            plan = plan_epoch(
                examples,
                self._data.corpora,
                self._options.batch_tokens,
                Draw(self._options.seed, epoch),
                progress.packed_plan,
            )
            for index, rows in itertools.islice(enumerate(plan), done, None):
                yield self._batch(epoch, index, examples, rows)
            done = 0

    def split(self, examples: Examples, rows: Rows, micro_tokens: int) -> list[Part]:
        """This process's rows in parts of at most `micro_tokens`, as many parts as the other
        processes have; a part without a row takes one without its labels."""
        width = np.maximum(*examples.lengths(rows))
        at_once = max(1, micro_tokens // self._copies // int(width.max()))
        if self._data.contrasts:
            at_once = len(rows)
        share = math.ceil(len(rows) / self._world.size)
        shortest_first = rows[np.argsort(width, kind="stable")]
        own = shortest_first[self._world.rank :: self._world.size]
        parts = []
        for part in np.array_split(own, math.ceil(share / at_once)):
            if len(part):
                parts.append(self._lay(examples, part))
            else:
                parts.append(_without_labels(self._lay(examples, rows[:1])))
        return parts

    def _batch(self, epoch: int, index: int, examples: Examples, rows: Rows) -> StepBatch:
        source, target = (int(side.sum()) for side in examples.lengths(rows))
        micro_tokens = self.micro_tokens
        return StepBatch(
            epoch,
            index,
            examples,
            rows,
            tokens=target,
            read=target if self._data.decodes else source,
            parts=self.split(examples, rows, micro_tokens),
            micro_tokens=micro_tokens,
        )

    def _lay(self, examples: Examples, rows: Rows) -> Part:
        if self._packed and isinstance(examples, Pairs):
            unit = SHORTEST * max(1, self._options.batch_tokens // SHORTEST // 32)
            return examples.packed(rows, unit, self._copies)
        return examples.batch(np.tile(rows, self._copies))


def _without_labels(part: Part) -> Part:
    if isinstance(part, PackedBatch):
        return replace(part, labels=torch.full_like(part.labels, -1))
    return replace(part, positions=part.positions[:0], labels=part.labels[:0])
