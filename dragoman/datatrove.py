"""Dragoman in a datatrove pipeline: documents in, the same documents with their translation out.

>>> from datatrove.executor import LocalPipelineExecutor
>>> from datatrove.pipeline.readers import JsonlReader
>>> from datatrove.pipeline.writers import JsonlWriter
>>> from dragoman.datatrove import TranslateBlock
>>> steps = [JsonlReader("in/"), TranslateBlock("models/en-de"), JsonlWriter("out/")]
>>> LocalPipelineExecutor(steps, tasks=2).run()

Each task loads the model once, when its first documents come. The translation goes into the
metadata of a document, or takes the place of its text; a document that fails has the reason there.
On Slurm, `SlurmPipelineExecutor` runs the same steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from dragoman.errors import MissingDependencyError
from dragoman.tables.asked_columns import Asked
from dragoman.tables.row_batch import BATCH_ROWS, NewColumn
from dragoman.tables.table_stages import Work

try:
    from datatrove.pipeline.base import PipelineStep
except ImportError:
    raise MissingDependencyError.for_extra("dragoman.datatrove", "datatrove") from None

__all__ = ["Asked", "TranslateBlock"]
_SOURCE = "source_text"  # where the text goes that a translation takes the place of


class TranslateBlock(PipelineStep):  # type: ignore[misc]  # datatrove has no types
    """Translates the text of every document, or a field such as `metadata.title`.

    `asked.into` names the field of the metadata that gets the translation; with `text`, the
    translation takes the place of the text, which is kept in `source_text`. `device` is that of a
    task: cpu, or cuda.
    """

    name = "Dragoman"
    type = "TRANSLATE"

    def __init__(
        self,
        model: str | Path,
        field: str = "text",
        asked: Asked | None = None,
        device: str = "cpu",
        batch: int = BATCH_ROWS,
    ) -> None:
        super().__init__()
        # Tasks run elsewhere, where another folder is the current one.
        self._stage = (asked or Asked()).stage(field, Path(model).absolute())
        self._device = device
        self._batch = batch

    def run(self, data: Iterable[Any], rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Yield the documents with their translations, in order."""
        documents = iter(data)
        work: Work | None = None
        while batch := list(islice(documents, self._batch)):
            work = work or self._stage.load(self._device)
            with self.track_time("batch"):
                self._translate(batch, work)
            for document in batch:
                self.stat_update("translated")
                self.update_doc_stats(document)
                yield document

    def _translate(self, documents: list[Any], work: Work) -> None:
        (path,) = self._stage.paths
        rows = [{"text": one.text, "id": one.id, "metadata": one.metadata} for one in documents]
        columns = work([(path.of(row),) for row in rows])
        for number, document in enumerate(documents):
            for column in columns:
                self._put(document, column, number)

    def _put(self, document: Any, column: NewColumn, number: int) -> None:
        value = column.values[number]
        if column.name.endswith("_error"):
            if value is not None:
                document.metadata[column.name] = value
                self.stat_update("failed")
        elif column.name == "text":
            if value is not None:
                document.metadata[_SOURCE] = document.text
                document.text = value
        else:
            document.metadata[column.name] = value
