"""Parallel files to a folder of memory-mapped tokens. Knows text, the tokeniser and the folder's
files; knows no batches.

`read_corpora` reads, checks, filters and splits the text, and says how much there is; `encode`
learns the vocabulary and writes the tokens. The folder holds, for each of train/ and valid/:

    source.bin, target.bin   token ids end to end, little-endian uint16 (uint32 over 65,536 ids),
                             each sentence with its end
    source.idx, target.idx   int64, N + 1 offsets into them, in tokens
    text.tsv                 the normalised "source<TAB>target" lines; for train only if subwords
                             are sampled

and manifest.json, which is written last: a folder without it is not finished, and is made again.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.data.check import Screen, quiet
from dragoman.data.check_report import Report
from dragoman.data.data_options import DataOptions
from dragoman.data.fates import HELD_OUT, KEPT, NOT_WRITTEN
from dragoman.data.steered_sources import check_steering, steer, steering_tags
from dragoman.data.token_files import Mask, TokenPairs, TokenReader, TokenWriter
from dragoman.data.tokenise import tokenise_both
from dragoman.folder import layout
from dragoman.folder.files import write_file
from dragoman.text.tokenizer import Tokenizer, TokenizerOptions, learn

# Characters from which a vocabulary is learnt, spread over the whole text: more takes time and
# changes little.
_LEARN_FROM = {"bpe": 25_000_000, "unigram": 8_000_000}
_WORTH_A_PROCESS = 30_000  # pairs; fewer are tokenised before another process has started
_BLOCK = 1 << 14  # pairs
_UINT16_IDS = 1 << 16
_BUFFER = 1 << 20  # bytes


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
        """The data check."""
        return self.screen.report

    @property
    def scratch(self) -> Path:
        """The folder of files that are deleted in the end."""
        return self.folder / layout.SCRATCH


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
) -> Prepared:
    """Read the text and write its tokens."""
    return encode(read_corpora(data, folder, seed), tokenizer, seed, known)


def read_corpora(
    data: DataOptions,
    folder: Path,
    seed: int,
    say: Callable[[str], None] = quiet,
) -> Text:
    """Read all files once; what an earlier attempt left in the folder is deleted."""
    (folder / layout.MANIFEST).unlink(missing_ok=True)
    for name in (layout.TRAIN, layout.VALID, layout.SCRATCH):
        shutil.rmtree(folder / name, ignore_errors=True)
    scratch = folder / layout.SCRATCH
    scratch.mkdir(parents=True)
    screen = Screen(data, scratch / "sightings", say=say)
    check_steering(data, screen.languages, len(screen.train))
    with open(scratch / "valid.tsv", "w", encoding="utf-8", newline="\n") as out:
        out.writelines(f"{source}\t{target}\n" for source, target in screen.valid_pairs())
    with open(scratch / "train.tsv", "w", _BUFFER, encoding="utf-8", newline="\n") as out:
        screen.read_training(out)
    screen.settle(seed)
    report = screen.report
    say(
        f"{report.pairs:,} pairs read, {report.kept:,} kept for training, "
        f"{report.valid:,} for validation"
    )
    source_language, target_language = screen.languages
    return Text(
        folder=folder,
        screen=screen,
        source_language=source_language,
        target_language=target_language,
        pairs=report.kept,
        valid_pairs=report.valid,
        characters=screen.characters,
    )


def encode(
    text: Text,
    options: TokenizerOptions,
    seed: int,
    known: Tokenizer | None = None,
    say: Callable[[str], None] = quiet,
) -> Prepared:
    """Learn the vocabulary unless one is known, and write the tokens of the text."""
    report = text.report
    tokenizer = known
    if tokenizer is None:
        tokenizer, note = _learn(text, options, seed, say)
        if note:
            report.notes.append(note)
    if text.screen.data.steers:
        report.notes += steer(text.scratch / "train.tsv", text.screen, tokenizer, seed)
    largest = max(tokenizer.source_size, tokenizer.target_size)
    width = 4 if largest > _UINT16_IDS else 2
    _tokenise(text, tokenizer, width, say)
    keep_text = options.sampling > 0 or text.screen.data.augment
    with (
        TokenWriter(text.folder / layout.TRAIN, keep_text) as train,
        TokenWriter(text.folder / layout.VALID, keep_text=True) as valid,
    ):
        _sort_out(text, width, train, valid)
    report.kept = train.pairs
    report.valid = valid.pairs
    if not train.pairs:
        data = text.screen.data
        report.add(
            "nothing",
            data.train[0],
            f"every pair is longer than {data.max_length} tokens",
        )
    _finish(text, {"dtype": f"uint{8 * width}", "longest": max(train.longest, valid.longest)})
    return Prepared(
        folder=text.folder,
        tokenizer=tokenizer,
        report=report,
        source_language=text.source_language,
        target_language=text.target_language,
        pairs=train.pairs,
        valid_pairs=valid.pairs,
        notes=tuple(report.notes),
    )


def _learn(
    text: Text,
    options: TokenizerOptions,
    seed: int,
    say: Callable[[str], None],
) -> tuple[Tokenizer, str]:
    """Learn a vocabulary from one pair of every N, drawn at random: the sample is spread evenly."""
    every = max(1, text.characters // _LEARN_FROM[options.kind])
    generator = random.Random(seed)
    sources: list[str] = []
    targets: list[str] = []
    with (text.scratch / "train.tsv").open("rb") as lines:
        fates = (fate for _, block in _blocks(text.screen) for fate in block)
        kept = (line for fate, line in zip(fates, lines, strict=True) if fate == KEPT)
        while block := list(islice(kept, every)):
            line = generator.choice(block).decode("utf-8")
            source, target = line[:-1].split("\t")
            sources.append(source)
            targets.append(target)
    say(f"learning a vocabulary of {options.vocab_size:,} from {len(sources):,} pairs")
    tags = steering_tags(text.screen.data)
    return learn(replace(options, tags=(*options.tags, *tags)), sources, targets)


def _tokenise(
    text: Text,
    tokenizer: Tokenizer,
    width: int,
    say: Callable[[str], None],
) -> None:
    say(f"tokenising {text.pairs + text.valid_pairs:,} pairs")
    several_cores = (os.cpu_count() or 1) > 1
    apart = text.pairs > _WORTH_A_PROCESS and several_cores and tokenizer.by_words
    files = [text.scratch / "train.tsv", text.scratch / "valid.tsv"]
    tokenise_both(files, tokenizer, width, apart)


def _blocks(screen: Screen) -> Iterator[tuple[int, bytes]]:
    """Yield the corpus and the fates of some pairs, of the pairs that were written, in order."""
    start = 0
    for corpus, end in enumerate(screen.numbered.ends):
        for first in range(start, end, _BLOCK):
            last = min(end, first + _BLOCK)
            written = screen.fates[first:last].translate(None, NOT_WRITTEN)
            yield corpus, bytes(written)
        start = end


def _sort_out(
    text: Text,
    width: int,
    train: TokenWriter,
    valid: TokenWriter,
) -> None:
    """Send every pair to the files where it belongs, and to the report if it is too long."""
    report = text.report
    data = text.screen.data
    with TokenReader(text.scratch / "valid.tsv", width) as reader:
        while pairs := reader.read(_BLOCK):
            is_long = pairs.longer_than(data.max_length)
            valid.add(pairs, ~is_long)
            _note_long(report, data.valid[0], pairs, is_long)
    for row in report.corpora:
        row["kept"] = 0
    with TokenReader(text.scratch / "train.tsv", width) as reader:
        for corpus, block in _blocks(text.screen):
            row = report.corpora[corpus]
            pairs = reader.read(len(block))
            fates = np.frombuffer(block, dtype=np.uint8)
            is_long = pairs.longer_than(data.max_length)
            is_kept = fates == KEPT
            is_held_out = fates == HELD_OUT
            row["kept"] += train.add(pairs, ~is_long & is_kept)
            valid.add(pairs, ~is_long & is_held_out)
            _note_long(report, row["files"][0], pairs, is_long & (is_kept | is_held_out))


def _note_long(
    report: Report,
    file: str,
    pairs: TokenPairs,
    is_long: Mask,
) -> None:
    for index in np.flatnonzero(is_long):
        line = pairs.lines[index].decode("utf-8")
        report.add("long", file, line.replace("\t", " | "), dropped=True)


def _finish(text: Text, facts: dict[str, Any]) -> None:
    """Delete the scratch folder and write the manifest."""
    shutil.rmtree(text.scratch)
    corpora = [
        {"files": row["files"], "weight": row["weight"], "pairs": row["kept"]}
        for row in text.report.corpora
    ]
    manifest = {
        "version": 1,
        **facts,
        "train": corpora,
        "valid": text.report.valid,
        "source_language": text.source_language,
        "target_language": text.target_language,
    }
    content = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    write_file(text.folder / layout.MANIFEST, content.encode())
