"""Pairs of token ids in files: as `tokenise` wrote them, and as they lie in train/ and valid/.

Knows bytes and lengths; knows no text and no tokeniser. Sides are 0 for the source and 1 for the
target.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.folder import layout

Mask = NDArray[np.bool_]
_SIDES = ("source", "target")


@dataclass(frozen=True)
class TokenPairs:
    """Some pairs in a row: their lines of text, and of each side the lengths and the tokens."""

    lines: list[bytes]
    lengths: tuple[NDArray[Any], NDArray[Any]]
    tokens: tuple[NDArray[Any], NDArray[Any]]

    def __bool__(self) -> bool:
        return bool(self.lines)

    def longer_than(self, limit: int) -> Mask:
        """Return which pairs have a side of more tokens."""
        source, target = self.lengths
        return np.maximum(source, target) > limit


class TokenReader:
    """Reads what `tokenise_both` wrote, some pairs at a time."""

    def __init__(self, file: Path, width: int) -> None:
        self._width = width
        self._lines = file.open("rb")
        self._lengths = [file.with_suffix(f".{side}.len").open("rb") for side in _SIDES]
        self._tokens = [file.with_suffix(f".{side}.bin").open("rb") for side in _SIDES]

    def __enter__(self) -> TokenReader:
        return self

    def __exit__(self, *error: object) -> None:
        for file in (self._lines, *self._lengths, *self._tokens):
            file.close()

    def read(self, count: int) -> TokenPairs:
        """Return the next pairs, up to `count`."""
        source_lengths, source_tokens = self._read_side(0, count)
        target_lengths, target_tokens = self._read_side(1, count)
        return TokenPairs(
            lines=list(islice(self._lines, count)),
            lengths=(source_lengths, target_lengths),
            tokens=(source_tokens, target_tokens),
        )

    def _read_side(self, side: int, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
        lengths = np.frombuffer(self._lengths[side].read(4 * count), dtype="<u4")
        size = self._width * int(lengths.sum())
        tokens = np.frombuffer(self._tokens[side].read(size), dtype=f"<u{self._width}")
        return lengths, tokens


class TokenWriter:
    """Writes the files of train/ or valid/: tokens, offsets into them, and the text if asked to."""

    def __init__(self, folder: Path, keep_text: bool) -> None:
        folder.mkdir()
        self._offsets = [(folder / layout.offsets(side)).open("wb") for side in _SIDES]
        self._tokens = [(folder / layout.tokens(side)).open("wb") for side in _SIDES]
        self._text = (folder / layout.TEXT).open("wb") if keep_text else None
        self._ends = [0, 0]
        self.pairs = 0
        self.longest = 0

    def __enter__(self) -> TokenWriter:
        for offsets in self._offsets:
            offsets.write(bytes(8))
        return self

    def __exit__(self, *error: object) -> None:
        for file in (*self._offsets, *self._tokens):
            file.close()
        if self._text:
            self._text.close()

    def add(self, pairs: TokenPairs, chosen: Mask) -> int:
        """Write the chosen ones among some pairs, and return how many they are."""
        count = int(np.count_nonzero(chosen))
        if not count:
            return 0
        self._add_side(0, pairs, chosen)
        self._add_side(1, pairs, chosen)
        if self._text:
            self._text.writelines(pairs.lines[index] for index in np.flatnonzero(chosen))
        self.pairs += count
        return count

    def _add_side(
        self,
        side: int,
        pairs: TokenPairs,
        chosen: Mask,
    ) -> None:
        lengths = pairs.lengths[side][chosen].astype("<i8")
        offsets = np.cumsum(lengths) + self._ends[side]
        is_chosen = np.repeat(chosen, pairs.lengths[side])
        self._offsets[side].write(offsets.astype("<i8").tobytes())
        self._tokens[side].write(pairs.tokens[side][is_chosen].tobytes())
        self._ends[side] += int(lengths.sum())
        self.longest = max(self.longest, int(lengths.max()))
