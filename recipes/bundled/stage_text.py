"""Which text each stage learns from or translates. Knows the kinds of text, their weights in the
plan and their languages; knows no model."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bundled.packed_readings import Reading, column
from bundled.workshop import Direction, Workshop
from packed_text import HELD_OUT, MONO, PARTS, PEOPLE, Packed, portions

VALID_SET = "newstest2013"  # during training
PATIENCE = 200.0  # seconds that parts of the text are waited for


@dataclass(frozen=True)
class Corpus:
    """A kind of text, and how often it is read beside the others."""

    name: str
    weight: float
    readings: Sequence[Reading]


def teacher_text(shop: Workshop, direction: Direction) -> list[Corpus]:
    """People's text and what was translated back."""
    back = Corpus("back", shop.plan["back"], _written(shop, "back", direction))
    return [*_people(shop, direction, "teacher"), back]


def student_text(shop: Workshop, direction: Direction) -> list[Corpus]:
    """The teacher's translations, back-translations and such text of people as is short and clean.
    All of people's text if there are no translations. What the teacher of the other direction wrote
    for its own student is read as back-translations: they are better than those of before."""
    plan = shop.plan
    own = _written(shop, "own", direction)
    back = _written(shop, "own", direction, is_back=True) or _written(shop, "back", direction)
    return [
        Corpus("own", plan["own_weight"], own),
        Corpus("back", plan["student_back"], back),
        *_people(shop, direction, "student" if own else "teacher"),
    ]


def valid_text(shop: Workshop, direction: Direction) -> Reading:
    """The validation text during training."""
    files = [one for one in shop.files(HELD_OUT) if one.kind == VALID_SET]
    return Reading(files[0], direction)


def write_back_sources(shop: Workshop, direction: Direction) -> None:
    """Write the lines that are translated back: the text of the target language alone, once all of
    it is there."""
    out = shop.made.sources("back", direction)
    if not out.exists():
        wait_for(shop, MONO)
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


def wait_for(shop: Workshop, use: str) -> None:
    """Wait until all parts with packed text of a use are there, for some minutes at most."""
    parts = shop.packed / "part-1" / PARTS
    if not parts.exists():
        return
    wanted = json.loads(parts.read_text()).get(use, 0)
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


def _people(shop: Workshop, direction: Direction, learner: str) -> list[Corpus]:
    """People's text of each kind, with its weight for a learner; a kind without files has no
    readings."""
    weights = shop.plan["people"][learner]
    people = shop.files(PEOPLE)
    corpora = []
    for kind, weight in weights.items():
        names = (kind, f"{kind}_{direction.name}")
        readings = [Reading(one, direction) for one in people if one.kind in names]
        corpora.append(Corpus(kind, weight, readings))
    return corpora


def _written(
    shop: Workshop, use: str, direction: Direction, is_back: bool = False
) -> list[Reading]:
    """Text of which a model wrote one side. `is_back`: that of the other direction, reversed."""
    path = shop.made.text(use, direction.other if is_back else direction)
    if not path.exists():
        return []
    return [Reading(one, direction, is_back) for one in portions(path)]


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
