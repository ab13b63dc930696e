"""What a conversion is verified with: the same sentences for every format, and our own translations
of them. Importing this loads no torch."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.folder.layout import VALID_TEXT
from dragoman.text.tokenizer import BOS, EOS, PAD, Tokenizer

if TYPE_CHECKING:
    from dragoman.decoding.hypothesis import Hypothesis
    from dragoman.decoding.search_options import SearchOptions
    from dragoman.model.transformer import Transformer

_SENTENCES = 20
_LONGEST_DRAWN = 15  # tokens of a sentence that is made up


def sentences(folder: Path, tokenizer: Tokenizer, longest: int) -> list[list[int]]:
    """Return the tokens of sentences from the validation set and, where it has too few, of some
    made up of random pieces; at most `longest` each."""
    path = folder / VALID_TEXT
    lines: list[str] = []
    if path.is_file():
        text = path.read_text(encoding="utf-8", errors="replace")
        lines = text.split("\n")[:_SENTENCES]
    sources = [line.split("\t")[0] for line in lines]
    rows = [row[:longest] for row in tokenizer.encode(sources, "source") if row]
    draw = random.Random(1)
    most = min(longest, _LONGEST_DRAWN)
    while len(rows) < _SENTENCES:
        length = draw.randint(1, most)
        row = [draw.randrange(EOS + 1, tokenizer.source_size) for _ in range(length)]
        rows.append(row)
    return rows


def best(
    model: Transformer, rows: Sequence[list[int]], options: SearchOptions, limit: int
) -> list[Hypothesis]:
    """Return the best output of our search for each row, of at most `limit` tokens."""
    import torch

    from dragoman.decoding.search import search
    from dragoman.decoding.step import Problem

    lengths = torch.tensor([len(row) + 1 for row in rows])
    width = int(lengths.max())
    padded = torch.full((len(rows), width), PAD)
    for index, row in enumerate(rows):
        padded[index, : len(row) + 1] = torch.tensor([*row, EOS])
    with torch.inference_mode():
        state = model.start(padded, lengths)
        limits = torch.full_like(lengths, limit)
        problem = Problem(model.step, state, limits, BOS, EOS)
        results = search(problem, options)
    return [hypotheses[0] for hypotheses in results]
