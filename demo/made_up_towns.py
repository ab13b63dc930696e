"""Makes towns up and writes text to text about them for recipes/facts.toml: questions with their
answers, summaries, and records as JSON.

    python demo/made_up_towns.py FOLDER

writes for each task (ask, summarise, record) FOLDER/TASK.train.src and .tgt, the same for valid,
and FOLDER/test.src and test.tgt, which have all tasks with their prefixes; always the same. Names
of towns and people are made of syllables. No name of the test or validation text stands in the
training text, so that a model cannot know them by heart: it has to find and copy them.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path


def _words(text: str) -> list[str]:
    return text.split()


FIRST = _words("Al Bren Cor Dal Es Fen Gar Hol Il Kal Lor Mar Nor Os Pel Ren Sel Tor Ul Var")
MIDDLE = _words("a e i o u an el in or un")
LAST = _words("bach den dorf field ford gate ham holm land mere mont port stead stow ton wick")
GIVEN = _words("Ada Bea Cleo Dora Emil Finn Greta Hugo Ida Jonas Klara Leo Mira Nils Olga Paul")
REGIONS = _words("north south east west")
GOODS = _words("barley hops flax rye wine honey salt wool glass tin paper silk")
SCHEMA = {
    "type": "object",
    "properties": {
        "town": {"type": "string", "maxLength": 20},
        "region": {"type": "string", "enum": REGIONS},
        "year": {"type": "integer"},
        "founder": {"type": "string", "maxLength": 30},
        "sells": {"type": "string", "enum": GOODS},
    },
}


@dataclass(frozen=True)
class Town:
    """One town and what is known of it."""

    name: str
    region: str
    founder: str
    year: int
    goods: str


Pair = tuple[str, str]


def names(held_out: bool) -> list[str]:
    """Every name of the training text, or every name that is kept out of it: one of four."""
    found = []
    for first in FIRST:
        for middle in MIDDLE:
            for last in LAST:
                number = FIRST.index(first) + 3 * MIDDLE.index(middle) + LAST.index(last)
                if (number % 4 == 0) == held_out:
                    found.append(first + middle + last)
    return found


def town(draw: random.Random, known: list[str]) -> Town:
    family = draw.choice(known)
    return Town(
        name=draw.choice(known),
        region=draw.choice(REGIONS),
        founder=f"{draw.choice(GIVEN)} {family}",
        year=draw.randrange(1100, 1900),
        goods=draw.choice(GOODS),
    )


def told(one: Town, draw: random.Random) -> str:
    """A few sentences about a town, in any order behind the first."""
    sentences = [
        f"It was founded by {one.founder} in {one.year}.",
        draw.choice([f"Its people sell {one.goods}.", f"It is known for its {one.goods}."]),
    ]
    draw.shuffle(sentences)
    first = draw.choice(
        [f"{one.name} lies in the {one.region}.", f"In the {one.region} lies {one.name}."]
    )
    return " ".join([first, *sentences])


def ask(draw: random.Random, known: list[str]) -> Pair:
    """A question about a town."""
    one = town(draw, known)
    questions = {
        f"Who founded {one.name}?": one.founder,
        f"When was {one.name} founded?": str(one.year),
        f"Where does {one.name} lie?": f"in the {one.region}",
        f"What do the people of {one.name} sell?": one.goods,
    }
    question = draw.choice(list(questions))
    return f"{question} context: {told(one, draw)}", questions[question]


def summarise(draw: random.Random, known: list[str]) -> Pair:
    one = town(draw, known)
    summary = f"{one.name}, in the {one.region} since {one.year}, sells {one.goods}."
    return told(one, draw), summary


def record(draw: random.Random, known: list[str]) -> Pair:
    one = town(draw, known)
    values = {
        "town": one.name,
        "region": one.region,
        "year": one.year,
        "founder": one.founder,
        "sells": one.goods,
    }
    return told(one, draw), json.dumps(values)


TASKS = {"ask": ask, "summarise": summarise, "record": record}
PREFIXES = {"ask": "question:", "summarise": "summarise:", "record": "record:"}


def write(file: Path, pairs: list[Pair]) -> None:
    for ending, lines in zip(("src", "tgt"), zip(*pairs, strict=True), strict=True):
        text = "".join(f"{line}\n" for line in lines)
        file.with_suffix(f".{ending}").write_text(text, encoding="utf-8")


def main(folder: Path, count: int = 20_000) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    test: list[Pair] = []
    known = names(held_out=False)
    unknown = names(held_out=True)
    for seed, (task, make) in enumerate(TASKS.items()):
        draw = random.Random(seed)
        write(folder / f"{task}.train.x", [make(draw, known) for _ in range(count)])
        write(folder / f"{task}.valid.x", [make(draw, unknown) for _ in range(100)])
        for _ in range(300):
            source, target = make(draw, unknown)
            test.append((f"{PREFIXES[task]} {source}", target))
    write(folder / "test.x", test)
    (folder / "record.json").write_text(json.dumps(SCHEMA, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
