"""What can be said of a run before and after it: what so much text gives, how long its steps take,
and whether the model has been trained. Knows numbers; knows no model.

The words about text and BLEU are rules of thumb. They are about text of the same kind as the
training text, and the sample translations beside them count for more.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from pathlib import Path

from dragoman.training.training_options import TrainingOptions

_PAIRS = (2_000, 10_000, 50_000, 200_000, 1_000_000)
_EXPECTED = (
    "enough to try the commands, too little for a translator",
    "set phrases much like those in the text, and little else",
    "sentences much like those in the text; others will often be wrong",
    "the gist of texts of the same kind",
    "drafts of texts of the same kind, which need editing",
    "good drafts of texts of the same kind",
)
# Measured from the second step on: the first also compiles and allocates.
_STEPS_TO_MEASURE = 3
_SECONDS_TO_MEASURE = 5.0
_STEPS_ENOUGH = 20  # however quick they are
_WORTH_SAYING = 10.0  # seconds; a shorter run is over before its estimate is read
_LITTLE = 0.1  # of the planned steps: nothing can be expected of a model yet
_NOTHING_RIGHT = 1.0  # BLEU
_HARDLY_USABLE = 5.0  # BLEU
_MOST_MINUTES = 600


@dataclass
class Pace:
    """How long a step takes in this run, on this machine."""

    first_step: int = 0
    first_seconds: float = 0.0
    step: int = 0
    seconds: float = 0.0

    def note(self, step: int, seconds: float) -> None:
        """A step is done, so many seconds after the beginning of the run."""
        if not self.first_step:
            self.first_step = step
            self.first_seconds = seconds
        self.step = step
        self.seconds = seconds

    @property
    def known(self) -> bool:
        """Whether enough steps were measured."""
        steps = self.step - self.first_step
        seconds = self.seconds - self.first_seconds
        long_enough = seconds >= _SECONDS_TO_MEASURE
        return steps >= _STEPS_ENOUGH or (steps >= _STEPS_TO_MEASURE and long_enough)

    @property
    def seconds_a_step(self) -> float:
        """0 before the second step."""
        steps = self.step - self.first_step
        seconds = self.seconds - self.first_seconds
        return seconds / max(1, steps)


@dataclass(frozen=True)
class Ended:
    """How a run ended."""

    folder: Path
    reason: str  # steps, minutes or patience
    step: int
    steps: int  # as planned
    seconds: float
    improving: bool  # the last validation was the best one
    trained: bool  # steps were made since it was started or resumed
    bleu: float | None

    @property
    def usable(self) -> bool:
        """Whether anything at all comes out right, as far as it is known."""
        return self.bleu is None or self.bleu >= _NOTHING_RIGHT


def expected(pairs: int) -> str:
    """What can be expected from so many pairs of sentences."""
    level = bisect.bisect(_PAIRS, pairs)
    return f"As a rule, {pairs:,} pairs give: {_EXPECTED[level]}."


def estimate(pace: Pace, options: TrainingOptions) -> str:
    """How long the run will take, or how far it will come in its minutes; empty where that is not
    worth a sentence."""
    rate = pace.seconds_a_step
    left = (options.steps - pace.step) * rate
    if left < _WORTH_SAYING:
        return ""
    each = f"{rate:.2f} s" if rate < 10 else f"{rate:,.0f} s"
    whole = f"about {duration(left)} more for all {options.steps:,} steps, without validations"
    limit = options.minutes * 60 - pace.seconds
    if options.minutes and limit < left:
        more_steps = int(max(0.0, limit) / max(1e-9, rate))
        reached = min(options.steps, pace.step + more_steps)
        share = reached / options.steps
        is_one = options.minutes == 1
        limit_named = "the minute ends" if is_one else f"the {options.minutes:g} minutes end"
        return (
            f"at {each} a step on this machine, {limit_named} near step "
            f"{reached:,} of {options.steps:,} ({share:.0%}); it would take {whole}"
        )
    early = "; it stops before that if validations no longer improve" if options.patience else ""
    return f"at {each} a step on this machine, it takes {whole}{early}"


def verdict(ended: Ended) -> str:
    """The truth about a model at the end of its run, and what to do; empty if nothing is to be
    done."""
    before = "" if ended.trained else "nothing was left to do in this run; "
    done = f"{ended.step:,} of {ended.steps:,} steps in {duration(ended.seconds)}"
    resume = f"continue with: dragoman train --resume {ended.folder}"
    if ended.reason == "minutes" and ended.step < ended.steps:
        few = ended.step < _LITTLE * ended.steps
        state = "not trained to the end"
        if few or not ended.usable:
            state = "not trained yet"
        elif ended.improving:
            state = "still improving"
        return f"{before}{done}: {state}; {resume} --minutes {_more_minutes(ended)}"
    if ended.reason == "steps" and ended.improving and not ended.trained:
        return f"{before}{done}; {resume} --steps {2 * ended.steps}"
    if ended.reason == "steps" and ended.improving:
        state = "still improving at the last validation" if ended.usable else "not trained yet"
        return f"{done}: {state}; for a longer run, {resume} --steps {2 * ended.steps}"
    if ended.bleu is not None and ended.bleu < _HARDLY_USABLE:
        return (
            f"{before}{done}: no longer improving, and hardly anything is right; look at the "
            "sample translations and the data check, and add text"
        )
    return before.rstrip("; ")


def duration(seconds: float) -> str:
    """A duration as people say it, such as 25 minutes or 2 hours 10 minutes."""
    if seconds < 90:
        return _counted(max(1, round(seconds)), "second")
    minutes = round(seconds / 60)
    if minutes < 90:
        return _counted(minutes, "minute")
    hours, minutes = divmod(10 * round(minutes / 10), 60)
    if hours < 36:
        rest = f" {minutes} minutes" if minutes else ""
        return f"{_counted(hours, 'hour')}{rest}"
    return _counted(round(hours / 24), "day")


def _counted(count: int, unit: str) -> str:
    return f"{count:,} {unit}" if count == 1 else f"{count:,} {unit}s"


def _more_minutes(ended: Ended) -> int:
    """Enough for the steps that are left, as a round number."""
    left = (ended.steps - ended.step) * ended.seconds / max(1, ended.step) / 60
    if left > 60:
        half_hours = math.ceil(left / 30)
        return min(_MOST_MINUTES, 30 * half_hours)
    if left > 10:
        return 5 * math.ceil(left / 5)
    return max(1, math.ceil(left))
