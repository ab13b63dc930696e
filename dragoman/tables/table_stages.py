"""What can be done with the rows of a table: translate a text, detect its language, make a vector
of it, or score a pair of texts. Knows values and models; no files.

A stage is small and can be sent to another process, which loads the model once. A row for which it
fails has the reason in a column, and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from dragoman.documents.document_settings import DocumentSettings
from dragoman.errors import OptionError
from dragoman.folder import layout
from dragoman.tables.cell_answers import Answers, attempted, fault_of, is_text
from dragoman.tables.deciding_files import model_facts
from dragoman.tables.field_path import FieldPath, rebuilt
from dragoman.tables.marked_cells import MARKUPS, translate_marked
from dragoman.tables.row_batch import Holds, NewColumn, Values
from dragoman.tasks.bulk import Job
from dragoman.tasks.translation import Translation
from dragoman.text.words import pharaoh

Work = Callable[[Sequence[Values]], list[NewColumn]]
ADDITIONS: dict[str, Holds] = {
    "score": "number",
    "confidence": "number",
    "flags": "texts",
    "alignment": "text",
}


class Stage(Protocol):
    """Something that is done with rows."""

    @property
    def paths(self) -> tuple[FieldPath, ...]:
        """What it reads of a row."""
        ...

    def facts(self) -> dict[str, Any]:
        """Everything that decides what it writes, as JSON has it."""
        ...

    def load(self, device: str) -> Work:
        """Make ready to work, in the process that does it."""
        ...


@dataclass(frozen=True)
class TranslateStage:
    """Translates the text at a path into a new column; `add` names what else is written of each
    translation, and `markup` what the text is where it is more than text."""

    path: FieldPath
    job: Job
    into: str = "translation"
    add: tuple[str, ...] = ()
    markup: str = ""

    def __post_init__(self) -> None:
        if self.markup and self.markup not in MARKUPS:
            raise OptionError(f"--markup is {self.markup!r}; it must be {' or '.join(MARKUPS)}")
        if self.markup and self.add:
            raise OptionError(
                "--add is for texts, and with --markup a cell may hold many; omit one of the two"
            )
        unknown = [name for name in self.add if name not in ADDITIONS]
        if unknown:
            raise OptionError(f"{unknown[0]!r} cannot be added; choose from {', '.join(ADDITIONS)}")
        if self.job.runtime == "auto" and (self.job.model / layout.CTRANSLATE2_WEIGHTS).exists():
            raise OptionError(
                f"{self.job.model} can be run in several ways, and workers could find different "
                "ones the fastest; add --runtime int8, torch or ctranslate2"
            )

    @property
    def paths(self) -> tuple[FieldPath, ...]:
        """The one path that is read."""
        return (self.path,)

    def facts(self) -> dict[str, Any]:
        """The model, what is asked of it, and the columns."""
        request = replace(self.job.request, glossary=None)
        glossary = self.job.request.glossary
        marked = {"markup": self.markup} if self.markup else {}
        return {
            "stage": "translate",
            "model": model_facts(self.job.model),
            "runtime": self.job.runtime,
            "request": asdict(request),
            "glossary": repr(glossary) if glossary else "",
            "shortlist": self.job.shortlist,
            "column": ".".join(self.path.steps),
            "into": self.into,
            "add": list(self.add),
            **marked,
        }

    def load(self, device: str) -> Work:
        """Load the translator."""
        from dragoman.tasks.translate import Translator

        is_aligned = "alignment" in self.add or bool(self.markup)
        request = replace(self.job.request, align=is_aligned)
        translator = Translator.load(self.job.model, device, self.job.runtime, self.job.shortlist)

        def translate(texts: list[str]) -> list[Translation]:
            return translator.translate(texts, request)

        def translate_cells(cells: list[str]) -> list[Translation]:
            known = translator.description
            languages = DocumentSettings(known.source_language, known.target_language)
            return translate_marked(cells, self.markup, translate, languages)

        answer = translate_cells if self.markup else translate
        return lambda values: self._columns(values, Answers(values, answer))

    def _columns(self, values: Sequence[Values], answers: Answers) -> list[NewColumn]:
        depth = self.path.steps.count("*")
        rows = [row[0] for row in values]

        def column(name: str, holds: Holds, read: Callable[[Translation], Any]) -> NewColumn:
            cells = [rebuilt(row, lambda leaf: answers.read(leaf, read)) for row in rows]
            return NewColumn(name, holds, depth, cells)

        made = [column(self.into, "text", lambda one: one.text)]
        for name in self.add:
            title = f"{self.into}_{name}"
            made.append(column(title, ADDITIONS[name], partial(_addition, name)))
        errors = [answers.error(row) for row in rows]
        made.append(NewColumn(f"{self.into}_error", "text", 0, errors))
        return made


@dataclass(frozen=True)
class DetectStage:
    """Writes the language of the text at a path and how certain that is."""

    path: FieldPath
    into: str = "language"

    @property
    def paths(self) -> tuple[FieldPath, ...]:
        """The one path that is read."""
        return (self.path,)

    def facts(self) -> dict[str, Any]:
        """The columns."""
        return {"stage": "detect", "column": ".".join(self.path.steps), "into": self.into}

    def load(self, device: str) -> Work:
        """Load the detector."""
        from dragoman.text.detection import Detector

        detector = Detector([])

        def detect(texts: Sequence[str]) -> list[Any]:
            return [detector.detect(text) if text.strip() else None for text in texts]

        def work(values: Sequence[Values]) -> list[NewColumn]:
            found, errors = _each(values, lambda rows: detect([text for (text,) in rows]))
            sure = [one if one and one.language else None for one in found]
            return [
                NewColumn(self.into, "text", 0, [one and one.language for one in sure]),
                NewColumn(
                    f"{self.into}_confidence", "number", 0, [one and one.confidence for one in sure]
                ),
                NewColumn(f"{self.into}_error", "text", 0, errors),
            ]

        return work


@dataclass(frozen=True)
class EmbedStage:
    """Writes a vector of length 1 for the text at a path."""

    path: FieldPath
    model: Path
    into: str = "embedding"

    @property
    def paths(self) -> tuple[FieldPath, ...]:
        """The one path that is read."""
        return (self.path,)

    def facts(self) -> dict[str, Any]:
        """The model and the columns."""
        column = ".".join(self.path.steps)
        model = model_facts(self.model)
        return {"stage": "embed", "model": model, "column": column, "into": self.into}

    def load(self, device: str) -> Work:
        """Load the encoder."""
        from dragoman.tasks.encode import TextEncoder

        encoder = TextEncoder.load(self.model, device)

        def work(values: Sequence[Values]) -> list[NewColumn]:
            vectors, errors = _each(
                values, lambda rows: list(encoder.embed([text for (text,) in rows]))
            )
            cells = [None if vector is None else vector.tolist() for vector in vectors]
            return [
                NewColumn(self.into, "vector", 0, cells),
                NewColumn(f"{self.into}_error", "text", 0, errors),
            ]

        return work


@dataclass(frozen=True)
class ScoreStage:
    """Writes how likely a model finds the translation in a row: the mean log-probability of a
    token, and with a model of the other direction that of the source as well. An encoder writes
    the cosine between both texts."""

    source: FieldPath
    target: FieldPath
    model: Path
    reverse: Path | None = None
    into: str = "score"

    @property
    def paths(self) -> tuple[FieldPath, ...]:
        """Both sides."""
        return (self.source, self.target)

    def facts(self) -> dict[str, Any]:
        """The models and the columns."""
        return {
            "stage": "score",
            "model": model_facts(self.model),
            "reverse": model_facts(self.reverse) if self.reverse else "",
            "columns": [".".join(path.steps) for path in self.paths],
            "into": self.into,
        }

    def load(self, device: str) -> Work:
        """Load the judges."""
        from dragoman.improving.pair_scores import pair_scorer

        judges = [(self.into, pair_scorer(self.model, device), 1)]
        if self.reverse is not None:
            judges.append((f"{self.into}_reverse", pair_scorer(self.reverse, device), -1))

        def work(values: Sequence[Values]) -> list[NewColumn]:
            made = []
            errors: list[str | None] = [None] * len(values)
            for name, judge, order in judges:
                pairs = [tuple(pair)[::order] for pair in values]
                scores, faults = _each(pairs, judge.scores)
                made.append(NewColumn(name, "number", 0, scores))
                errors = [old or new for old, new in zip(errors, faults, strict=True)]
            return [*made, NewColumn(f"{self.into}_error", "text", 0, errors)]

        return work


def _each(
    rows: Sequence[Values], work: Callable[[Sequence[Any]], Sequence[Any]]
) -> tuple[list[Any], list[str | None]]:
    """What becomes of each row, and why nothing does; rows with a gap have neither."""
    faults = [next(filter(None, map(fault_of, row)), None) for row in rows]
    usable = [number for number, row in enumerate(rows) if all(map(is_text, row))]
    usable = [number for number in usable if faults[number] is None]
    made: list[Any] = [None] * len(rows)
    attempts = attempted([rows[number] for number in usable], work)
    for number, (one, fault) in zip(usable, attempts, strict=True):
        made[number] = one
        faults[number] = fault or None
    return made, faults


def _addition(name: str, translation: Translation) -> Any:
    if name == "flags":
        return list(translation.flags)
    if name == "alignment":
        return pharaoh(translation.alignment)
    value = getattr(translation, name)
    return None if value is None else float(value)
