"""One side of the text to token ids, line by line. Knows the tokeniser and a text file; knows
nothing of pairs.

Also a program of its own (`python -m dragoman.data.tokenise`), so that the two sides are cut at the
same time by two processes: `multiprocessing` would run the user's own script again in each of them.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dragoman.text.tokenizer import Side, Tokenizer

_CACHED_WORDS = 500_000
_LONGEST_CACHED = 30  # characters; text without spaces is not worth keeping
_BUFFER = 1 << 20


def cut_both(files: Sequence[Path], tokenizer: Tokenizer, width: int, apart: bool) -> None:
    """Cuts the sides of "source<TAB>target" files; for a.tsv they become a.source.bin,
    a.source.len, a.target.bin, …

    The .bin files hold ids of `width` bytes, an end after each line, and the .len files a uint32
    for each line. With `apart` a process of its own takes the target side.
    """
    if not apart:
        cut(files, "source", tokenizer, "source", width)
        cut(files, "target", tokenizer, "target", width)
        return
    model = files[0].with_suffix(".model")
    model.write_bytes(tokenizer.serialised()[not tokenizer.joint] or b"")
    command, environment = program(
        "dragoman.data.tokenise", str(model), str(width), *map(str, files)
    )
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as other:
        try:
            cut(files, "source", tokenizer, "source", width)
            _, complaint = other.communicate()
        finally:
            other.kill()
    if other.returncode > 1:
        raise OSError(other.returncode, os.strerror(other.returncode), str(files[0].parent))
    if other.returncode:
        raise RuntimeError(f"the process that cuts the target side failed: {complaint}")


def program(module: str, *words: str) -> tuple[list[str], dict[str, str]]:
    """The command and the environment of a module that is a program; what lies in the current
    folder is not imported (-P)."""
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]
    return [sys.executable, "-P", "-m", module, *words], {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }


def cut(files: Sequence[Path], column: Side, tokenizer: Tokenizer, side: Side, width: int) -> None:
    """One column of each file, by the tokeniser's model for `side`."""
    words = Words(tokenizer, side, width)
    place = ("source", "target").index(column)
    length = struct.Struct("<I").pack
    for file in files:
        with (
            file.open(encoding="utf-8", newline="\n", buffering=_BUFFER) as lines,
            file.with_suffix(f".{column}.bin").open("wb", _BUFFER) as tokens,
            file.with_suffix(f".{column}.len").open("wb", _BUFFER) as lengths,
        ):
            for line in lines:
                ids = words.line(line[:-1].split("\t")[place])
                tokens.write(ids)
                lengths.write(length(len(ids) // width))


class Words(dict[str, bytes]):
    """Word -> bytes of its ids. A piece never reaches over white space, so the ids of a line are
    those of its words.

    For BPE to the letter; unigram may settle a tie between two equally likely cuttings otherwise,
    in one line of thousands.
    """

    def __init__(self, tokenizer: Tokenizer, side: Side, width: int) -> None:
        super().__init__()
        self._tokenizer, self._side, self._code = tokenizer, side, {2: "H", 4: "I"}[width]
        self._framed = getattr(tokenizer.frame, side)
        self._end = self._pack(self._framed([]))

    def line(self, line: str) -> bytes:
        """The ids of a normalised line, and the end."""
        if not self._tokenizer.by_words:
            return self._pack(
                self._framed(self._tokenizer.encode_normalised([line], self._side)[0])
            )
        return b"".join(map(self.__getitem__, line.split(" "))) + self._end

    def __missing__(self, word: str) -> bytes:
        ids = self._pack(self._tokenizer.encode_normalised([word], self._side)[0])
        if len(word) <= _LONGEST_CACHED:
            if len(self) >= _CACHED_WORDS:
                self.clear()
            self[word] = ids
        return ids

    def _pack(self, ids: list[int]) -> bytes:
        return struct.pack(f"<{len(ids)}{self._code}", *ids)


def _main(model: str, width: str, *files: str) -> None:
    """The target side alone; a full disk and the like become the exit code."""
    try:
        cut(
            [Path(file) for file in files],
            "target",
            Tokenizer(Path(model).read_bytes()),
            "source",
            int(width),
        )
    except OSError as error:
        sys.exit(error.errno)


if __name__ == "__main__":
    _main(*sys.argv[1:])
