"""How many wrong translations the flags find: 300 labelled lines, half of them right.

    python benchmarks/flag_lines.py             # what the flags find
    python benchmarks/flag_lines.py --write     # make flag_set/lines.tsv again

flag_set/right.tsv has right translations, flag_set/wrong.tsv wrong ones, both written by hand, with
lines that look wrong and are not. The other wrong lines are made of the right ones, always the
same: words and phrases said again, sources copied in whole or in part, clauses left out, and
characters broken in the ways in which encodings and tokenisers break them. Some of them, such as
letters in disorder, no flag can see without knowing the language. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from dragoman.text.flags import SERIOUS, flags

FOLDER = Path(__file__).parent / "flag_set"
COUNTS = {"repetition": 38, "copied": 37, "omission": 38, "garbled": 37}
RIGHT = 150
LONG = 8  # words of a line that something can be done to
# Letters that look like Latin ones.
ALIKE = str.maketrans("aeopcxAEOPCXHKMT", "аеорсхАЕОРСХНКМТ")


class Line(NamedTuple):
    """A translation and what is wrong with it; nothing where the label is empty."""

    label: str
    source: str
    target: str


Spoil = Callable[[random.Random, str, str], str]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="make flag_set/lines.tsv again")
    parser.add_argument("--missed", action="store_true", help="print what the flags get wrong")
    given = parser.parse_args()
    if given.write:
        text = "".join("\t".join(line) + "\n" for line in made())
        (FOLDER / "lines.tsv").write_text(text, encoding="utf-8")
    lines = read("lines.tsv")
    report = scored(lines)
    if given.missed:
        for line in lines:
            if bool(line.label) != bool(found(line)):
                print("\t".join([*line, *found(line)]))
    for label in COUNTS:
        print(f"{label}: {report[label]:.0%} found")
    print(f"precision {report['precision']:.1%}")
    print(json.dumps(report))


def found(line: Line) -> set[str]:
    """The serious flags of a line."""
    return {*flags(line.source, line.target)} & SERIOUS


def scored(lines: list[Line]) -> dict[str, float]:
    """The share of each kind that has a serious flag, whichever, and the share of the flagged lines
    that are wrong."""
    flagged = [line for line in lines if found(line)]
    wrong = [line for line in flagged if line.label]
    report = {"precision": len(wrong) / max(1, len(flagged))}
    for label in COUNTS:
        every = [line for line in lines if line.label == label]
        report[label] = sum(line in wrong for line in every) / len(every)
    return report


def read(name: str) -> list[Line]:
    rows = [line.split("\t") for line in (FOLDER / name).read_text("utf-8").splitlines()]
    return [Line(*row) for row in rows]


def made() -> list[Line]:
    """All lines: the right ones in both directions, the wrong ones by hand, and made ones."""
    rows = [line.split("\t") for line in (FOLDER / "right.tsv").read_text("utf-8").splitlines()]
    pairs = [(row[0], row[1]) for row in rows]
    both_ways = [*pairs, *[(target, source) for source, target in pairs]]
    lines = [Line("", *pair) for pair in both_ways[:RIGHT]]
    by_hand = read("wrong.tsv")
    draw = random.Random(1)
    long = [pair for pair in both_ways if len(pair[1].split()) >= LONG]
    for label, count in COUNTS.items():
        own = [line for line in by_hand if line.label == label]
        lines += own
        ways = SPOILT[label]
        for number in range(count - len(own)):
            source, target = draw.choice(long)
            lines.append(Line(label, source, ways[number % len(ways)](draw, source, target)))
    return lines


def _end_again(draw: random.Random, source: str, target: str) -> str:
    words = target.rstrip(".!?").split()
    phrase = words[-draw.randint(1, 3) :]
    return " ".join(words + phrase * draw.randint(2, 9)) + "."


def _word_again(draw: random.Random, source: str, target: str) -> str:
    words = target.split()
    place = draw.randrange(1, len(words) - 1)
    return " ".join(words[:place] + [words[place]] * draw.randint(3, 6) + words[place + 1 :])


def _phrase_twice(draw: random.Random, source: str, target: str) -> str:
    words = target.split()
    size = draw.randint(3, 4)
    place = draw.randrange(0, len(words) - size)
    behind = place + size
    return " ".join(words[:behind] + words[place:behind] + words[behind:])


def _all_twice(draw: random.Random, source: str, target: str) -> str:
    return f"{target} {target}"


def _stutter(draw: random.Random, source: str, target: str) -> str:
    words = target.split()
    place = max(range(len(words)), key=lambda index: len(words[index]))
    words[place] = words[place][:3] * draw.randint(5, 9)
    return " ".join(words)


def _copy(draw: random.Random, source: str, target: str) -> str:
    return source


def _copy_behind(draw: random.Random, source: str, target: str) -> str:
    there = target.split()
    here = source.split()
    return " ".join(there[: len(there) // 2] + here[len(here) // 2 :])


def _copy_before(draw: random.Random, source: str, target: str) -> str:
    there = target.split()
    here = source.split()
    return " ".join(here[: len(here) * 2 // 3] + there[len(there) * 2 // 3 :])


def _copy_but_some(draw: random.Random, source: str, target: str) -> str:
    words = source.split()
    others = target.split()
    for place in draw.sample(range(len(words)), 2):
        words[place] = draw.choice(others)
    return " ".join(words)


def _first_part(draw: random.Random, source: str, target: str) -> str:
    words = target.split()
    return " ".join(words[: max(2, len(words) * 2 // 5)]).rstrip(",;") + "."


def _clause(draw: random.Random, source: str, target: str) -> str:
    first = re.split(r"[,;:]| und | and | die | that ", target)[0]
    words = first.split()
    return " ".join(words[: max(2, min(len(words), len(target.split()) // 2))]) + "."


def _without_middle(draw: random.Random, source: str, target: str) -> str:
    words = target.split()
    quarter = len(words) // 4
    return " ".join(words[:quarter] + words[-quarter:])


def _without_some(draw: random.Random, source: str, target: str) -> str:
    words = target.split()
    return " ".join(words[: -(len(words) // 3)]).rstrip(",;") + "."


def _twice_encoded(draw: random.Random, source: str, target: str) -> str:
    accented = re.sub("[aou](?=[lnrst])", lambda match: "äöü"["aou".index(match[0])], target)
    return accented.encode("utf-8").decode("latin-1")


def _lost_bytes(draw: random.Random, source: str, target: str) -> str:
    letters = list(target)
    for place in draw.sample(range(len(letters)), len(letters) // 8):
        letters[place] = "\ufffd"
    return "".join(letters)


def _pieces(draw: random.Random, source: str, target: str) -> str:
    mark = draw.choice(["▁", "@@ ", " ##", "<unk> "])
    words = target.split()
    return " ".join(word[:3] + mark + word[3:] if len(word) > 4 else word for word in words)


def _torn(draw: random.Random, source: str, target: str) -> str:
    words = target.split()
    return " ".join([*words[:3], *[letter for word in words[3:] for letter in word]])


def _other_letters(draw: random.Random, source: str, target: str) -> str:
    words = target.split()
    return " ".join(word.translate(ALIKE) if len(word) > 3 else word for word in words)


def _symbols(draw: random.Random, source: str, target: str) -> str:
    return "".join(draw.choice("#$%&*+=~^|{}") if draw.random() < 0.4 else c for c in target)


def _shuffled(draw: random.Random, source: str, target: str) -> str:
    return " ".join("".join(draw.sample(word, len(word))) for word in target.split())


SPOILT: dict[str, list[Spoil]] = {
    "repetition": [_end_again, _word_again, _phrase_twice, _all_twice, _stutter],
    "copied": [_copy, _copy_behind, _copy_before, _copy_but_some],
    "omission": [_first_part, _clause, _without_middle, _without_some],
    "garbled": [_twice_encoded, _lost_bytes, _pieces, _torn, _other_letters, _symbols, _shuffled],
}


if __name__ == "__main__":
    main()
