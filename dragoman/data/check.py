"""What is wrong with the text, and which pairs to leave out for it. Reads every corpus once; knows
no tokens.

The same reading serves `dragoman check`, which counts and goes on, and training, which stops at
what would corrupt it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from dragoman.data.check_report import (
    EXAMPLES,
    KINDS,
    Report,
    both_places,
    excerpt,
    shift_in_words,
)
from dragoman.data.clean import Judged, write_clean
from dragoman.data.corpus import Corpus, Pair, corpora, languages, read_pairs, with_prefixes
from dragoman.data.data_options import DataOptions
from dragoman.data.duplicates import Earliest, Sightings, key
from dragoman.data.fates import (
    HELD_OUT,
    KEPT,
    REPEATED,
    SHIFTED,
    UNREADABLE,
    dropped_for,
    reason_of,
)
from dragoman.data.faults import Faults, raw_faults
from dragoman.data.numbered import Numbered
from dragoman.data.shifts import Block, Shifts, apart, usual
from dragoman.data.validation_split import ValidationSplit
from dragoman.errors import InputError
from dragoman.text.normalise import normalise

Fates = NDArray[np.uint8]
_SAMPLE = 2000  # pairs of each corpus that show what is usual in it
_SAY_EVERY = 500_000  # pairs


def check(data: DataOptions, clean: Path | None = None) -> Report:
    """Return what training on these files would find, without stopping at bad lines.

    With `clean`, also write the pairs that training would use and those that it would drop; see
    clean.py.
    """
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        screen = Screen(data, Path(folder) / "sightings", strict=False)
        for _ in screen.valid_pairs():
            pass
        screen.read_training(None)
        screen.settle(seed=0)
    if clean is not None:
        write_clean(clean, screen.languages, screen.judged_pairs(), screen.report)
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
        self.train = with_prefixes(corpora(data.train, data.weights), data.prefixes)
        self.valid = with_prefixes(corpora(data.valid, lone_source=not strict), data.prefixes)
        self.test = corpora(data.test, lone_source=True)
        self.languages = (data.source_language, data.target_language)
        if not data.any_text:
            self.languages = languages(self.train + self.valid, *self.languages)
        self.numbered = Numbered(self.train, self.languages)
        self.report = Report(*self.languages, strict=strict)
        # One byte for each pair that was read; nothing else grows with the text.
        self.fates = bytearray()
        self.characters = 0  # of the pairs kept
        self._drops = data.drops()
        self._evaluated: set[bytes] = set()  # keys of the sources that stand in valid or test
        self._sightings = Sightings(folder)
        self._shifted: list[Block] = []

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
        sample = self._sample()
        faults = Faults(self.data, sample, self._evaluated)
        lengths = usual(sample)
        for corpus in self.train:
            self._read_corpus(corpus, faults, Shifts(*lengths), out)
            self.numbered.ends.append(len(self.fates))
        self.report.pairs = len(self.fates)

    def settle(self, seed: int) -> None:
        """Find what only many pairs together show, set pairs aside, and count.

        Pairs are set aside only if there are no validation files.
        """
        fates = np.frombuffer(self.fates, dtype=np.uint8)
        drop = "duplicate" in self._drops
        split = ValidationSplit(self.data.held_out, fates.size, seed)
        duplicates = Earliest(EXAMPLES)
        several = Earliest(EXAMPLES)
        for groups in self._sightings.groups():
            split.consider(groups, drop)
            duplicates.add(groups.duplicates)
            several.add(groups.several)
            if drop:
                fates[groups.duplicates[:, 0]] = REPEATED
        self._mark_shifted(fates)
        kept = int(np.count_nonzero(fates == KEPT))
        if kept > 1 and self.data.held_out and not self.data.valid:
            chosen = split.choose(kept)
            is_kept = fates[chosen] == KEPT
            fates[chosen[is_kept]] = HELD_OUT
        self._show("duplicate", duplicates, drop)
        self._show("many", several, False)
        self._count(fates)

    def _read(self, corpus: Corpus) -> Iterator[Pair]:
        return read_pairs(corpus, *self.languages, self._note)

    def _note(
        self,
        kind: str,
        location: str,
        text: str,
    ) -> None:
        known = KINDS[kind]
        is_dropped = not (known.stops or known.mended)
        self.report.add(kind, location, text, dropped=is_dropped)

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
            for source, target in self.numbered.pairs(corpus, _SAMPLE):
                if source and target:
                    sample.append((normalise(source), normalise(target)))
        return sample

    def _read_corpus(
        self,
        corpus: Corpus,
        faults: Faults,
        shifts: Shifts,
        out: TextIO | None,
    ) -> None:
        start = len(self.fates)
        for ordinal, (raw_source, raw_target) in enumerate(self._read(corpus), start):
            if (ordinal + 1) % _SAY_EVERY == 0:
                self.say(f"read {ordinal + 1:,} pairs")
            if raw_source is None or raw_target is None:
                self.fates.append(UNREADABLE)
                self._note_shifts(shifts.add("", ""), start)
                continue
            source = normalise(raw_source)
            target = normalise(raw_target)
            self._note_shifts(shifts.add(source, target), start)
            source_key = key(source.casefold())
            of_raw = raw_faults(raw_source, raw_target)
            kinds = chain(of_raw, faults(source, target, source_key))
            fate = self._judge(kinds, f"{source} | {target}", corpus, ordinal - start + 1)
            self.fates.append(fate)
            if fate == KEPT:
                self._sightings.add(source_key, key(target), ordinal)
                self.characters += len(source) + len(target)
                if out is not None:
                    out.write(f"{source}\t{target}\n")
        self._note_shifts(shifts.finish(), start)

    def _judge(self, kinds: Iterator[str], text: str, corpus: Corpus, number: int) -> int:
        """Report the faults of a pair up to the first for which it is dropped; return its fate."""
        for kind in kinds:
            is_dropped = kind in self._drops
            self.report.add(kind, corpus.location(number), text, dropped=is_dropped)
            if is_dropped:
                return dropped_for(kind)
        return KEPT

    def _note_shifts(self, blocks: Iterator[Block], start: int) -> None:
        for block in blocks:
            moved = block._replace(first=start + block.first, last=start + block.last)
            self._shifted.append(moved)

    def _mark_shifted(self, fates: Fates) -> None:
        """Report the shifted blocks, and drop what is left of them."""
        if self.data.any_text:
            return
        is_dropped = "shifted" in self._drops
        for first, last, shift, _ in apart(self._shifted):
            block = fates[first : last + 1]
            kept = block == KEPT
            dropped = int(np.count_nonzero(kept)) if is_dropped else 0
            if is_dropped:
                block[kept] = SHIFTED
            finding = self.report.tally("shifted", len(block), dropped)
            if len(finding.examples) < EXAMPLES:
                begin = self.numbered.location(first)
                end = self.numbered.location(last)
                finding.examples.append(shift_in_words(begin, end, shift))

    def judged_pairs(self) -> Iterator[Judged]:
        """Yield every training pair once more, normalised, with its fate in words."""
        for corpus, start, end in self.numbered.parts():
            pairs = self.numbered.pairs(corpus, end - start)
            for number, (source, target) in enumerate(pairs):
                fate = self.fates[start + number]
                yield Judged(
                    corpus.location(number + 1),
                    reason_of(fate),
                    normalise(source or ""),
                    normalise(target or ""),
                )

    def _show(
        self,
        kind: str,
        earliest: Earliest,
        dropped: bool,
    ) -> None:
        """Count rows of pairs, and read the text again as far as the examples stand."""
        if not earliest.count:
            return
        dropped_count = earliest.count if dropped else 0
        finding = self.report.tally(kind, earliest.count, dropped_count)
        ordinals = earliest.rows[:, 0].tolist()
        texts = self.numbered.texts(ordinals)
        for ordinal, other in earliest.rows.tolist():
            places = both_places(self.numbered.location(ordinal), self.numbered.location(other))
            text = excerpt(texts[ordinal])
            finding.examples.append(f"{places}: {text}")

    def _count(self, fates: Fates) -> None:
        report = self.report
        report.kept = int(np.count_nonzero(fates == KEPT))
        report.valid += int(np.count_nonzero(fates == HELD_OUT))
        for corpus, start, end in self.numbered.parts():
            is_kept = fates[start:end] == KEPT
            row: dict[str, Any] = {
                "files": corpus.files,
                "weight": corpus.weight,
                "pairs": end - start,
                "kept": int(np.count_nonzero(is_kept)),
            }
            report.corpora.append(row)
        if report.kept:
            return
        reasons = [f"{finding.count:,} {KINDS[finding.kind].title}" for finding in report]
        text = f"none of {fates.size:,} pairs can be used"
        if reasons:
            text += f" ({', '.join(reasons)})"
        report.add("nothing", self.data.train[0], text)
