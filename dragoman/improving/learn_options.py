"""What learning from corrections is given, and what may be chosen about it. Knows no files'
contents and no model; imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dragoman.config import Range, check_ranges


@dataclass(frozen=True)
class Given:
    """A sentence and what a reader would have instead of its translation."""

    source: str
    target: str
    user: str = ""  # empty for what the operator gave, which no limit of users holds for


@dataclass(frozen=True)
class LearnOptions:
    """How a model learns from corrections."""

    minutes: Annotated[float, "minutes, at most", Range(above=0)] = 30.0
    per_user: Annotated[
        int, "corrections of one user, the newest, that are learnt from", Range(1)
    ] = 200
    most: Annotated[int, "corrections in all, the newest, that are learnt from", Range(50)] = 5_000
    keep: Annotated[int, "earlier models that are kept besides the first", Range(0)] = 3
    most_loss: Annotated[float, "BLEU that may be lost on the older valid set", Range(0)] = 0.2
    significance: Annotated[
        float, "a gain counts as proved if its p-value is below this", Range(above=0, most=1)
    ] = 0.05
    learning_rate: Annotated[float, "highest rate", Range(above=0)] = 2e-4
    passes: Annotated[float, "times that every correction is seen", Range(above=0)] = 4.0
    batch_tokens: Annotated[int, "tokens of a step", Range(64)] = 2_000
    replay: Annotated[float, "older sentences practised for each correction", Range(0, most=20)] = (
        1.0
    )
    anchor: Annotated[
        bool, "hold the model to what it predicts now wherever it would have said the word itself"
    ] = False
    judged: Annotated[int, "older valid pairs that are translated", Range(10)] = 500
    device: Annotated[str, "auto, cpu, cuda or cuda:N"] = "auto"
    seed: Annotated[int, "everything random follows from it", Range(0)] = 1

    def __post_init__(self) -> None:
        check_ranges(self)
