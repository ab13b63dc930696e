"""What is asked of a translation in somebody else's pipeline. Knows options; no rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dragoman.tables.field_path import FieldPath
from dragoman.tables.table_stages import TranslateStage
from dragoman.tasks.bulk import Job
from dragoman.tasks.request import TranslateRequest


@dataclass(frozen=True)
class Asked:
    """What is asked of a translation, and which columns it becomes: the translation, and those of
    score, confidence, flags and alignment that `add` names. With `markup` (html or md), the tags in
    a text stay, as they do in documents."""

    request: TranslateRequest = field(default_factory=TranslateRequest)
    into: str = "translation"
    add: tuple[str, ...] = ()
    runtime: str = "auto"
    shortlist: bool = False
    markup: str = ""

    def stage(self, column: str, model: Path) -> TranslateStage:
        """Return the stage that translates a column."""
        job = Job(model, self.request, self.runtime, self.shortlist)
        path = FieldPath.parse(column)
        return TranslateStage(path, job, self.into, self.add, self.markup)
