"""Dragoman in a Ray Data pipeline: a dataset in, the same dataset with more columns out.

>>> import ray.data, dragoman.ray
>>> rows = ray.data.read_parquet("in/")
>>> rows = dragoman.ray.translate(rows, column="text", model="models/en-de", concurrency=4)
>>> rows.write_parquet("out/")

Each actor loads its model once. All other columns and the order of rows within a block stay; the
rows of a batch are sorted by length for the model and put back. A row that fails has its error in a
column. For files that must come out exactly once, whatever dies, see `dragoman translate --engine
ray`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict, Unpack

from dragoman.tables.asked_columns import Asked
from dragoman.tables.field_path import FieldPath
from dragoman.tables.parquet_rows import check_columns, values_at, with_columns
from dragoman.tables.row_batch import BATCH_ROWS
from dragoman.tables.table_stages import (
    DetectStage,
    EmbedStage,
    ScoreStage,
    Stage,
    Work,
)

__all__ = ["Asked", "BatchWorker", "detect", "embed", "score", "translate"]


class Actors(TypedDict, total=False):
    """How many actors work at most, and what each has of the cluster; a GPU may be shared (0.25).
    There are fewer where the cluster has no room for them."""

    concurrency: int
    num_cpus: float
    num_gpus: float
    batch_size: int


def translate(
    dataset: Any,
    column: str,
    model: str | Path,
    asked: Asked | None = None,
    **actors: Unpack[Actors],
) -> Any:
    """Translate a column, or each text at a path such as `messages.*.content`."""
    stage = (asked or Asked()).stage(column, _folder(model))
    return _mapped(dataset, stage, actors)


def detect(dataset: Any, column: str, **actors: Unpack[Actors]) -> Any:
    """Add the language of each text of a column, and how certain it is."""
    return _mapped(dataset, DetectStage(FieldPath.parse(column)), actors)


def embed(dataset: Any, column: str, model: str | Path, **actors: Unpack[Actors]) -> Any:
    """Add a vector of length 1 for each text of a column."""
    return _mapped(dataset, EmbedStage(FieldPath.parse(column), _folder(model)), actors)


def score(
    dataset: Any,
    columns: tuple[str, str],
    model: str | Path,
    reverse: str | Path | None = None,
    **actors: Unpack[Actors],
) -> Any:
    """Add how likely a model finds the pair in two columns, source and target: the mean
    log-probability of a token; with `reverse`, also by a model of the other direction. With an
    encoder, as `train --task embed` makes one, it is the cosine between both texts."""
    source, target = map(FieldPath.parse, columns)
    other = _folder(reverse) if reverse else None
    return _mapped(dataset, ScoreStage(source, target, _folder(model), other), actors)


class BatchWorker:
    """What an actor runs, for those who call `map_batches` themselves: loads the model of a stage
    once, then adds its columns to every batch, a table of Arrow."""

    def __init__(self, stage: Stage, device: str = "cpu", threads: int = 1) -> None:
        if device == "cpu":
            import torch

            torch.set_num_threads(threads)
        self._stage = stage
        self._work: Work = stage.load(device)

    def __call__(self, batch: Any) -> Any:
        """The batch with more columns."""
        check_columns("the dataset", self._stage.paths, batch.column_names)
        values = values_at(batch, self._stage.paths)
        return with_columns(batch, self._work(values))


def _mapped(dataset: Any, stage: Stage, actors: Actors) -> Any:
    """The dataset with the columns that a stage adds."""
    num_cpus = actors.get("num_cpus", 1.0)
    num_gpus = actors.get("num_gpus", 0.0)
    device = "cuda" if num_gpus else "cpu"
    return dataset.map_batches(
        BatchWorker,
        fn_constructor_args=(stage, device, max(1, int(num_cpus))),
        # At most: where they took all cores, none would be left to read and write for.
        concurrency=(1, actors.get("concurrency", 1)),
        num_cpus=num_cpus,
        num_gpus=num_gpus,
        batch_size=actors.get("batch_size", BATCH_ROWS),
        batch_format="pyarrow",
    )


def _folder(model: str | Path) -> Path:
    """The folder by its whole path, since actors have a current folder of their own."""
    return Path(model).absolute()
