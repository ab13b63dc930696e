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
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from dragoman.data.check_report import EXAMPLES, KINDS, Report, excerpt
from dragoman.data.corpus import Corpus, Pair, corpora, ignore, languages, read_pairs
from dragoman.data.data_options import DataOptions
from dragoman.data.duplicates import Keys, Sightings, key
from dragoman.data.faults import Faults
from dragoman.errors import InputError
from dragoman.text.normalise import normalise

Fates = NDArray[np.uint8]
KEPT, DROPPED, HELD_OUT, REPEATED = range(
    4
)  # the fate of a pair; one that is dropped was never written, a duplicate was
_SAMPLE = 2000  # pairs of each corpus that tell what is usual in it
_SAY_EVERY = 500_000


def check(data: DataOptions) -> Report:
    """What training on these files would find, without stopping at bad lines."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        screen = Screen(data, Path(folder) / "sightings", strict=False)
        for _ in screen.valid_pairs():
            pass
        screen.read_training(None)
        screen.settle(seed=0)
    return screen.report


def quiet(line: str) -> None:
    """Says nothing."""


class Screen:
    """One reading of all the text that some options name. Its methods are called once each, in
    the order they stand."""

    def __init__(
        self,
        data: DataOptions,
        folder: Path,
        strict: bool = True,
        say: Callable[[str], None] = quiet,
    ) -> None:
        if not data.train:
            raise InputError(
                "no training files were named; give a source and a target file, or a .tsv, .tmx or .jsonl file"
            )
        self.data, self.say = data, say
        self.train = corpora(data.train, data.weights)
        self.valid = corpora(data.valid, lone_source=not strict)
        self.test = corpora(data.test, lone_source=True)
        self.languages = languages(
            self.train + self.valid, data.source_language, data.target_language
        )
        self.report = Report(*self.languages, strict=strict)
        self.fates = (
            bytearray()
        )  # one for each pair read; this byte a pair is all that grows with the text
        self.ends: list[int] = []  # ordinal after the last pair of each corpus
        self.characters = 0  # of the pairs kept
        self._drops = data.drops()
        self._evaluated: set[bytes] = set()  # keys of the sources that stand in valid or test
        self._sightings = Sightings(folder)

    def valid_pairs(self) -> Iterator[tuple[str, str]]:
        """The pairs of the valid files, normalised; the sources of valid and test are remembered
        meanwhile."""
        for place, corpus in enumerate([*self.valid, *self.test]):
            for number, (source, target) in enumerate(self._read(corpus), 1):
                if source is None or target is None:
                    continue
                source, target = normalise(source), normalise(target)
                if not source or not target:
                    self.report.add(
                        "empty", corpus.place(number), f"{source} | {target}", dropped=True
                    )
                    continue
                self._evaluated.add(key(source.casefold()))
                if place < len(self.valid):
                    self.report.valid += 1
                    yield source, target

    def read_training(self, out: TextIO | None) -> None:
        """Reads the training pairs, and writes those without a fault of their own as
        "source<TAB>target" lines."""
        heads = (
            pair for corpus in self.train for pair in islice(self._read(corpus, ignore), _SAMPLE)
        )
        sample = [
            (normalise(source), normalise(target)) for source, target in heads if source and target
        ]
        faults = Faults(self.data, sample, self._evaluated)
        for corpus in self.train:
            self._read_corpus(corpus, faults, out)
            self.ends.append(len(self.fates))
        self.report.pairs = len(self.fates)

    def settle(self, seed: int) -> None:
        """Finds what only many pairs together show, sets pairs aside where there are no valid
        files, and counts."""
        fates = np.frombuffer(self.fates, dtype=np.uint8)
        salt = np.frombuffer(key(f"held out {seed}"), dtype="<u8")[0]
        share = (8 * self.data.held_out + 1000) / max(1, fates.size)
        ceiling = np.uint64(int(min(1.0, share) * (2**64 - 2**12)))
        drop = "duplicate" in self._drops
        duplicates, several, candidates = _Earliest(), _Earliest(), []
        for groups in self._sightings.groups():
            rows = groups.rows[~groups.repeats] if drop else groups.rows
            candidates.append(rows[rows[:, 0] ^ salt <= ceiling])
            duplicates.add(groups.duplicates)
            several.add(groups.several)
            if drop:
                fates[groups.duplicates[:, 0]] = REPEATED
        kept = int(np.count_nonzero(fates == KEPT))
        if kept > 1 and self.data.held_out and not self.data.valid:
            want = min(self.data.held_out, max(1, kept // 20))
            fates[_set_aside(np.concatenate(candidates), want, salt)] = HELD_OUT
        self._show("duplicate", duplicates, drop)
        self._show("many", several, False)
        self._count(fates)

    def _read(
        self, corpus: Corpus, tell: Callable[[str, str, str], None] | None = None
    ) -> Iterator[Pair]:
        return read_pairs(corpus, *self.languages, tell or self._tell)

    def _tell(self, kind: str, place: str, text: str) -> None:
        self.report.add(kind, place, text, dropped=not KINDS[kind].stops)

    def _read_corpus(self, corpus: Corpus, faults: Faults, out: TextIO | None) -> None:
        start = len(self.fates)
        for ordinal, (source, target) in enumerate(self._read(corpus), start):
            if (ordinal + 1) % _SAY_EVERY == 0:
                self.say(f"read {ordinal + 1:,} pairs")
            if source is None or target is None:
                self.fates.append(DROPPED)
                continue
            source, target = normalise(source), normalise(target)
            source_key, fate = key(source.casefold()), KEPT
            for kind in faults(source, target, source_key):
                fate = DROPPED if kind in self._drops else KEPT
                self.report.add(
                    kind,
                    corpus.place(ordinal - start + 1),
                    f"{source} | {target}",
                    dropped=fate == DROPPED,
                )
                if fate == DROPPED:
                    break
            self.fates.append(fate)
            if fate == KEPT:
                self._sightings.add(source_key, key(target), ordinal)
                self.characters += len(source) + len(target)
                if out is not None:
                    out.write(f"{source}\t{target}\n")

    def _show(self, kind: str, found: _Earliest, dropped: bool) -> None:
        """Counts them, and reads the text once more as far as the examples stand."""
        if not found.count:
            return
        finding = self.report.tally(kind, found.count, found.count * dropped)
        pairs = dict(self._pairs_at(found.rows[:, 0].tolist()))
        for ordinal, other in found.rows.tolist():
            place, twin = self._place(ordinal), self._place(other)
            if place.rpartition(", ")[0] == twin.rpartition(", ")[0]:
                twin = twin.rpartition(", ")[2]
            finding.examples.append(f"{place} and {twin}: {excerpt(pairs[ordinal])}")

    def _pairs_at(self, ordinals: list[int]) -> Iterator[tuple[int, str]]:
        for corpus, start, end in zip(self.train, [0, *self.ends], self.ends, strict=False):
            here = [ordinal - start for ordinal in ordinals if start <= ordinal < end]
            for number, (source, target) in enumerate(
                islice(self._read(corpus, ignore), max(here, default=-1) + 1)
            ):
                if number in here:
                    yield start + number, f"{source} | {target}"

    def _place(self, ordinal: int) -> str:
        place = bisect_right(self.ends, ordinal)
        return self.train[place].place(ordinal + 1 - (self.ends[place - 1] if place else 0))

    def _count(self, fates: Fates) -> None:
        self.report.kept = int(np.count_nonzero(fates == KEPT))
        self.report.valid += int(np.count_nonzero(fates == HELD_OUT))
        for corpus, start, end in zip(self.train, [0, *self.ends], self.ends, strict=False):
            kept = int(np.count_nonzero(fates[start:end] == KEPT))
            self.report.corpora.append(
                {"files": corpus.files, "weight": corpus.weight, "pairs": end - start, "kept": kept}
            )
        if not self.report.kept:
            reasons = ", ".join(
                f"{finding.count:,} {KINDS[finding.kind].title}" for finding in self.report
            )
            self.report.add(
                "nothing",
                self.data.train[0],
                f"none of {fates.size:,} pairs can be used{f' ({reasons})' * bool(reasons)}",
            )


class _Earliest:
    """A count of rows of ordinals, and the few rows that come first in the text."""

    def __init__(self) -> None:
        self.count = 0
        self.rows: Keys = np.empty((0, 2), dtype=np.uint64)

    def add(self, rows: Keys) -> None:
        self.count += len(rows)
        rows = np.concatenate([self.rows, rows])
        self.rows = rows[np.argsort(rows[:, 0])[:EXAMPLES]]


def _set_aside(rows: Keys, want: int, salt: np.uint64) -> Keys:
    """Ordinals of about `want` pairs, with every pair of each source that is chosen."""
    rows = rows[np.argsort(rows[:, 0] ^ salt, kind="stable")]
    starts = np.flatnonzero(np.append(True, rows[1:, 0] != rows[:-1, 0]))
    sizes = np.diff(np.append(starts, len(rows)))
    chosen, total = [], 0
    for start, size in zip(starts, sizes, strict=True):
        if total + size <= want:
            chosen.append(rows[start : start + size, 1])
            total += size
    if not chosen and len(starts) > 1:
        smallest = starts[np.argmin(sizes)]
        chosen.append(rows[smallest : smallest + np.min(sizes), 1])
    return np.concatenate(chosen) if chosen else rows[:0, 1]
