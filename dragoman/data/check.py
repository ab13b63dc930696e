"""What is wrong with the text, and which pairs to leave out for it. Reads every corpus once; knows
no tokens.

The same reading serves `dragoman check`, which counts and goes on, and training, which stops at
what would corrupt it.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from dragoman.data.check_report import EXAMPLES, KINDS, Report, excerpt
from dragoman.data.corpus import Corpus, Pair, corpora, ignore, languages, read_pairs
from dragoman.data.data_options import DataOptions
from dragoman.data.duplicates import Keys, Sightings, key
from dragoman.data.faults import Faults
from dragoman.data.text_lines import Listener
from dragoman.data.validation_split import ValidationSplit
from dragoman.errors import InputError
from dragoman.text.normalise import normalise

Fates = NDArray[np.uint8]
# The fate of a pair; one that is dropped was never written, a duplicate was.
KEPT = 0
DROPPED = 1
HELD_OUT = 2
REPEATED = 3
_SAMPLE = 2000  # pairs of each corpus that show what is usual in it
_SAY_EVERY = 500_000  # pairs


def check(data: DataOptions) -> Report:
    """Return what training on these files would find, without stopping at bad lines."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        screen = Screen(data, Path(folder) / "sightings", strict=False)
        for _ in screen.valid_pairs():
            pass
        screen.read_training(None)
        screen.settle(seed=0)
    return screen.report


def quiet(line: str) -> None:
    """Print nothing."""


