"""Which text each stage learns from or translates. Knows the kinds of text, their weights in the
plan and their languages; knows no model."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bundled.packed_readings import Reading, column
from bundled.workshop import DIRECTIONS, INTO, Direction, Workshop
from packed_text import HELD_OUT, MONO, PARTS, PEOPLE, Packed, portions

VALID_SET = "newstest2013"  # during training
PATIENCE = 120.0  # seconds that parts of the text are waited for


@dataclass(frozen=True)
class Corpus:
    """A kind of text, and how often it is read beside the others."""

    name: str
    weight: float
    readings: Sequence[Reading]


def first_teacher_text(shop: Workshop) -> list[Corpus]:
    """People's text in both directions."""
    corpora = []
    weights = shop.plan["teacher"]
    for direction in DIRECTIONS:
        tag = INTO[direction.target]
        corpora += _people(shop, direction, weights, tag)
    return corpora


def second_teacher_text(shop: Workshop) -> list[Corpus]:
    """People's text and what was translated back, in both directions."""
    corpora = first_teacher_text(shop)
    for direction in DIRECTIONS:
        tag = INTO[direction.target]
        back = Corpus(
            f"back {direction.name}",
            shop.plan["back"],
            _written(shop, "back", direction, tag),
        )
        corpora.append(back)
    return corpora


def student_text(shop: Workshop, direction: Direction) -> list[Corpus]:
    """The teacher's translations, back-translations and such text of people as is short and clean.
    All of people's text if there are no translations."""
    plan = shop.plan
    own = Corpus(
        "own",
        plan["own_weight"],
        _written(shop, "own", direction),
    )
    back = Corpus(
        "back",
        plan["student_back"],
        _written(shop, "back", direction),
    )
    kinds = "people" if own.readings else "teacher"
    people = _people(shop, direction, plan[kinds])
    return [own, back, *people]


def valid_text(shop: Workshop, directions: Iterable[Direction], tagged: bool) -> list[Reading]:
    """The validation text of each direction."""
    files = [one for one in shop.files(HELD_OUT) if one.kind == VALID_SET]
    readings = []
    for direction in directions:
        tag = INTO[direction.target] if tagged else ""
        readings.append(Reading(files[0], direction, tag))
    return readings


def write_back_sources(shop: Workshop, direction: Direction) -> None:
    """Write the lines that are translated back: the text of the target language alone, once all of
    its parts are there."""
    out = shop.made.sources("back", direction)
    if not out.exists():
        wait_for_parts(shop)
        files = _mono(shop, direction.target)
        write_lines(out, _shuffled(shop, files, direction.target))


def write_own_sources(shop: Workshop, direction: Direction) -> None:
    """Write the lines that the teacher translates for its student: a share of the files of each
    kind, and the text of the source language alone."""
    out = shop.made.sources("own", direction)
    if out.exists():
        return
    shares = shop.plan["own"]
    draw = random.Random(1)
    files = []
    for file in shop.files(PEOPLE):
        share = shares.get(file.kind, 0)
        if draw.random() < share:
            files.append(file)
    files += _mono(shop, direction.source)
    write_lines(out, _shuffled(shop, files, direction.source))


def wait_for_parts(shop: Workshop) -> None:
    """Wait until all parts of the packed text are there, at most two minutes."""
    parts = shop.packed / "part-1" / PARTS
    if not parts.exists():
        return
    wanted = json.loads(parts.read_text())
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        there = list(shop.packed.glob("part-*"))
        if len(there) >= wanted:
            return
        time.sleep(1)


def write_lines(out: Path, lines: Sequence[str]) -> None:
    """Write lines under another name first, so that the file is complete once it exists."""
    part = out.with_suffix(".part")
    content = "".join(f"{line}\n" for line in lines)
    part.write_text(content, encoding="utf-8")
    part.replace(out)


def _people(
    shop: Workshop, direction: Direction, weights: Mapping[str, float], tag: str = ""
) -> list[Corpus]:
    """People's text of each kind; a kind without files has no readings."""
    people = shop.files(PEOPLE)
    corpora = []
    for kind, weight in weights.items():
        names = (kind, f"{kind}_{direction.name}")
        files = [one for one in people if one.kind in names]
        readings = [Reading(one, direction, tag) for one in files]
        corpus = Corpus(f"{kind} {direction.name}", weight, readings)
        corpora.append(corpus)
    return corpora


def _written(shop: Workshop, use: str, direction: Direction, tag: str = "") -> list[Reading]:
    """Text of which a model wrote one side: of this run, or else of another one."""
    path = shop.made.text(use, direction)
    if path.exists():
        return [Reading(one, direction, tag) for one in portions(path)]
    files = shop.files(f"{use}_{direction.name}")
    return [Reading(one, direction, tag) for one in files]


def _mono(shop: Workshop, language: str) -> list[Packed]:
    """The packed text of one language alone."""
    end = f"_{language}"
    files = shop.files(MONO)
    return [one for one in files if one.kind.endswith(end)]


def _shuffled(shop: Workshop, files: Sequence[Packed], language: str) -> list[str]:
    """The different lines of some files, in a random order that is always the same."""
    paths = [one.files[language] for one in files]
    lines: dict[str, None] = {}
    for some in shop.pool.imap(column, paths):
        lines.update(dict.fromkeys(some))
    shuffled = list(lines)
    random.Random(1).shuffle(shuffled)
    return shuffled
