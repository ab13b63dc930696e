"""Text that a model writes: back-translations, and translations for its students. Knows a
direction's sources and its output; knows nothing of packed text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bundled.stage_processes import started, wait_for
from bundled.workshop import DIRECTIONS, Direction, Made, Workshop
from stage_times import Log

from dragoman.decoding.search_options import SearchOptions
from dragoman.improving.back_translation import TAG
from dragoman.improving.machine_pairs import PairsJob, make_pairs
from dragoman.improving.source_texts import survey
from dragoman.improving.text_through_model import Course, Machines, Passage, put_through
from dragoman.tasks.shared_gpu import side_by_side

MAX_EXTRA = 20  # tokens that a translation may be longer than its source


@dataclass(frozen=True)
class Writing:
    """The text of one direction that a model is to write: `back` is its sources, `own` its
    targets."""

    made: Made
    use: str
    direction: Direction

    @property
    def is_back(self) -> bool:
        return self.use == "back"

    @property
    def model(self) -> Path | None:
        """The model that writes it, if there is one."""
        reads = self.direction.other if self.is_back else self.direction
        return self.made.writer(self.use, reads)

    @property
    def sources(self) -> Path:
        return self.made.sources(self.use, self.direction)

    @property
    def out(self) -> Path:
        return self.made.text(self.use, self.direction)


def write_both(shop: Workshop, use: str, seconds: float) -> None:
    """Have the text of both directions written at once, by a process for each, which has processes
    of its own."""
    writings = [Writing(shop.made, use, one) for one in DIRECTIONS]
    waiting = [one for one in writings if not one.out.exists()]
    if not waiting:
        return
    with side_by_side([shop.device] * shop.plan["processes"]):
        processes = [started(shop, use, one.direction.name, seconds) for one in waiting]
        wait_for(processes)


def write_here(writing: Writing, plan: Mapping[str, Any], seconds: float) -> None:
    """Write the text of a direction: as much as there is time for, over all attempts."""
    back = writing.is_back
    model = writing.model
    if model is None:
        raise FileNotFoundError(f"{writing.made.folder} has no model for the text '{writing.use}'")
    job = PairsJob(
        model,
        SearchOptions(beam=plan["beam"], max_extra=MAX_EXTRA),
        runtime="auto",
        kind="plain",
        tag=TAG if back else "",
        reversed=back,
    )
    passage = Passage(
        model,
        survey([writing.sources]),
        writing.out,
        partial(make_pairs, job),
        job.facts(),
        Machines(plan["device"], _processes(writing, plan["processes"])),
    )
    counts = put_through(passage, Course(_seconds_before(writing.out) + seconds))
    Log(writing.made.folder).note(
        writing.use,
        text=writing.out.name,
        lines=counts.lines,
        pairs=counts.pairs,
        dropped=dict(counts.dropped),
        seconds=round(counts.seconds, 1),
    )


def _processes(writing: Writing, count: int) -> int:
    """As many of the processes as a direction has of the text, and one at least."""
    whole = 0
    for direction in DIRECTIONS:
        whole += replace(writing, direction=direction).sources.stat().st_size
    share = writing.sources.stat().st_size / max(1, whole)
    return max(1, round(count * share))


def _seconds_before(out: Path) -> float:
    """The seconds that attempts took which were killed; the limit of a passage counts them."""
    journal = out.with_name(f"{out.name}.journal")
    if not journal.exists():
        return 0.0
    seconds = 0.0
    for line in journal.read_text(encoding="utf-8").splitlines()[1:]:
        try:
            seconds = json.loads(line)["counts"]["seconds"]
        except (ValueError, KeyError):
            break
    return seconds
