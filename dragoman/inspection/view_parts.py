"""The parts that the views of all models share: weights, positions and words as lists, and how
much of a text can be shown.

A view is a dictionary that is ready for JSON. Knows numbers and pieces; what runs the models is
known to others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy
import torch

from dragoman.errors import InputError
from dragoman.folder.description import Description
from dragoman.text.words import ATOM, words_of

View = dict[str, Any]

MAX_TOKENS = 200  # of a side, its end counted; what is shown grows with their square
MAX_WEIGHTS = 2**22  # of attention, for models that do not translate: some 30 MB of text
_DIMENSIONS = 64  # of the positional encoding


def check_length(what: str, tokens: int, most: int, least: int = 1) -> None:
    """Raise an error for a text of more tokens than can be shown, or of too few."""
    if not least <= tokens <= most:
        raise InputError(
            f"the {what} has {max(tokens, 0)} tokens, and 1 to {most} can be shown; "
            "give another sentence"
        )


def capacity(description: Description, layers: int) -> int:
    """Return how many positions can be shown; fewer where there are many heads."""
    heads = layers * description.model.n_heads
    side = math.isqrt(MAX_WEIGHTS // heads)
    return max(10, min(MAX_TOKENS, side))


def model_part(description: Description) -> View:
    """Return what a view says of its model."""
    model = description.model
    return {
        "source_language": description.source_language,
        "target_language": description.target_language,
        "encoder_layers": model.encoder_layers,
        "decoder_layers": model.decoder_layers,
        "heads": model.n_heads,
    }


def attention_part(weights: Any) -> View:
    """Return the attention of each stack as (layer, head, row, column)."""
    part: View = {}
    for name, layers in vars(weights).items():
        part[name] = [rounded(layer[0], 3) for layer in layers]
    return part


def positions_part(table: torch.Tensor | None) -> View:
    """Return the positional encoding, with at most 64 of its dimensions.

    Where it has more, pairs of sine and cosine are taken from all wavelengths.
    """
    if table is None:
        return {"positions": [], "dimensions": []}
    size = table.size(1)
    count = min(_DIMENSIONS, size) // 2
    last = size // 2 - 1
    pairs = numpy.linspace(0, last, count).round().astype(int)
    sines = 2 * pairs
    both = numpy.stack([sines, sines + 1], 1)
    dimensions = both.flatten().tolist()
    return {
        "positions": rounded(table[:, dimensions], 2),
        "dimensions": dimensions,
    }


def decoder_part(
    target: list[str], own: Sequence[int], probabilities: torch.Tensor, weights: Any
) -> View:
    """Return what a decoder chose; `own` are the positions of words that it wrote itself."""
    first = own[0] if own else 0
    end = own[-1] + 1 if own else 0
    words = word_spans(target[:end], first)
    return {
        "target": target,
        "target_words": words[first:],
        "probabilities": rounded(probabilities[0], 4),
        **attention_part(weights),
    }


def word_spans(pieces: Sequence[str], before: int = 0, behind: int = 0) -> list[list[int]]:
    """Return [first, last + 1] of each word.

    Each piece is a word in a script without spaces, and so are the first `before` pieces and the
    last `behind` ones.
    """
    numbers = words_of(pieces)
    text = range(before, len(pieces) - behind)
    starts: list[int] = []
    alone_before = True
    for index, piece in enumerate(pieces):
        alone = index not in text or _is_unspaced(piece)
        begins_word = numbers[index] != numbers[index - 1]
        if alone or alone_before or begins_word:
            starts.append(index)
        alone_before = alone
    edges = [*starts, len(pieces)]
    return [list(span) for span in pairwise(edges)]


def pool(groups: numpy.ndarray) -> tuple[list[int], numpy.ndarray]:
    """Return the first member of each group, and a matrix (members, groups) that sums groups."""
    _, first, numbers = numpy.unique(groups, return_index=True, return_inverse=True)
    one_of_each = numpy.eye(len(first))
    return first.tolist(), one_of_each[numbers]


def rounded(values: torch.Tensor, digits: int) -> Any:
    """Return a tensor as lists of rounded numbers."""
    numbers = values.detach().double().cpu().numpy()
    return numbers.round(digits).tolist()


def _is_unspaced(piece: str) -> bool:
    """Return whether a piece begins with a letter that makes no word with one before it."""
    if piece.isascii():
        return False
    first = piece.strip("▁")[:1]
    return first.isalpha() and len(ATOM.findall(f"a{first}")) > 1
