"""English-German text as tokens in small compressed files: made on a CPU, so that the machine which
trains has nothing left to do but to read them.

    python recipes/prepare_en_de.py corpora/en-de text
    python recipes/interface_text.py catalogues text/train/interface.tsv
    python recipes/packed_text.py text packed --plan recipes/bundled-models.toml

Reads train/NAME.tsv, mono/NAME.LANGUAGE and valid/NAME.tsv, and writes USE.NAME-NN.LANGUAGE.xz into
packed/part-1, part-2 and so on, none of which is larger than --most megabytes (the first: --first,
since other things may have to travel with it). They have the vocabulary, the validation text, the
text of one language alone and people's text in the order of the plan, one after the other.

A file holds the tokens of 50,000 lines, two bytes each, with an end after each line. Pairs whose
tokens do not spell their text again, or which are too long, are left out. For some pairs there is
also a copy in which names and numbers are copy tokens, so that a teacher learns to carry them over.
What is there already is not made again.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.config import load_toml
from dragoman.data.augment import Augmenter
from dragoman.data.tokenise import Words
from dragoman.folder import layout
from dragoman.tasks.device_shares import cores
from dragoman.text.tokenizer import EOS, Tokenizer, TokenizerOptions, learn

LANGUAGES = ("en", "de")
PEOPLE = "people"
MONO = "mono"
HELD_OUT = "valid"
PARTS = "parts.json"  # in the first part: how many parts there are up to the last text of each use
LONGEST = 128  # tokens
LINES = 50_000  # of a file
MOST_OF_A_KIND = 60_000  # lines from which the vocabulary is learnt
COPIES = 0.12  # share of people's pairs of which there is a copy with copy tokens
# Numbers of two bytes: the low and the high one have statistics of their own.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 3, "lp": 1, "pb": 1}]

Tokens = NDArray[np.uint16]

_words: Words
_tokenizer: Tokenizer


@dataclass(frozen=True)
class Portion:
    """Some lines of a text file."""

    path: Path
    start: int  # the byte at which the first line begins
    count: int

    def lines(self) -> Iterator[str]:
        with self.path.open("rb") as file:
            file.seek(self.start)
            for _ in range(self.count):
                yield file.readline().decode("utf-8", "replace").rstrip("\n")


@dataclass(frozen=True)
class Packing:
    """What one process makes: a file for each language from some lines."""

    portion: Portion
    outs: Mapping[str, Path]  # by the language, in the order of the columns
    copies: str = ""  # the direction for which names become copy tokens


@dataclass(frozen=True)
class Packed:
    """The files of some lines."""

    use: str  # PEOPLE, MONO or HELD_OUT
    name: str  # such as europarl-03
    files: Mapping[str, Path]  # by the language

    @property
    def kind(self) -> str:
        return self.name.rsplit("-", 1)[0]

    @property
    def size(self) -> int:
        return sum(file.stat().st_size for file in self.files.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument("packed", type=Path)
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--first", type=float, default=50.0, help="megabytes of the first part")
    parser.add_argument("--most", type=float, default=58.0, help="megabytes of another part")
    given = parser.parse_args()
    plan = load_toml(given.plan)
    made = given.packed / "all"
    made.mkdir(parents=True, exist_ok=True)
    model = made / layout.TOKENIZER
    if not model.exists():
        model.write_bytes(vocabulary(given.text, plan))
    work = list(packings(given.text, made, plan))
    with get_context("spawn").Pool(cores(), begin_tokenising, (str(model),)) as pool:
        waiting = [one for one in work if not all(out.exists() for out in one.outs.values())]
        for number, (name, pairs) in enumerate(pool.imap(pack, waiting), 1):
            print(f"{number} of {len(waiting)}: {name}, {pairs:,} lines", flush=True)
    parts = divided(made, plan, given.first * 1e6, given.most * 1e6)
    link(given.packed, model, parts)


def vocabulary(text: Path, plan: Mapping[str, Any]) -> bytes:
    """That of the model which the plan names, or one that is learnt from about as much of each kind
    of text."""
    if plan.get("vocabulary"):
        return (Path(plan["vocabulary"]) / layout.TOKENIZER).read_bytes()
    draw = random.Random(1)
    sides: dict[str, list[str]] = {language: [] for language in LANGUAGES}
    for name in plan["people"]["teacher"]:
        path = text / "train" / f"{name}.tsv"
        rows = sampled(path, MOST_OF_A_KIND, draw) if path.exists() else []
        for english, german in (row.split("\t") for row in rows):
            sides["en"].append(english)
            sides["de"].append(german)
    for path in sorted((text / "mono").iterdir()):
        sides[path.suffix[1:]] += sampled(path, MOST_OF_A_KIND, draw)
    options = TokenizerOptions(**plan["teacher"]["tokenizer"])
    tokenizer, _ = learn(options, sides["en"], sides["de"])
    return tokenizer.serialised()[0]


def sampled(path: Path, count: int, draw: random.Random) -> list[str]:
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return draw.sample(lines, min(count, len(lines)))


def packings(text: Path, out: Path, plan: Mapping[str, Any]) -> Iterator[Packing]:
    """All that is to be made."""
    for name in plan["people"]["teacher"]:
        yield from of_pairs(text / "train" / f"{name}.tsv", out, PEOPLE, name)
    for path in sorted((text / "mono").iterdir()):
        language = path.suffix[1:]
        for number, portion in enumerate(portions(path)):
            name = f"{MONO}.{path.stem}_{language}-{number:02}"
            yield Packing(portion, {language: out / f"{name}.{language}.xz"})
    for path in sorted((text / "valid").glob("*.tsv")):
        yield from of_pairs(path, out, HELD_OUT, path.stem)
    for direction in ("en-de", "de-en"):
        chosen = out / f"copies.{direction}.tsv"
        if not chosen.exists():
            write_chosen(text, plan, chosen, direction)
        yield from of_pairs(chosen, out, PEOPLE, f"copies_{direction}", direction)


def of_pairs(path: Path, out: Path, use: str, name: str, copies: str = "") -> Iterator[Packing]:
    if not path.exists():
        return
    for number, portion in enumerate(portions(path)):
        stem = f"{use}.{name}-{number:02}"
        outs = {language: out / f"{stem}.{language}.xz" for language in LANGUAGES}
        yield Packing(portion, outs, copies)


def write_chosen(text: Path, plan: Mapping[str, Any], out: Path, direction: str) -> None:
    """The pairs of which there is to be a copy with copy tokens."""
    draw = random.Random(direction)
    chosen: list[str] = []
    for name in plan["people"]["teacher"]:
        path = text / "train" / f"{name}.tsv"
        if path.exists():
            with path.open(encoding="utf-8", newline="\n") as rows:
                chosen += [row for row in rows if draw.random() < COPIES]
    draw.shuffle(chosen)
    part = out.with_suffix(".part")
    part.write_text("".join(chosen), encoding="utf-8")
    part.replace(out)


def portions(path: Path, lines: int = LINES) -> Iterator[Portion]:
    """A file of lines, some at a time."""
    start = 0
    count = 0
    end = 0
    with path.open("rb") as file:
        for line in file:
            end += len(line)
            count += 1
            if count == lines:
                yield Portion(path, start, count)
                start = end
                count = 0
    if count:
        yield Portion(path, start, count)


def begin_tokenising(model: str) -> None:
    """What a process does before its first lines."""
    global _tokenizer, _words
    _tokenizer = Tokenizer(Path(model).read_bytes())
    _words = Words(_tokenizer, "source", 2)


def tokenizer() -> Tokenizer:
    """That of this process."""
    return _tokenizer


def words() -> Words:
    """Tokens by the word, as this process has met them."""
    return _words


def pack(packing: Packing) -> tuple[str, int]:
    """Write the tokens of some lines; return their name and how many lines were kept."""
    change = Change(packing.copies) if packing.copies else None
    rows = []
    for line in packing.portion.lines():
        columns = tuple(line.split("\t"))
        if len(columns) != len(packing.outs) or not all(columns):
            continue
        if change is not None:
            columns = change.of(columns)
        if columns:
            rows.append(columns)
    sides = [tokenised(list(side)) for side in zip(*rows, strict=True)] if rows else []
    kept = [row for row in zip(*sides, strict=True) if all(row)]
    for number, out in enumerate(packing.outs.values()):
        tokens = b"".join(row[number] for row in kept)
        part = out.with_suffix(".part")
        part.write_bytes(lzma.compress(tokens, filters=FILTERS))
        part.replace(out)
    first = next(iter(packing.outs.values()))
    return first.name.rsplit(".", 2)[0], len(kept)


class Change:
    """Names and numbers of a pair become copy tokens, in the order of the source."""

    def __init__(self, direction: str) -> None:
        source, target = direction.split("-")
        self._order = 1 if source == LANGUAGES[0] else -1
        self._augmenter = Augmenter(source, target, len(_tokenizer.copies))
        self._draw = random.Random(direction)

    def of(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """The changed columns; none where nothing could be changed."""
        source, target = columns[:: self._order]
        kind = "whole" if self._draw.random() < 0.1 else "copies"
        changed = self._augmenter.change(kind, (source, target), self._draw)
        return () if changed == (source, target) else changed[:: self._order]


def tokenised(lines: list[str]) -> list[bytes]:
    """The tokens of each line; nothing for a line that is too long, or that they do not spell."""
    found = [_words.line(line) for line in lines]
    ids = [np.frombuffer(one, "<u2").tolist() for one in found]
    spelt = _tokenizer.decode([one[:-1] for one in ids])
    return [
        one if text == line and len(one) <= 2 * LONGEST else b""
        for one, text, line in zip(found, spelt, lines, strict=True)
    ]


def divided(made: Path, plan: Mapping[str, Any], first: float, most: float) -> list[list[Packed]]:
    """What goes into each part: the text of one language alone comes first, since it is translated
    back while the rest is on its way."""
    held_out = packed_files([made], HELD_OUT)
    people = packed_files([made], PEOPLE)
    places = {kind: place for place, kind in enumerate(plan["people"]["teacher"])}
    people.sort(key=lambda one: places.get(one.kind, -1))  # stable
    parts: list[list[Packed]] = [held_out]
    left = first - (made / layout.TOKENIZER).stat().st_size
    left -= sum(one.size for one in held_out)
    for one in [*packed_files([made], MONO), *people]:
        if one.size > left:
            parts.append([])
            left = most
        parts[-1].append(one)
        left -= one.size
    return parts


def link(packed: Path, model: Path, parts: Sequence[Sequence[Packed]]) -> None:
    """The parts as folders of links to what was made."""
    for number, part in enumerate(parts, 1):
        folder = packed / f"part-{number}"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for one in part:
            for file in one.files.values():
                (folder / file.name).hardlink_to(file)
        if number == 1:
            (folder / layout.TOKENIZER).hardlink_to(model)
            (folder / PARTS).write_text(json.dumps(last_parts(parts)), encoding="utf-8")
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{folder}: {len(part)} texts, {size / 1e6:.1f} MB", flush=True)


def last_parts(parts: Sequence[Sequence[Packed]]) -> dict[str, int]:
    """The number of the last part that has text of each use."""
    last = {}
    for number, part in enumerate(parts, 1):
        for one in part:
            last[one.use] = number
    return last


def packed_files(folders: Iterable[Path], use: str) -> list[Packed]:
    """The files of a use that are whole: those of all of their languages are there."""
    found: dict[str, dict[str, Path]] = {}
    for folder in folders:
        for path in sorted(folder.glob(f"{use}.*.xz")):
            _, name, language, _ = path.name.split(".")
            found.setdefault(name, {})[language] = path
    wanted = 1 if use == MONO else 2
    whole = [name for name in sorted(found) if len(found[name]) == wanted]
    return [Packed(use, name, found[name]) for name in whole]


def tokens_of(file: Path) -> Tokens:
    """The tokens of a file, with the ends."""
    return np.frombuffer(lzma.decompress(file.read_bytes()), "<u2")


def lengths_of(tokens: Tokens) -> NDArray[Any]:
    """How many tokens each line has, its end included."""
    ends = np.flatnonzero(tokens == EOS) + 1
    return np.diff(ends, prepend=0).astype("<u4")


def lines_of(tokenizer: Tokenizer, tokens: Tokens, lengths: NDArray[Any]) -> list[str]:
    """The text that tokens spell."""
    rows = np.split(tokens, np.cumsum(lengths)[:-1])
    return tokenizer.decode([row[:-1].tolist() for row in rows])


if __name__ == "__main__":
    main()
