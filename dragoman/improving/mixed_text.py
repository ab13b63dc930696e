"""Files of pairs from which a training learns: turned round, marked, sampled and put together.
Knows strings and files; no model.

A model of several directions is told by a tag before the source which language is wanted, where
the source alone does not tell: English that is to become German, in a model that makes Twi of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from dragoman.improving.gather_text import write_pairs
from dragoman.improving.improve_plan import GATHER
from dragoman.improving.improve_workshop import Pair, Workshop, read_tsv

BACK = "<bt>"  # before a source that a model has made


def tags(shop: Workshop) -> list[str]:
    """Every tag that the text of an improvement may need, each a piece of the vocabulary."""
    found = [BACK]
    for path in related_files(shop):
        for sides in _both_ways(path):
            tag = _direction_tag(sides, shop.languages)
            if tag and tag not in found:
                found.append(tag)
    return found


def both_directions(shop: Workshop, name: str) -> list[tuple[Path, float]]:
    """Our own text there and back, in the folder of a step."""
    mixed = []
    for number, (relative, weight) in enumerate(shop.journal.text()):
        path = shop.place(name) / f"both-{number}.tsv"
        if not path.exists():
            write_pairs(path, _there_and_back(shop.path(relative)))
        mixed.append((path, weight))
    return mixed


def turned(shop: Workshop, name: str) -> list[tuple[Path, float]]:
    """Our own text for the opposite direction."""
    mixed = []
    for number, (relative, weight) in enumerate(shop.journal.text()):
        path = shop.place(name) / f"turned-{number}.tsv"
        if not path.exists():
            write_pairs(path, _turned(read_tsv(shop.path(relative))))
        mixed.append((path, weight))
    return mixed


def own(shop: Workshop) -> list[tuple[Path, float]]:
    """Our own text in the direction that is to be improved."""
    return [(shop.path(relative), weight) for relative, weight in shop.journal.text()]


def related(shop: Workshop, name: str, most: int = 0) -> list[tuple[Path, float]]:
    """The text of related languages there and back, tagged; about `most` pairs of it, spread over
    the whole, or all of it with 0."""
    files = related_files(shop)
    total = max(1, shop.count("related"))
    every = max(1, total // most) if most else 1
    mixed = []
    for number, file in enumerate(files):
        path = shop.place(name) / f"related-{number}.tsv"
        if not path.exists():
            write_pairs(path, _tagged(file, shop.languages, every))
        mixed.append((path, 1.0))
    return mixed


def related_files(shop: Workshop) -> list[Path]:
    """What gathering has written of related languages."""
    return sorted(shop.place(GATHER).glob("related-*.tsv"))


def pairs_of(text: Iterable[tuple[Path, float]]) -> Iterator[Pair]:
    """All pairs of some files."""
    for path, _ in text:
        yield from read_tsv(path)


def _there_and_back(path: Path) -> Iterator[Pair]:
    yield from read_tsv(path)
    yield from _turned(read_tsv(path))


def _turned(pairs: Iterable[Pair]) -> Iterator[Pair]:
    for source, target in pairs:
        yield target, source


def _tagged(file: Path, ours: tuple[str, str], every: int) -> Iterator[Pair]:
    there, back = _both_ways(file)
    for sides, pairs in ((there, read_tsv(file)), (back, _turned(read_tsv(file)))):
        tag = _direction_tag(sides, ours)
        for source, target in islice(pairs, 0, None, every):
            yield (f"{tag} {source}" if tag else source), target


def _both_ways(file: Path) -> tuple[tuple[str, str], tuple[str, str]]:
    """The languages of a file that gathering has written, and the same turned round."""
    source, _, target = file.stem.split(".")[-1].partition("-")
    return (source, target), (target, source)


def _direction_tag(sides: tuple[str, str], ours: tuple[str, str]) -> str:
    """What stands before a source in this direction: a tag for a source of one of our languages,
    unless our own text has the same direction."""
    if sides in (ours, ours[::-1]) or sides[0] not in ours:
        return ""
    return f"<to-{sides[1]}>"
