"""Training text without its faults, as files: what training would use, and what it would drop and
why. Knows pairs that were judged; does not judge them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from dragoman.data.check_report import Report
from dragoman.errors import InputError
from dragoman.folder import files


class Judged(NamedTuple):
    """A normalised pair, where it stood, and why it is not used; the reason is empty if it is."""

    location: str
    reason: str
    source: str
    target: str


def write_clean(
    out: Path, languages: tuple[str, str], pairs: Iterable[Judged], report: Report
) -> None:
    """Write the pairs that are used to OUT.<source> and OUT.<target>, line by line.

    The others go to OUT.dropped.tsv: location, reason, source and target. The names are noted in
    the report. Files that exist already are never overwritten.
    """
    endings = [languages[0] or "source", languages[1] or "target", "dropped.tsv"]
    paths = [out.with_name(f"{out.name}.{ending}") for ending in endings]
    for path in paths:
        if path.exists():
            raise InputError(f"{path} exists already; name other files to write the clean text to")
    used = 0
    dropped = 0
    with ExitStack() as opened:
        outputs = []
        for path in paths:
            new = opened.enter_context(files.aside(path, replace=False))
            outputs.append(opened.enter_context(open(new, "w", encoding="utf-8", newline="\n")))
        sources, targets, others = outputs
        for pair in pairs:
            if pair.reason:
                others.write(f"{pair.location}\t{pair.reason}\t{pair.source}\t{pair.target}\n")
                dropped += 1
            else:
                sources.write(f"{pair.source}\n")
                targets.write(f"{pair.target}\n")
                used += 1
    report.notes.append(
        f"Wrote {used:,} clean pairs to {paths[0]} and {paths[1]}, "
        f"and {dropped:,} dropped ones to {paths[2]}."
    )
