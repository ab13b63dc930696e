"""The best of the pairs that a model wrote, as a model of the other direction judges them. Knows
scores and shares."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np

from dragoman.data.text_lines import read_lines
from dragoman.folder import files
from dragoman.improving.forced_scores import ForcedScorer
from dragoman.improving.machine_pairs import fingerprint
from dragoman.improving.source_texts import TextChunk, survey
from dragoman.improving.text_through_model import (
    Course,
    Machines,
    Passage,
    Place,
    Records,
    Work,
    kind_of,
    packed,
    put_through,
)


@dataclass(frozen=True)
class Judge:
    """A model of the other direction, and the share of pairs that it keeps."""

    reverse: Path
    keep: float
    machines: Machines


def keep_best(pairs: Path, out: Path, judge: Judge, course: Course) -> int:
    """Write to `out` the share of pairs whose sources the judge finds the likeliest, given their
    translations; return how many they are. Pairs for whose scores there was no time are left out.

    Beside `pairs`, NAME.scores.gz keeps the scores; called again, it continues where it was.
    """
    scores = pairs.with_name(f"{pairs.name}.scores.gz")
    facts = {"model": fingerprint(judge.reverse)}
    work = partial(_make_scores, judge.reverse, kind_of(scores))
    passage = Passage(judge.reverse, survey([pairs]), scores, work, facts, judge.machines)
    put_through(passage, course)
    values = np.array([float(line) for line in _lines(scores)])
    least = max(1, round(judge.keep * len(values)))
    best = np.sort(np.argsort(-values, kind="stable")[:least])
    if not out.exists():
        _write_chosen(pairs, out, best)
    return len(best)


def _make_scores(reverse: Path, kind: str, place: Place) -> Work:
    """What one process does with a chunk of pairs: a score for each line."""
    scorer = ForcedScorer(reverse, place.device)

    def work(chunk: TextChunk) -> Records:
        pairs = []
        for line in chunk.lines:
            source, _, target = line.partition("\t")
            pairs.append((target, source))
        lines = [f"{score:.4f}\n" for score in scorer.scores(pairs)]
        return Records(packed("".join(lines), kind), len(lines), len(lines))

    return work


def _write_chosen(pairs: Path, out: Path, rows: np.ndarray) -> None:
    chosen = set(rows.tolist())
    with files.aside(out) as new, gzip.open(new, "wt", 6, encoding="utf-8", newline="\n") as file:
        for row, line in zip(count(), _lines(pairs), strict=False):
            if row in chosen:
                file.write(line + "\n")


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file of ours; the last one ends like all others."""
    lines = read_lines(str(path), _unheard)
    return (line for line in lines if line)


def _unheard(kind: str, place: str, text: str) -> None:
    """We wrote the file ourselves."""
