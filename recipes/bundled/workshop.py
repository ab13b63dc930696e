"""What every stage of the recipe for bundled models shares: the directions, the plan, the packed
text, the folder of models, the clock and the log. Knows the names of files; reads no text, trains
nothing and translates nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import packed_text
from stage_times import Clock, Log

from dragoman.folder import layout
from dragoman.text.tokenizer import Tokenizer

# The models that may write each kind of text, the best one first.
WRITERS = {"back": ("before",), "own": ("teacher", "before")}


@dataclass(frozen=True)
class Direction:
    """A source language and a target language."""

    source: str
    target: str

    @property
    def name(self) -> str:
        return f"{self.source}-{self.target}"

    @property
    def other(self) -> Direction:
        return Direction(self.target, self.source)

    @property
    def languages(self) -> tuple[str, str]:
        return self.source, self.target


DIRECTIONS = (Direction("en", "de"), Direction("de", "en"))


def direction_named(name: str) -> Direction:
    """The direction that is called so, for instance en-de."""
    return next(one for one in DIRECTIONS if one.name == name)


@dataclass(frozen=True)
class Made:
    """The folder of models, with the text that they translate and write."""

    folder: Path

    @property
    def tokenizer(self) -> Path:
        """The vocabulary of all models."""
        return self.folder / layout.TOKENIZER

    def sources(self, use: str, direction: Direction) -> Path:
        """The lines that are to be translated for a direction."""
        return self.folder / f"{use}-sources.{direction.name}.txt"

    def text(self, use: str, direction: Direction) -> Path:
        """The pairs of a direction of which a model wrote one side."""
        return self.folder / f"{use}.{direction.name}.tsv"

    def before(self, direction: Direction) -> Path:
        """The model that was there before."""
        return self.folder / f"before.{direction.name}"

    def teacher(self, direction: Direction) -> Path:
        return self.folder / f"teacher.{direction.name}"

    def student(self, direction: Direction) -> Path:
        return self.folder / direction.name

    def writer(self, use: str, direction: Direction) -> Path | None:
        """The best model of a direction that can write this kind of text, if there is one."""
        folders = [self.folder / f"{name}.{direction.name}" for name in WRITERS[use]]
        return next((one for one in folders if is_model(one)), None)


def is_model(folder: Path) -> bool:
    """Whether a folder has weights."""
    return (folder / layout.WEIGHTS).exists()


@dataclass(frozen=True)
class Keeping:
    """Where a copy of each result goes, and how many megabytes a file there may have."""

    folder: Path
    megabytes: float


@dataclass(frozen=True)
class Workshop:
    """What a stage works with."""

    packed: Path
    made: Made
    plan_file: Path
    plan: Mapping[str, Any]
    keeping: Keeping | None
    pool: Pool  # reads packed text
    log: Log
    clock: Clock
    tokenizer: Tokenizer
    done: list[str] = field(default_factory=list)  # names of stages

    @property
    def device(self) -> str:
        return str(self.plan["device"])

    def files(self, use: str) -> list[packed_text.Packed]:
        """The packed files of a use, in all parts that have arrived."""
        parts = sorted(self.packed.glob("part-*"))
        return packed_text.packed_files(parts, use)
