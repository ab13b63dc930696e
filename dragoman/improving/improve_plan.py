"""Which steps an improvement takes, why, and how its minutes are shared out. Knows counts and
options; knows no files and no model.

The minutes are shares of the budget, settled before anything is trained. A tenth of it is left
over, so that a machine that is a little slower than it was when it was measured still keeps to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.improving.improve_options import ImproveOptions

GATHER = "gather"
MEASURE = "measure"
PARENT = "parent"
REVERSE = "reverse"
CLEAN = "clean"
ROUND = "back-translate"
NEAREST = "nearest"
AVERAGE = "average"
STUDENT = "student"

ENOUGH_PASSES = 60.0  # over our own text, for more than one long training

MEASURED = 2  # steps after which the machine is known
_USED = 0.9  # of the minutes
_ENOUGH_TO_CLEAN = 2_000  # pairs
_ENOUGH_TO_SELECT = 2_000
_WORTH_A_ROUND = 0.5  # minutes


@dataclass(frozen=True)
class Facts:
    """What there is to work with."""

    from_text: bool
    pairs: int = 0
    related: int = 0  # pairs
    target_lines: int = 0
    source_lines: int = 0
    has_reverse: bool = False
    passes: float | None = None  # over our own text in all the minutes; None until measured
    spent: float | None = None  # minutes until everything was measured

    @property
    def is_hungry(self) -> bool:
        """Whether the minutes are hardly enough to learn our own text, so that one long training
        gives more than several short ones."""
        return self.passes is not None and self.passes < ENOUGH_PASSES


@dataclass(frozen=True)
class PlannedStep:
    """A step that is going to be taken."""

    name: str
    reason: str
    minutes: float = 0.0
    both: bool = False  # whether a model of both directions is trained


def make_plan(facts: Facts, options: ImproveOptions) -> list[PlannedStep]:
    """The steps in their order, with the minutes of each: shares of the budget, or of what the
    first two steps have left of it."""
    shares = _steps(facts, options)
    minutes = _USED * options.minutes
    first: list[PlannedStep] = []
    if facts.spent is not None:
        first = [step for step, _ in shares[:MEASURED]]
        first = [replace(step, minutes=facts.spent / MEASURED) for step in first]
        shares = shares[MEASURED:]
        minutes = max(0.0, minutes - facts.spent)
    total = sum(share for _, share in shares)
    planned = [replace(step, minutes=minutes * share / total) for step, share in shares]
    return first + [step for step in planned if _is_worthwhile(step, options)]


def in_words(plan: Sequence[PlannedStep], options: ImproveOptions) -> str:
    """The plan as a table that can be read in a terminal."""
    width = max(len(step.name) for step in plan)
    heading = f"{'step':<{width}}  minutes  why"
    rows = [f"{step.name:<{width}}  {step.minutes:7.1f}  {step.reason}" for step in plan]
    total = f"{'in all':<{width}}  {options.minutes:7.1f}  with a tenth in reserve"
    return "\n".join([heading, *rows, total])


def _steps(facts: Facts, options: ImproveOptions) -> list[tuple[PlannedStep, float]]:
    """Every step that these facts call for, with its share of the minutes."""
    steps = [
        (PlannedStep(GATHER, _gathering(facts)), 1.0),
        (PlannedStep(MEASURE, "how fast this machine trains and translates"), 2.0),
    ]
    is_poor = facts.is_hungry and not facts.target_lines and not facts.related
    if facts.from_text or facts.related:
        share = 100.0 if is_poor else 35.0
        step = PlannedStep(PARENT, _parent(facts, is_poor), both=not is_poor)
        steps.append((step, share))
    if not is_poor:
        steps += _two_ways(facts, options)
    if facts.pairs >= _ENOUGH_TO_SELECT:
        reason = "a short training on the pairs nearest to the valid set"
        steps.append((PlannedStep(NEAREST, reason), 5.0))
    steps.append((PlannedStep(AVERAGE, "the mean of the models so far, if it is better"), 2.0))
    if options.student:
        reason = "a small model that learns the translations of the best one, with a shortlist"
        steps.append((PlannedStep(STUDENT, reason), 25.0))
    return steps


def _two_ways(facts: Facts, options: ImproveOptions) -> list[tuple[PlannedStep, float]]:
    """The steps that need a model of the opposite direction."""
    steps = []
    if facts.pairs and not facts.has_reverse:
        reason = "a model of the opposite direction, to translate back and to judge pairs"
        steps.append((PlannedStep(REVERSE, reason), 8.0))
    can_reverse = facts.pairs > 0 or facts.has_reverse
    if facts.pairs >= _ENOUGH_TO_CLEAN and not facts.is_hungry:
        reason = "drop what the models of both directions find unlikely; train on the rest"
        steps.append((PlannedStep(CLEAN, reason), 8.0))
    if can_reverse and (facts.pairs or facts.target_lines):
        for number in range(1, options.rounds + 1):
            share = 40.0 if number == 1 else 25.0
            steps.append((PlannedStep(f"{ROUND}-{number}", _round(facts, number)), share))
    return steps


def _is_worthwhile(step: PlannedStep, options: ImproveOptions) -> bool:
    """A second round of a few seconds would only cost time."""
    if options.steps or not step.name.startswith(ROUND) or step.name == f"{ROUND}-1":
        return True
    return step.minutes >= _WORTH_A_ROUND


def _gathering(facts: Facts) -> str:
    return f"{facts.pairs:,} pairs checked and kept apart from the valid and test sets"


def _parent(facts: Facts, is_poor: bool) -> str:
    if is_poor:
        return "one long training: the minutes are not enough for more than that"
    both = "one model of both directions"
    if facts.related:
        return f"{both}, together with {facts.related:,} pairs of related languages"
    return f"{both}: each helps the other where there is little text"


def _round(facts: Facts, number: int) -> str:
    lines = facts.target_lines or facts.pairs
    what = "lines of target text" if facts.target_lines else "targets of the text itself"
    again = "drawn at random this time" if number > 1 else "marked as such"
    return f"up to {lines:,} {what} translated back, {again}; names and numbers exchanged"
