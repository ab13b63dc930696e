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
    data = teacher / layout.DATA
    if not is_prepared(data):
        raise OptionError(
            f"{teacher} holds no training text; name text in its source language to distil it with"
        )
    description, tokenizer = load_description(teacher)
    manifest = files.read_json(data / layout.MANIFEST)
    sizes = (tokenizer.source_size, tokenizer.target_size)
    check_pairs(data / layout.TRAIN, manifest["dtype"], sizes)
    pairs = Pairs(data / layout.TRAIN, manifest["dtype"])
    around = set(description.frame.source(()))
    with files.aside(out) as new, gzip.open(new, "wt", 1, encoding="utf-8", newline="\n") as file:
        for rows in _blocks(manifest["train"]):
            tokens = [pairs.row(0, int(row)).tolist() for row in rows]
            own = [[token for token in row if token not in around] for row in tokens]
            for text in tokenizer.decode(own, "source"):
                file.write(text.removeprefix(TAG).strip() + "\n")


def _blocks(corpora: list[dict[str, Any]]) -> Iterator[np.ndarray]:
    """The numbers of all rows, some at a time."""
    draw = np.random.default_rng(1)
    starts = np.cumsum([0, *(corpus["pairs"] for corpus in corpora)])
    for place in np.argsort(np.diff(starts), kind="stable"):
        rows = draw.permutation(np.arange(starts[place], starts[place + 1]))
        yield from (rows[first : first + _BLOCK] for first in range(0, len(rows), _BLOCK))
