"""Files of trees to pairs of tokens: a sentence and the symbols of its tree. Knows trees, the
tokeniser and the folder's files, which are those of `prepare`; knows no batches."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman.data.data_options import DataOptions
from dragoman.data.duplicates import key
from dragoman.data.token_files import TokenReader, TokenWriter
from dragoman.data.tokenise import tokenise_both
from dragoman.data.treebank import read_trees
from dragoman.errors import InputError, OptionError
from dragoman.folder import layout
from dragoman.folder.files import write_file
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.trees import Tree

MAX_SYMBOLS = 5000
_LEARN_FROM = 25_000_000  # characters of the sentences that a vocabulary is learnt from
_BLOCK = 1 << 14  # pairs
_SHARE = 20  # at most one of so many is held out


@dataclass
class TreeText:
    """Trees that have been read, waiting in the folder to become tokens."""

    folder: Path
    files: tuple[str, ...]  # each a corpus
    weights: list[float]
    counts: list[int] = field(default_factory=list)  # trees of each corpus, for training
    valid: int = 0
    symbols: set[str] = field(default_factory=set)  # of all trees but those of validation files
    characters: int = 0

    @property
    def scratch(self) -> Path:
        """The folder of files that are deleted in the end."""
        return self.folder / layout.SCRATCH

    def lines(self, name: str) -> Iterator[tuple[str, str]]:
        """Yield the sentence and the symbols of each tree of train.tsv or valid.tsv."""
        with open(self.scratch / name, encoding="utf-8", newline="\n") as lines:
            for line in lines:
                sentence, symbols = line.rstrip("\n").split("\t")
                yield sentence, symbols

    def sample(self) -> list[str]:
        """Return sentences to learn a vocabulary from, spread over the whole text."""
        every = max(1, self.characters // _LEARN_FROM)
        sentences = (sentence for sentence, _ in self.lines("train.tsv"))
        return list(islice(sentences, 0, None, every))


@dataclass(frozen=True)
class TreePairs:
    """What the folder now holds."""

    pairs: int
    valid_pairs: int
    dropped: int  # with a side of more tokens than data.max_length
    longest: int  # tokens of a side


def read_treebanks(data: DataOptions, folder: Path, seed: int) -> TreeText:
    """Read all files once; what an earlier attempt left in the folder is deleted. Each file is a
    corpus of its own."""
    if not data.train:
        raise InputError("no training files were named; the task parse needs some")
    weights = list(data.weights) or [1.0] * len(data.train)
    if len(weights) != len(data.train):
        raise OptionError(
            f"data.weights has {len(weights)} numbers for {len(data.train)} files; "
            "give one for each"
        )
    (folder / layout.MANIFEST).unlink(missing_ok=True)
    for name in (layout.TRAIN, layout.VALID, layout.SCRATCH):
        shutil.rmtree(folder / name, ignore_errors=True)
    text = TreeText(folder, data.train, weights)
    text.scratch.mkdir(parents=True)
    valid = 0
    with open(text.scratch / "valid.tsv", "w", encoding="utf-8", newline="\n") as out:
        for file in data.valid:
            for tree in read_trees(file):
                out.write(as_line(tree))
                valid += 1
    text.valid = valid
    if data.valid or not data.held_out:
        _write_training(text, data.train, "train.tsv")
        return text
    keys = _write_training(text, data.train, "all.tsv")
    _hold_out(text, keys, data.held_out, seed)
    return text


def as_line(tree: Tree) -> str:
    """Return a tree as a line of a .tsv file: its words and its symbols."""
    return f"{' '.join(tree.words)}\t{' '.join(tree.symbols)}\n"


def write_tree_pairs(text: TreeText, tokenizer: Tokenizer, max_length: int) -> TreePairs:
    """Write the tokens of the text, and the manifest last."""
    width = 4 if tokenizer.source_size > 1 << 16 else 2
    files = [text.scratch / "train.tsv", text.scratch / "valid.tsv"]
    tokenise_both(files, tokenizer, width, apart=False)
    with (
        TokenWriter(text.folder / layout.TRAIN, keep_text=False) as train,
        TokenWriter(text.folder / layout.VALID, keep_text=True) as valid,
    ):
        with TokenReader(files[0], width) as reader:
            kept = [_copy(reader, count, train, max_length) for count in text.counts]
        with TokenReader(files[1], width) as reader:
            _copy(reader, text.valid, valid, max_length)
    if not train.pairs:
        raise InputError(f"every tree is longer than data.max_length, {max_length} tokens")
    longest = max(train.longest, valid.longest)
    shutil.rmtree(text.scratch)
    manifest = {
        "version": 1,
        "dtype": f"uint{8 * width}",
        "longest": longest,
        "train": [
            {"files": [file], "weight": weight, "pairs": count}
            for file, weight, count in zip(text.files, text.weights, kept, strict=True)
        ],
        "valid": valid.pairs,
    }
    content = json.dumps(manifest, indent=1) + "\n"
    write_file(text.folder / layout.MANIFEST, content.encode())
    read = sum(text.counts) + text.valid
    return TreePairs(train.pairs, valid.pairs, read - train.pairs - valid.pairs, longest)


def _write_training(text: TreeText, files: Sequence[str], name: str) -> NDArray[np.uint64]:
    """Write all trees of the training files; return a key of each sentence."""
    keys = bytearray()
    with open(text.scratch / name, "w", encoding="utf-8", newline="\n") as out:
        for file in files:
            count = 0
            for tree in read_trees(file):
                line = as_line(tree)
                sentence = line.partition("\t")[0]
                out.write(line)
                keys += key(sentence)
                text.symbols.update(tree.symbols)
                text.characters += len(sentence)
                count += 1
                if len(text.symbols) > MAX_SYMBOLS:
                    raise InputError(
                        f"{file} has more than {MAX_SYMBOLS:,} labels and tags; "
                        "it is no treebank as the Penn Treebank is one"
                    )
            text.counts.append(count)
    return np.frombuffer(bytes(keys), dtype="<u8")


def _hold_out(text: TreeText, keys: NDArray[np.uint64], most: int, seed: int) -> None:
    """Set some of all trees aside for validation, with every tree of the same sentence."""
    limit = min(most, len(keys) // _SHARE)
    salt = np.frombuffer(key(f"held out {seed}"), dtype="<u8")[0]
    sentences, sizes = np.unique(keys ^ salt, return_counts=True)
    chosen = sentences[np.cumsum(sizes) <= limit]
    is_held_out = np.isin(keys ^ salt, chosen)
    starts = np.concatenate([[0], np.cumsum(text.counts)])
    with (
        open(text.scratch / "all.tsv", "rb") as lines,
        open(text.scratch / "train.tsv", "wb") as train,
        open(text.scratch / "valid.tsv", "wb") as valid,
    ):
        for line, held_out in zip(lines, is_held_out, strict=True):
            (valid if held_out else train).write(line)
    text.valid = int(is_held_out.sum())
    for corpus, start in enumerate(starts[:-1]):
        moved = int(is_held_out[start : starts[corpus + 1]].sum())
        text.counts[corpus] -= moved


def _copy(reader: TokenReader, count: int, writer: TokenWriter, max_length: int) -> int:
    """Copy the next pairs but those that are too long; return how many were copied."""
    copied = 0
    while count:
        pairs = reader.read(min(count, _BLOCK))
        copied += writer.add(pairs, ~pairs.longer_than(max_length))
        count -= len(pairs.lines)
    return copied
