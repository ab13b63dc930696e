"""Parallel files to a folder of memory-mapped tokens. Knows text, the tokeniser and the folder's
files; knows no batches.

`read_corpora` reads, checks, filters and splits the text, and tells how much there is; `encode`
learns the vocabulary and writes the tokens. The folder holds, for each of train/ and valid/:

    source.bin, target.bin   token ids end to end, little-endian uint16 (uint32 over 65,536 ids), each sentence with its end
    source.idx, target.idx   int64, N + 1 offsets into them, in tokens
    text.tsv                 the normalised "source<TAB>target" lines; for train only if the text is to be cut anew each epoch

and manifest.json, which is written last: a folder without it is not finished, and is made again.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.data.check import DROPPED, HELD_OUT, KEPT, REPEATED, Screen, quiet
from dragoman.data.check_report import Report
from dragoman.data.data_options import DataOptions
from dragoman.data.tokenise import cut_both
from dragoman.folder import layout
from dragoman.folder.files import write_file
from dragoman.text.tokenizer import Tokenizer, TokenizerOptions, learn

# Characters from which a vocabulary is learnt, spread over the whole text: more takes time and
# changes little.
_LEARN_FROM = {"bpe": 25_000_000, "unigram": 8_000_000}
_WORTH_A_PROCESS = 30_000  # pairs; fewer are cut before another process has started
_BLOCK = 1 << 14  # pairs
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Text:
    """Text that has been read and filtered, waiting in the folder to become tokens."""

    folder: Path
    screen: Screen
    source_language: str
    target_language: str
    pairs: int  # for training
    valid_pairs: int
    characters: int  # source and target, of the pairs for training and for validation

    @property
    def report(self) -> Report:
        return self.screen.report


@dataclass(frozen=True)
class Prepared:
    """What the folder now holds."""

    folder: Path
    tokenizer: Tokenizer
    report: Report
    source_language: str
    target_language: str
    pairs: int
    valid_pairs: int
    notes: tuple[str, ...]


def is_prepared(folder: Path) -> bool:
    """Whether the folder was finished."""
    return (folder / layout.MANIFEST).is_file()


def prepare(
    data: DataOptions,
    tokenizer: TokenizerOptions,
    folder: Path,
    seed: int,
    known: Tokenizer | None = None,
    say: Callable[[str], None] = quiet,
) -> Prepared:
    """Both halves in one."""
    return encode(read_corpora(data, folder, seed, say), tokenizer, seed, known, say)


def read_corpora(
    data: DataOptions, folder: Path, seed: int, say: Callable[[str], None] = quiet
) -> Text:
    """Reads all files once; what was left in the folder by an earlier attempt is thrown away."""
    (folder / layout.MANIFEST).unlink(missing_ok=True)
    for name in (layout.TRAIN, layout.VALID, layout.SCRATCH):
        shutil.rmtree(folder / name, ignore_errors=True)
    scratch = folder / layout.SCRATCH
    scratch.mkdir(parents=True)
    screen = Screen(data, scratch / "sightings", say=say)
    with (scratch / "valid.tsv").open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(f"{source}\t{target}\n" for source, target in screen.valid_pairs())
    with (scratch / "train.tsv").open(
        "w", encoding="utf-8", newline="\n", buffering=1 << 20
    ) as out:
        screen.read_training(out)
    screen.settle(seed)
    report = screen.report
    say(
        f"{report.pairs:,} pairs read, {report.kept:,} kept for training, {report.valid:,} for validation"
    )
    return Text(folder, screen, *screen.languages, report.kept, report.valid, screen.characters)


def encode(
    text: Text,
    options: TokenizerOptions,
    seed: int,
    known: Tokenizer | None = None,
    say: Callable[[str], None] = quiet,
) -> Prepared:
    """Learns the vocabulary unless one is known, and writes the tokens of text that
    `read_corpora` has read."""
    tokenizer, note = (known, "") if known else _learn(text, options, seed, say)
    report, scratch, data = text.report, text.folder / layout.SCRATCH, text.screen.data
    report.notes += [note] * bool(note)
    width = 4 if max(tokenizer.source_size, tokenizer.target_size) > 1 << 16 else 2
    say(f"cutting {text.pairs + text.valid_pairs:,} pairs into tokens")
    apart = text.pairs > _WORTH_A_PROCESS and (os.cpu_count() or 1) > 1 and tokenizer.by_words
    cut_both([scratch / "train.tsv", scratch / "valid.tsv"], tokenizer, width, apart)
    with (
        _Writer(text.folder / layout.TRAIN, width, keep_text=options.sampling > 0) as train,
        _Writer(text.folder / layout.VALID, width, keep_text=True) as valid,
    ):
        _sort_out(text, width, train, valid)
    report.kept, report.valid = train.pairs, valid.pairs
    if not train.pairs:
        report.add("nothing", data.train[0], f"every pair is longer than {data.max_length} tokens")
    _finish(text, {"dtype": f"uint{8 * width}", "longest": max(train.longest, valid.longest)})
    languages = text.source_language, text.target_language
    return Prepared(
        text.folder, tokenizer, report, *languages, train.pairs, valid.pairs, tuple(report.notes)
    )


def _learn(
    text: Text, options: TokenizerOptions, seed: int, say: Callable[[str], None]
) -> tuple[Tokenizer, str]:
    """From one pair of every so many, drawn at random, so that the sample is spread evenly."""
    every = max(1, text.characters // _LEARN_FROM[options.kind])
    draw = random.Random(seed)
    sides: tuple[list[str], list[str]] = [], []
    with (text.folder / layout.SCRATCH / "train.tsv").open("rb") as lines:
        fates = (fate for _, block in _blocks(text.screen) for fate in block)
        kept = (line for fate, line in zip(fates, lines, strict=True) if fate == KEPT)
        while block := list(islice(kept, every)):
            for side, sentence in zip(
                sides, draw.choice(block).decode("utf-8")[:-1].split("\t"), strict=True
            ):
                side.append(sentence)
    say(f"learning a vocabulary of {options.vocab_size:,} from {len(sides[0]):,} pairs")
    return learn(options, *sides)


def _blocks(screen: Screen) -> Iterator[tuple[int, bytes]]:
    """(corpus, fates of some pairs in order), of the pairs that were written."""
    for corpus, (start, end) in enumerate(zip([0, *screen.ends], screen.ends, strict=False)):
        for place in range(start, end, _BLOCK):
            yield (
                corpus,
                bytes(
                    screen.fates[place : min(end, place + _BLOCK)].translate(None, bytes([DROPPED]))
                ),
            )


def _sort_out(text: Text, width: int, train: _Writer, valid: _Writer) -> None:
    """Sends every pair to the files where it belongs, and to the report if it is too long."""
    report, data = text.report, text.screen.data
    with _Cut(text.folder / layout.SCRATCH / "valid.tsv", width) as cut:
        while pairs := cut.read(_BLOCK):
            long = pairs.longer_than(data.max_length)
            valid.add(pairs, ~long)
            _tell_long(report, data.valid[0], pairs, long)
    for row in report.corpora:
        row["kept"] = 0
    with _Cut(text.folder / layout.SCRATCH / "train.tsv", width) as cut:
        for corpus, block in _blocks(text.screen):
            pairs, fates, row = (
                cut.read(len(block)),
                np.frombuffer(block, dtype=np.uint8),
                report.corpora[corpus],
            )
            long = pairs.longer_than(data.max_length)
            row["kept"] += train.add(pairs, ~long & (fates == KEPT))
            valid.add(pairs, ~long & (fates == HELD_OUT))
            _tell_long(report, row["files"][0], pairs, long & (fates != REPEATED))


def _tell_long(report: Report, file: str, pairs: _Pairs, long: Mask) -> None:
    for place in np.flatnonzero(long):
        report.add(
            "long", file, pairs.lines[place].decode("utf-8").replace("\t", " | "), dropped=True
        )


def _finish(text: Text, facts: dict[str, Any]) -> None:
    """Clears up and writes the manifest."""
    shutil.rmtree(text.folder / layout.SCRATCH)
    report = text.report
    manifest = {
        "version": 1,
        **facts,
        "train": [
            {"files": row["files"], "weight": row["weight"], "pairs": row["kept"]}
            for row in report.corpora
        ],
        "valid": report.valid,
        "source_language": text.source_language,
        "target_language": text.target_language,
    }
    content = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    write_file(text.folder / layout.MANIFEST, content.encode())


@dataclass(frozen=True)
class _Pairs:
    """Some pairs in a row; the two sides are (source, target)."""

    lines: list[bytes]
    lengths: tuple[NDArray[Any], NDArray[Any]]
    tokens: tuple[NDArray[Any], NDArray[Any]]

    def __bool__(self) -> bool:
        return bool(self.lines)

    def longer_than(self, limit: int) -> Mask:
        return np.maximum(*self.lengths) > limit


class _Cut:
    """Reads what `cut_both` wrote, some pairs at a time."""

    def __init__(self, file: Path, width: int) -> None:
        names = [
            file,
            *(
                file.with_suffix(f".{side}.{end}")
                for end in ("len", "bin")
                for side in ("source", "target")
            ),
        ]
        self._files, self._width = [name.open("rb") for name in names], width

    def __enter__(self) -> _Cut:
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._files:
            file.close()

    def read(self, count: int) -> _Pairs:
        lines, *sides = self._files
        lengths = [np.frombuffer(side.read(4 * count), dtype="<u4") for side in sides[:2]]
        tokens = [
            np.frombuffer(side.read(self._width * int(length.sum())), dtype=f"<u{self._width}")
            for side, length in zip(sides[2:], lengths, strict=True)
        ]
        return _Pairs(list(islice(lines, count)), (lengths[0], lengths[1]), (tokens[0], tokens[1]))


class _Writer:
    """The files of train/ or valid/."""

    def __init__(self, folder: Path, width: int, keep_text: bool) -> None:
        folder.mkdir()
        sides = ("source", "target")
        names = [*map(layout.offsets, sides), *map(layout.tokens, sides)]
        names += [layout.TEXT] * keep_text
        self._files = [(folder / name).open("wb") for name in names]
        self._ends = [0, 0]
        self.pairs = self.longest = 0

    def __enter__(self) -> _Writer:
        for offsets in self._files[:2]:
            offsets.write(bytes(8))
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._files:
            file.close()

    def add(self, pairs: _Pairs, chosen: Mask) -> int:
        """Writes the chosen ones among some pairs, and tells how many they are."""
        count = int(np.count_nonzero(chosen))
        if not count:
            return 0
        for side in (0, 1):
            lengths = pairs.lengths[side][chosen].astype("<i8")
            self._files[side].write((np.cumsum(lengths) + self._ends[side]).astype("<i8").tobytes())
            self._files[2 + side].write(
                pairs.tokens[side][np.repeat(chosen, pairs.lengths[side])].tobytes()
            )
            self._ends[side] += int(lengths.sum())
            self.longest = max(self.longest, int(lengths.max()))
        for out in self._files[4:]:
            out.writelines(pairs.lines[place] for place in np.flatnonzero(chosen))
        self.pairs += count
        return count
