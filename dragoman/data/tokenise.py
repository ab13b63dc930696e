"""One side of the text to token ids, line by line. Knows the tokeniser and a text file; knows
nothing of pairs.

Also a program of its own (`python -m dragoman.data.tokenise`), so that two processes tokenise the
two sides at the same time: `multiprocessing` would run the user's own script again in each of them.
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


def tokenise_both(
    files: Sequence[Path],
    tokenizer: Tokenizer,
    width: int,
    apart: bool,
) -> None:
    """Tokenise both sides of "source<TAB>target" files.

    For a.tsv this writes a.source.bin, a.source.len, a.target.bin and a.target.len. The .bin files
    hold ids of `width` bytes, an end after each line, and the .len files a uint32 for each line.
    With `apart` a process of its own takes the target side.
    """
    if not apart:
        tokenise_column(files, "source", Words(tokenizer, "source", width))
        tokenise_column(files, "target", Words(tokenizer, "target", width))
        return
    source_model, target_model = tokenizer.serialised()
    model = files[0].with_suffix(".model")
    model.write_bytes(target_model or source_model)
    command = module_command(
        "dragoman.data.tokenise",
        str(model),
        str(width),
        *map(str, files),
    )
    with subprocess.Popen(
        command,
        env=module_environment(),
        stderr=subprocess.PIPE,
        text=True,
    ) as other:
        try:
            tokenise_column(files, "source", Words(tokenizer, "source", width))
            _, complaint = other.communicate()
        finally:
            other.kill()
    if other.returncode > 1:
        raise OSError(other.returncode, os.strerror(other.returncode), str(files[0].parent))
    if other.returncode:
        raise RuntimeError(f"the process that tokenises the target side failed: {complaint}")


def tokenise_column(
    files: Sequence[Path],
    column: Side,
    words: Words,
) -> None:
    """Tokenise one column of each file."""
    index = ("source", "target").index(column)
    pack_length = struct.Struct("<I").pack
    for file in files:
        with (
            file.open(
                encoding="utf-8",
                newline="\n",
                buffering=_BUFFER,
            ) as lines,
            file.with_suffix(f".{column}.bin").open("wb", _BUFFER) as tokens,
            file.with_suffix(f".{column}.len").open("wb", _BUFFER) as lengths,
        ):
            for line in lines:
                ids = words.line(line[:-1].split("\t")[index])
                tokens.write(ids)
                lengths.write(pack_length(len(ids) // words.width))


def module_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module; files of the current folder are not imported (-P)."""
    return [sys.executable, "-P", "-m", module, *arguments]


def module_environment() -> dict[str, str]:
    """Return an environment in which another process finds this package."""
    package = str(Path(__file__).parents[2])
    known = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([package, known] if known else [package])
    return {**os.environ, "PYTHONPATH": path}


class Words(dict[str, bytes]):
    """Word -> bytes of its ids, `width` bytes for each id.

    A piece never reaches over white space, so the ids of a line are those of its words. For BPE to
    the letter; unigram may settle a tie between two equally likely segmentations otherwise, in one
    line of thousands.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        side: Side,
        width: int,
    ) -> None:
        super().__init__()
        self.width = width
        self._tokenizer = tokenizer
        self._side = side
        self._code = {2: "H", 4: "I"}[width]
        self._framed = getattr(tokenizer.frame, side)
        self._end = self._pack(self._framed([]))

    def line(self, line: str) -> bytes:
        """Return the ids of a normalised line, and the end."""
        if self._tokenizer.by_words:
            words = line.split(" ")
            return b"".join(map(self.__getitem__, words)) + self._end
        ids = self._encode(line)
        return self._pack(self._framed(ids))

    def __missing__(self, word: str) -> bytes:
        ids = self._pack(self._encode(word))
        if len(word) <= _LONGEST_CACHED:
            if len(self) >= _CACHED_WORDS:
                self.clear()
            self[word] = ids
        return ids

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode_normalised([text], self._side)[0]

    def _pack(self, ids: list[int]) -> bytes:
        return struct.pack(f"<{len(ids)}{self._code}", *ids)


def _main(model: str, width: str, *files: str) -> None:
    """Tokenise the target side; a full disk and the like become the exit code."""
    try:
        tokenizer = Tokenizer(Path(model).read_bytes())
        words = Words(tokenizer, "source", int(width))
        tokenise_column([Path(file) for file in files], "target", words)
    except OSError as error:
        sys.exit(error.errno)


if __name__ == "__main__":
    _main(*sys.argv[1:])
