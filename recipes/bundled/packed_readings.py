"""From packed files, and from lines that a model wrote, to pairs of tokens. Runs in the processes
of a pool; knows tokens and lines, and no stage."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import packed_text
from bundled.workshop import Direction
from numpy.typing import NDArray
from packed_text import Packed, Portion, Tokens

from dragoman.data.token_files import TokenPairs
from dragoman.improving.back_translation import TAG


@dataclass(frozen=True)
class Reading:
    """Some pairs as sources and targets: packed ones, or lines of a file with the source first."""

    text: Packed | Portion
    direction: Direction
    is_back: bool = False  # lines of the other direction: their sources get the tag of such text


@dataclass(frozen=True)
class Side:
    """The tokens of all sources or of all targets, end to end."""

    tokens: Tokens
    lengths: NDArray[Any]

    @classmethod
    def of_file(cls, file: Path) -> Side:
        tokens = packed_text.tokens_of(file)
        return cls(tokens, packed_text.lengths_of(tokens))

    @classmethod
    def of_lines(cls, lines: Sequence[str]) -> Side:
        words = packed_text.words()
        found = [words.line(line) for line in lines]
        sizes = np.array([len(one) for one in found], "<u4")
        tokens = np.frombuffer(b"".join(found), "<u2")
        return cls(tokens, sizes // np.uint32(2))  # a token has two bytes

    def spelt(self) -> list[str]:
        """The text of each line."""
        tokenizer = packed_text.tokenizer()
        return packed_text.lines_of(tokenizer, self.tokens, self.lengths)


def begin_reading(model: str) -> None:
    """Prepare a process of the pool."""
    os.nice(5)  # training that goes on meanwhile comes first
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    packed_text.begin_tokenising(model)


def column(file: Path) -> list[str]:
    """The lines of a packed file."""
    return Side.of_file(file).spelt()


def read(reading: Reading, with_text: bool) -> TokenPairs:
    """The pairs of a reading as tokens, with their lines of text if those are wanted."""
    if isinstance(reading.text, Portion):
        return _read_lines(reading, reading.text)
    return _read_packed(reading, reading.text, with_text)


def _read_packed(reading: Reading, packed: Packed, with_text: bool) -> TokenPairs:
    direction = reading.direction
    source = Side.of_file(packed.files[direction.source])
    target = Side.of_file(packed.files[direction.target])
    lines: list[bytes] = []
    if with_text:
        lines = _rows(source.spelt(), target.spelt())
    return _pairs(lines, source, target)


def _read_lines(reading: Reading, portion: Portion) -> TokenPairs:
    """The pairs of some lines; lines that are damaged are left out."""
    sources = []
    targets = []
    for line in portion.lines():
        source, _, target = line.partition("\t")
        is_whole = source and target and "\t" not in target
        if is_whole and reading.is_back:
            sources.append(f"{TAG} {target}")
            targets.append(source)
        elif is_whole:
            sources.append(source)
            targets.append(target)
    lines = _rows(sources, targets)
    return _pairs(lines, Side.of_lines(sources), Side.of_lines(targets))


def _rows(sources: Sequence[str], targets: Sequence[str]) -> list[bytes]:
    rows = []
    for source, target in zip(sources, targets, strict=True):
        row = f"{source}\t{target}\n"
        rows.append(row.encode())
    return rows


def _pairs(lines: list[bytes], source: Side, target: Side) -> TokenPairs:
    lengths = (source.lengths, target.lengths)
    tokens = (source.tokens, target.tokens)
    return TokenPairs(lines, lengths, tokens)
