"""The text of an improvement, read once: checked, normalised, and kept apart from the valid and
test sets on both sides. Knows files and strings; no model.

A sentence of the valid or test set that also stands in the training text, in text of one language
or in that of related languages, on either side, is dropped there and counted: a gain on text that
was trained on would prove nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.data.check import Screen
from dragoman.data.check_report import Report
from dragoman.data.corpus import Corpus, corpora, languages, read_pairs
from dragoman.data.data_options import DataOptions
from dragoman.data.duplicates import key
from dragoman.data.fates import HELD_OUT
from dragoman.data.text_lines import read_lines
from dragoman.errors import InputError
from dragoman.folder.files import aside
from dragoman.text.normalise import normalise

Pair = tuple[str, str]
FEWEST_VALID = 50  # pairs, below which hardly any gain could be proved
_HELD_OUT = 1000


@dataclass
class Known:
    """Which sentences are to be kept apart, of either language, and how many were met."""

    sentences: set[bytes] = field(default_factory=set)
    met: int = 0

    def add(self, pairs: Sequence[Pair]) -> None:
        """Keep both sides of these pairs apart from now on."""
        for pair in pairs:
            self.sentences.update(_key(side) for side in pair if side)

    def has(self, *sides: str) -> bool:
        """Whether a line, or either side of a pair, is to be kept apart; counts those that are."""
        found = any(_key(side) in self.sentences for side in sides)
        self.met += found
        return found


def read_set(files: Sequence[str], sides: tuple[str, str]) -> list[Pair]:
    """The pairs of a valid or test set, normalised; of a test set, the source may stand alone."""
    pairs: list[Pair] = []
    for corpus in corpora(files, lone_source=True):
        lone = len(corpus.files) == 1 and corpus.kind not in (".tsv", ".tmx", ".jsonl")
        for source, target in read_pairs(corpus, *sides, Report().add):
            pairs.append((normalise(source or ""), "" if lone else normalise(target or "")))
    return pairs


def check_valid(pairs: Sequence[Pair], named: str) -> None:
    """Refuse a valid set on which nothing could be proved."""
    if pairs and not any(target for _, target in pairs):
        raise InputError(
            f"{named} has one language alone; name both files of the valid set, such as --valid "
            "dev.en dev.tw"
        )
    if any(not source or not target for source, target in pairs):
        raise InputError(f"{named} has empty lines; a valid set needs both sides of every pair")
    if len(pairs) < FEWEST_VALID:
        raise InputError(
            f"{named} has only {_counted(len(pairs), 'pair')}, too few to prove a gain; "
            f"give at least {FEWEST_VALID} with --valid, better 1,000"
        )


def apart_from(test: Sequence[Pair], valid: Sequence[Pair], named: str) -> list[Pair]:
    """The valid pairs without those that the test set has too: what is chosen on a sentence must
    not be measured on it."""
    known = Known()
    known.add(test)
    left = [pair for pair in valid if not known.has(*pair)]
    if len(left) < FEWEST_VALID:
        raise InputError(
            f"{known.met:,} of the {len(valid):,} pairs of {named} are in the test set too, which "
            "leaves too few to prove a gain; name another --valid or another --test"
        )
    return left


def write_pairs(path: Path, pairs: Iterator[Pair] | Sequence[Pair]) -> int:
    """Write a pair a line, all at once; returns how many."""
    count = 0
    with aside(path) as new, open(new, "w", encoding="utf-8", newline="\n") as file:
        for source, target in pairs:
            file.write(f"{source}\t{target}\n")
            count += 1
    return count


def clean_pairs(corpus: Corpus, sides: tuple[str, str], known: Known) -> Iterator[Pair]:
    """The usable pairs of a corpus, without those that are kept apart."""
    options = DataOptions(
        corpus.files, source_language=sides[0], target_language=sides[1], held_out=0
    )
    for source, target, _ in _screened(options):
        if not known.has(source, target):
            yield source, target


def split_pairs(corpus: Corpus, sides: tuple[str, str], seed: int) -> list[Pair]:
    """The pairs of a corpus that are set aside as a valid set, where there is none."""
    options = DataOptions(
        corpus.files, source_language=sides[0], target_language=sides[1], held_out=_HELD_OUT
    )
    return [(source, target) for source, target, fate in _screened(options, seed) if fate]


def clean_lines(files: Sequence[str], known: Known) -> Iterator[str]:
    """The lines of text in one language, without those that are kept apart or come again."""
    seen: set[bytes] = set()
    for file in files:
        for line in read_lines(file, _damaged):
            text = normalise(line or "")
            mark = _key(text)
            if text and mark not in seen and not known.has(text):
                seen.add(mark)
                yield text


def languages_of(files: Sequence[str], named: tuple[str, str]) -> tuple[str, str]:
    """The languages of some files, as named or by the files' names."""
    return languages(corpora(files), *named)


def _screened(options: DataOptions, seed: int = 1) -> Iterator[tuple[str, str, bool]]:
    """Each pair that training would use, and whether it is set aside."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        screen = Screen(options, Path(folder) / "sightings")
        screen.read_training(None)
        screen.settle(seed)
        for pair, fate in zip(screen.judged_pairs(), screen.fates, strict=True):
            if not pair.reason:
                yield pair.source, pair.target, fate == HELD_OUT


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _damaged(kind: str, place: str, text: str) -> None:
    if kind == "damaged":
        raise InputError(f"{place} {text}; copy it again")


def _key(text: str) -> bytes:
    return key(text.casefold())
