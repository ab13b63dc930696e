"""What an improvement is given, and what may be chosen about it. Knows no files' contents and no
model; imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from dragoman.config import Range, check_ranges
from dragoman.errors import OptionError
from dragoman.tasks.ray_workers import Cluster


@dataclass(frozen=True)
class ImproveOptions:
    """The table [improve] of a recipe."""

    minutes: Annotated[float, "minutes for all steps together", Range(above=0)] = 60.0
    rounds: Annotated[int, "rounds of back-translation, at most", Range(0)] = 2
    steps: Annotated[
        int, "optimiser steps of each training; 0 takes as many as fit the minutes", Range(0)
    ] = 0
    lines: Annotated[
        int, "lines translated in each round; 0 takes as many as fit the minutes", Range(0)
    ] = 0
    significance: Annotated[
        float, "a gain counts as proved if its p-value is below this", Range(above=0, most=1)
    ] = 0.05
    r_drop: Annotated[float, "R-Drop of the trainings after the first; 0 is off", Range(0)] = 3.0
    target_text: Annotated[tuple[str, ...], "text in the target language alone"] = ()
    source_text: Annotated[tuple[str, ...], "text in the source language alone"] = ()
    related: Annotated[tuple[str, ...], "parallel text of related languages"] = ()
    reverse: Annotated[str, "model folder of the opposite direction"] = ""
    student: Annotated[bool, "also make a small, fast model that learns from the best one"] = False

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class Inputs:
    """Everything that an improvement is given."""

    start: str  # the model folder to improve; empty to start from text
    out: str
    train: tuple[str, ...]  # parallel text
    valid: tuple[str, ...]
    test: tuple[str, ...]
    options: ImproveOptions
    weights: tuple[float, ...] = ()
    languages: tuple[str, str] = ("", "")
    tables: Mapping[str, Any] = field(default_factory=dict)  # [model], [training] and [tokenizer]
    cluster: Cluster | None = None  # of Ray, through which text goes; default: this machine

    def as_dict(self) -> dict[str, Any]:
        """Plain values for the journal, with the size of each file, so that other text under the
        same name is noticed. Who works decides nothing, so that another machine may go on."""
        values = asdict(self)
        del values["cluster"]
        named = (*self.train, *self.valid, *self.test, *self.options.target_text)
        named = (*named, *self.options.source_text, *self.options.related)
        values["sizes"] = {file: Path(file).stat().st_size for file in named}
        return values

    @property
    def seed(self) -> int:
        """What everything random follows from."""
        return int(self.training.get("seed", 1))

    @property
    def device(self) -> str:
        """auto, cpu, cuda or cuda:N."""
        return str(self.training.get("device", "auto"))

    @property
    def training(self) -> Mapping[str, Any]:
        """What the user chose in [training]."""
        table = self.tables.get("training", {})
        if not isinstance(table, Mapping):
            raise OptionError("'training' must be a table of options")
        return table

    @property
    def work(self) -> Path:
        """The folder in which the steps work, beside the result."""
        out = Path(self.out)
        return out.with_name(f"{out.name}.work")
