"""The sources that a model folder still holds from its training, as a text file. Knows prepared
tokens and their tokeniser; nothing of models."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.data.batches import Pairs
from dragoman.data.prepare import is_prepared
from dragoman.data.prepared_files import check_pairs
from dragoman.errors import OptionError
from dragoman.folder import files, layout
from dragoman.folder.description import load_description
from dragoman.improving.back_translation import TAG

_BLOCK = 16_384  # rows


def write_sources(teacher: Path, out: Path) -> None:
    """Write the sources of a model's training text to a .gz file: the smallest corpus first, each
    in random order, so that any beginning of the file is a fair sample. Tags of back-translation
    are removed."""
    if not is_prepared(teacher / layout.DATA):
        raise OptionError(
            f"{teacher} holds no training text; name text in its source language to distil it with"
        )
    text = _Sources(teacher)
    with files.aside(out) as new, gzip.open(new, "wt", 1, encoding="utf-8", newline="\n") as file:
        for rows in _blocks(text.corpora):
            for line in text.lines(rows):
                file.write(line + "\n")


def sample_sources(model: Path, most: int) -> list[str]:
    """Some sources of the training text that a model folder still holds, from everywhere in it;
    none if it holds no text."""
    if not is_prepared(model / layout.DATA):
        return []
    text = _Sources(model)
    total = sum(corpus["pairs"] for corpus in text.corpora)
    rows = np.unique(np.linspace(0, total - 1, min(most, total)).astype(np.int64))
    return text.lines(rows) if total else []


class _Sources:
    """The sources of a model's training text."""

    def __init__(self, model: Path) -> None:
        data = model / layout.DATA
        description, self._tokenizer = load_description(model)
        manifest = files.read_json(data / layout.MANIFEST)
        sizes = (self._tokenizer.source_size, self._tokenizer.target_size)
        check_pairs(data / layout.TRAIN, manifest["dtype"], sizes)
        self.corpora: list[dict[str, Any]] = manifest["train"]
        self._pairs = Pairs(data / layout.TRAIN, manifest["dtype"])
        self._around = set(description.frame.source(()))

    def lines(self, rows: np.ndarray) -> list[str]:
        """The sources of these numbers, without tags of back-translation."""
        tokens = [self._pairs.row(0, int(row)).tolist() for row in rows]
        own = [[token for token in row if token not in self._around] for row in tokens]
        texts = self._tokenizer.decode(own, "source")
        return [text.removeprefix(TAG).strip() for text in texts]


def _blocks(corpora: list[dict[str, Any]]) -> Iterator[np.ndarray]:
    """The numbers of all rows, some at a time."""
    draw = np.random.default_rng(1)
    starts = np.cumsum([0, *(corpus["pairs"] for corpus in corpora)])
    for place in np.argsort(np.diff(starts), kind="stable"):
        rows = draw.permutation(np.arange(starts[place], starts[place + 1]))
        yield from (rows[first : first + _BLOCK] for first in range(0, len(rows), _BLOCK))