class Screen:
    """One reading of all the text that some options name.

    Its methods are called once each, in the order in which they stand here.
    """

    def __init__(
        self,
        data: DataOptions,
        folder: Path,
        strict: bool = True,
        say: Callable[[str], None] = quiet,
    ) -> None:
        if not data.train:
            raise InputError(
                "no training files were named; give a source and a target file, "
                "or a .tsv, .tmx or .jsonl file"
            )
        self.data = data
        self.say = say
        self.train = corpora(data.train, data.weights)
        self.valid = corpora(data.valid, lone_source=not strict)
        self.test = corpora(data.test, lone_source=True)
        self.languages = languages(
            self.train + self.valid,
            data.source_language,
            data.target_language,
        )
        self.report = Report(*self.languages, strict=strict)
        # One byte for each pair that was read; nothing else grows with the text.
        self.fates = bytearray()
        self.ends: list[int] = []  # ordinal after the last pair of each corpus
        self.characters = 0  # of the pairs kept
        self._drops = data.drops()
        self._evaluated: set[bytes] = set()  # keys of the sources that stand in valid or test
        self._sightings = Sightings(folder)

    def valid_pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the pairs of the validation files, normalised.

        The sources of validation and test files are remembered meanwhile.
        """
        for corpus in self.valid:
            for pair in self._evaluation_pairs(corpus):
                self.report.valid += 1
                yield pair
        for corpus in self.test:
            for _ in self._evaluation_pairs(corpus):
                pass

    def read_training(self, out: TextIO | None) -> None:
        """Read the training pairs, and write those without a fault of their own.

        They are written as "source<TAB>target" lines.
        """
        faults = Faults(self.data, self._sample(), self._evaluated)
        for corpus in self.train:
            self._read_corpus(corpus, faults, out)
            self.ends.append(len(self.fates))
        self.report.pairs = len(self.fates)

    def settle(self, seed: int) -> None:
        """Find what only many pairs together show, set pairs aside, and count.

        Pairs are set aside only if there are no validation files.
        """
        fates = np.frombuffer(self.fates, dtype=np.uint8)
        drop = "duplicate" in self._drops
        split = ValidationSplit(self.data.held_out, fates.size, seed)
        duplicates = _Earliest()
        several = _Earliest()
        for groups in self._sightings.groups():
            split.consider(groups, drop)
            duplicates.add(groups.duplicates)
            several.add(groups.several)
            if drop:
                fates[groups.duplicates[:, 0]] = REPEATED
        kept = int(np.count_nonzero(fates == KEPT))
        if kept > 1 and self.data.held_out and not self.data.valid:
            fates[split.choose(kept)] = HELD_OUT
        self._show("duplicate", duplicates, drop)
        self._show("many", several, False)
        self._count(fates)

    def _read(self, corpus: Corpus, notify: Listener | None = None) -> Iterator[Pair]:
        return read_pairs(corpus, *self.languages, notify or self._note)

    def _note(
        self,
        kind: str,
        location: str,
        text: str,
    ) -> None:
        self.report.add(kind, location, text, dropped=not KINDS[kind].stops)

    def _evaluation_pairs(self, corpus: Corpus) -> Iterator[tuple[str, str]]:
        """Yield the pairs of a validation or test corpus, and remember their sources."""
        for number, (source, target) in enumerate(self._read(corpus), 1):
            if source is None or target is None:
                continue
            source = normalise(source)
            target = normalise(target)
            if source and target:
                self._evaluated.add(key(source.casefold()))
                yield source, target
            else:
                location = corpus.location(number)
                self.report.add("empty", location, f"{source} | {target}", dropped=True)

    def _sample(self) -> list[tuple[str, str]]:
        """Return the first pairs of each training corpus, normalised."""
        sample = []
        for corpus in self.train:
            for source, target in islice(self._read(corpus, ignore), _SAMPLE):
                if source and target:
                    sample.append((normalise(source), normalise(target)))
        return sample

    def _read_corpus(
        self,
        corpus: Corpus,
        faults: Faults,
        out: TextIO | None,
    ) -> None:
        start = len(self.fates)
        for ordinal, (source, target) in enumerate(self._read(corpus), start):
            if (ordinal + 1) % _SAY_EVERY == 0:
                self.say(f"read {ordinal + 1:,} pairs")
            if source is None or target is None:
                self.fates.append(DROPPED)
                continue
            source = normalise(source)
            target = normalise(target)
            source_key = key(source.casefold())
            fate = KEPT
            for kind in faults(source, target, source_key):
                fate = DROPPED if kind in self._drops else KEPT
                location = corpus.location(ordinal - start + 1)
                text = f"{source} | {target}"
                self.report.add(kind, location, text, dropped=fate == DROPPED)
                if fate == DROPPED:
                    break
            self.fates.append(fate)
            if fate == KEPT:
                self._sightings.add(source_key, key(target), ordinal)
                self.characters += len(source) + len(target)
                if out is not None:
                    out.write(f"{source}\t{target}\n")

    def _show(
        self,
        kind: str,
        earliest: _Earliest,
        dropped: bool,
    ) -> None:
        """Count rows of pairs, and read the text again as far as the examples stand."""
        if not earliest.count:
            return
        dropped_count = earliest.count if dropped else 0
        finding = self.report.tally(kind, earliest.count, dropped_count)
        ordinals = earliest.rows[:, 0].tolist()
        pairs = dict(self._pairs_at(ordinals))
        for ordinal, other in earliest.rows.tolist():
            location = self._location(ordinal)
            other_location = self._location(other)
            file, _, _ = location.rpartition(", ")
            other_file, _, other_line = other_location.rpartition(", ")
            if file == other_file:
                other_location = other_line
            text = excerpt(pairs[ordinal])
            finding.examples.append(f"{location} and {other_location}: {text}")

    def _corpora(self) -> Iterator[tuple[Corpus, int, int]]:
        """Yield each training corpus, its first ordinal and the one after its last."""
        starts = [0, *self.ends]
        yield from zip(self.train, starts, self.ends, strict=False)

    def _pairs_at(self, ordinals: list[int]) -> Iterator[tuple[int, str]]:
        for corpus, start, end in self._corpora():
            numbers = [ordinal - start for ordinal in ordinals if start <= ordinal < end]
            if not numbers:
                continue
            pairs = islice(self._read(corpus, ignore), max(numbers) + 1)
            for number, (source, target) in enumerate(pairs):
                if number in numbers:
                    yield start + number, f"{source} | {target}"

    def _location(self, ordinal: int) -> str:
        index = bisect_right(self.ends, ordinal)
        start = self.ends[index - 1] if index else 0
        return self.train[index].location(ordinal + 1 - start)

    def _count(self, fates: Fates) -> None:
        report = self.report
        report.kept = int(np.count_nonzero(fates == KEPT))
        report.valid += int(np.count_nonzero(fates == HELD_OUT))
        for corpus, start, end in self._corpora():
            row: dict[str, Any] = {
                "files": corpus.files,
                "weight": corpus.weight,
                "pairs": end - start,
                "kept": int(np.count_nonzero(fates[start:end] == KEPT)),
            }
            report.corpora.append(row)
        if report.kept:
            return
        reasons = [f"{finding.count:,} {KINDS[finding.kind].title}" for finding in report]
        text = f"none of {fates.size:,} pairs can be used"
        if reasons:
            text += f" ({', '.join(reasons)})"
        report.add("nothing", self.data.train[0], text)


class _Earliest:
    """A count of rows of ordinals, and the few rows that come first in the text."""

    def __init__(self) -> None:
        self.count = 0
        self.rows: Keys = np.empty((0, 2), dtype=np.uint64)

    def add(self, rows: Keys) -> None:
        self.count += len(rows)
        rows = np.concatenate([self.rows, rows])
        order = np.argsort(rows[:, 0])
        self.rows = rows[order[:EXAMPLES]]
