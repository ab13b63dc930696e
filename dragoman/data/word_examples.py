"""Sentences whose words have a label each, and pairs of texts, as batches. Knows the tokeniser, and
how tokens lie in files and batches; knows no model.

The label of a word stands on its first piece. In the files of `Pairs` the target of a sentence is
as long as its source: the number of the label plus one on each first piece, and 0 elsewhere.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import torch

from dragoman.data.batches import Batch, Pairs, Rows
from dragoman.errors import DragomanError
from dragoman.text.tokenizer import Frame, Tokenizer

_STAND_IN = "?"  # for a word of which no piece is left, such as a soft hyphen by itself


class WordExamples(Pairs):
    """Sentences, of which the first pieces of words are to be labelled."""

    def __init__(self, folder: Path, dtype: str) -> None:
        super().__init__(folder, dtype)
        is_first = self._ids[1] > 0
        starts = self._offsets[1][:-1]
        self._words = np.zeros(0, np.int64)
        if len(starts):
            self._words = np.add.reduceat(is_first, starts, dtype=np.int64)

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return the tokens and the words of each sentence."""
        return self._lengths(0, rows), self._words[rows]

    def batch(self, rows: Rows) -> Batch:
        """Return sentences whose first pieces have labels."""
        source, lengths = self._padded(0, rows)
        marks, _ = self._padded(1, rows)
        positions = np.flatnonzero(marks)
        labels = marks.ravel()[positions] - 1
        all_full = bool((lengths == source.shape[1]).all())
        return Batch(
            source=torch.from_numpy(source),
            target=torch.from_numpy(source[:, :0]),
            lengths=None if all_full else torch.from_numpy(lengths),
            positions=torch.from_numpy(positions),
            labels=torch.from_numpy(labels),
        )


class TextPairs(Pairs):
    """Pairs of texts, each of which belongs to its partner and to none of the others."""

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return the tokens of the longer text of each pair; a pair is one thing to learn."""
        longer = np.maximum(self._lengths(0, rows), self._lengths(1, rows))
        return longer, np.ones(len(rows), np.int64)

    def batch(self, rows: Rows) -> Batch:
        """Return the first texts of all pairs and below them the second, as source. `positions`
        are a number for each text, the same where texts are; `labels` count the pairs."""
        sides = [self._padded(side, rows) for side in (0, 1)]
        width = max(tokens.shape[1] for tokens, _ in sides)
        wide = []
        for tokens, _ in sides:
            missing = width - tokens.shape[1]
            wide.append(np.pad(tokens, ((0, 0), (0, missing))))
        source = np.concatenate(wide)
        lengths = np.concatenate([counts for _, counts in sides])
        texts = []
        for text, length in zip(source, lengths, strict=True):
            own = text[:length]
            texts.append(zlib.crc32(own.tobytes()))
        return Batch(
            source=torch.from_numpy(source),
            target=torch.from_numpy(source[:, :0]),
            lengths=torch.from_numpy(lengths),
            positions=torch.tensor(texts),
            labels=torch.arange(len(rows)),
        )


def pieces_of_words(
    tokenizer: Tokenizer, sentences: Sequence[Sequence[str]]
) -> list[list[list[int]]]:
    """Return the tokens of each word of each sentence, at least one."""
    lead = _lead(tokenizer)
    words: list[str] = []
    for sentence in sentences:
        words += sentence[:1]
        words += [lead + word for word in sentence[1:]]
    rows = tokenizer.encode(words, "source") if words else []
    if not all(rows):
        stand_in = tokenizer.encode([_STAND_IN], "source")[0] or [0]
        rows = [row or stand_in for row in rows]
    ends = list(accumulate(map(len, sentences), initial=0))
    return [rows[first:end] for first, end in pairwise(ends)]


def parts(words: Sequence[Sequence[int]], most: int) -> list[slice]:
    """Return the words of a sentence in as few parts as have at most `most` tokens each, a word
    that is longer by itself."""
    found = []
    first = 0
    count = 0
    for number, word in enumerate(words):
        if number > first and count + len(word) > most:
            found.append(slice(first, number))
            first = number
            count = 0
        count += len(word)
    found.append(slice(first, len(words)))
    return found


def framed(frame: Frame, words: Sequence[Sequence[int]], most: int) -> tuple[list[int], list[int]]:
    """Return the tokens of some words as the encoder reads them, and where each word begins; of a
    word that is longer than `most`, its end is lost."""
    tokens: list[int] = []
    starts = []
    for word in words:
        starts.append(len(frame.source_start) + len(tokens))
        tokens += word[:most]
    return frame.source(tokens), starts


def _lead(tokenizer: Tokenizer) -> str:
    """What has to stand before a word within a sentence, so that its tokens are those it has
    there: a space for the tokenisers of GPT-2 and RoBERTa."""
    if tokenizer.by_words:
        return ""
    try:
        whole, one, other = tokenizer.encode(["a b", "a", "b"], "source")
    except DragomanError:  # text is ids
        return ""
    return "" if whole == [*one, *other] else " "
