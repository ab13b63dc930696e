"""How words and pairs of texts lie in batches: labels on first pieces, long sentences in parts, and
a text's number for each text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from dragoman.data.blocks import write_sides
from dragoman.data.word_examples import (
    TextPairs,
    WordExamples,
    framed,
    parts,
    pieces_of_words,
)
from dragoman.text.tokenizer import Frame, TokenizerOptions, learn

FRAME = Frame(source_start=(2,))
LINES = ["rain falls on the lonely lake", "the lake is deep and lonely", "falling rain"] * 20


def test_words_have_the_tokens_that_they_have_in_a_line() -> None:
    tokenizer, _ = learn(TokenizerOptions(vocab_size=300), LINES, ())
    sentences = [line.split() for line in LINES[:3]]
    for line, words in zip(LINES, pieces_of_words(tokenizer, sentences), strict=False):
        together = [token for word in words for token in word]
        assert together == tokenizer.encode([line], "source")[0]
    question = tokenizer.encode(["?"], "source")[0]
    assert pieces_of_words(tokenizer, [["\u00ad"], []]) == [[question], []]


def test_a_long_sentence_in_parts() -> None:
    words = [[1] * length for length in (2, 2, 3, 9, 1, 1)]
    assert parts(words, 5) == [slice(0, 2), slice(2, 3), slice(3, 4), slice(4, 6)]
    assert parts(words, 99) == [slice(0, 6)]
    assert framed(FRAME, words[2:4], 5) == ([2, 1, 1, 1, 1, 1, 1, 1, 1, 3], [1, 4])


def test_labels_stand_on_first_pieces(tmp_path: Path) -> None:
    """A word of two pieces labelled 4, one of one piece labelled 0; below it a single word."""
    write_sides(tmp_path, [[2, 10, 11, 12, 3], [2, 13, 3]], [[0, 5, 0, 1, 0], [0, 3, 0]], "<u2")
    examples = WordExamples(tmp_path, "<u2")
    rows = np.array([1, 0])
    tokens, words = examples.lengths(rows)
    assert (tokens.tolist(), words.tolist()) == ([3, 5], [1, 2])
    batch = examples.batch(rows)
    assert batch.source.tolist() == [[2, 13, 3, 0, 0], [2, 10, 11, 12, 3]]
    assert batch.lengths is not None
    assert batch.lengths.tolist() == [3, 5]
    assert batch.positions.tolist() == [1, 6, 8]
    assert batch.labels.tolist() == [2, 4, 0]
    assert examples.batch(np.array([0])).lengths is None


def test_no_sentences(tmp_path: Path) -> None:
    write_sides(tmp_path, [], [], "<u2")
    assert len(WordExamples(tmp_path, "<u2")) == 0


def test_both_texts_of_a_pair_lie_below_each_other(tmp_path: Path) -> None:
    sources = [[2, 10, 3], [2, 10, 11, 3], [2, 10, 3]]
    targets = [[2, 20, 21, 22, 3], [2, 20, 3], [2, 23, 3]]
    write_sides(tmp_path, sources, targets, "<u2")
    examples = TextPairs(tmp_path, "<u2")
    tokens, things = examples.lengths(np.arange(3))
    assert (tokens.tolist(), things.tolist()) == ([5, 4, 3], [1, 1, 1])
    batch = examples.batch(np.arange(3))
    assert batch.source.shape == (6, 5)
    for row, text in enumerate([*sources, *targets]):
        assert batch.source[row].tolist() == text + [0] * (5 - len(text))
    assert batch.lengths is not None
    assert batch.lengths.tolist() == [3, 4, 3, 5, 3, 3]
    texts = batch.positions.view(2, 3)
    assert texts[0, 0] == texts[0, 2]
    assert len(set(texts.flatten().tolist())) == 5
    alone = examples.batch(np.array([2]))
    assert alone.positions[0] == texts[0, 0]  # whatever it is padded to
    assert torch.equal(batch.labels, torch.arange(3))
