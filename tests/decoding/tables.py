"""Tables of numbers in the place of a model, what is in them searched through in so many words,
and the search run on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.rules import Rules
from dragoman.decoding.search import Loop, search
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import Chooser, Problem

BOS, EOS, A, B = 0, 1, 2, 3
NEVER = float("-inf")
Prefix = tuple[int, ...]


class Tables:
    """log p(token | sentence, all that was said before): every prefix has a row of its own."""

    def __init__(self, rows: list[dict[Prefix, list[float]]], otherwise: list[float]) -> None:
        self.rows, self.otherwise = rows, otherwise

    def row(self, sentence: int, prefix: Prefix) -> list[float]:
        return self.rows[sentence].get(prefix, self.otherwise)


class RandomTables(Tables):
    def __init__(self, seed: int, vocabulary: int) -> None:
        self.seed, self.vocabulary = seed, vocabulary
        self.known: dict[tuple[int, Prefix], list[float]] = {}

    def row(self, sentence: int, prefix: Prefix) -> list[float]:
        if (sentence, prefix) not in self.known:
            self.known[sentence, prefix] = self.drawn(sentence, prefix)
        return self.known[sentence, prefix]

    def drawn(self, sentence: int, prefix: Prefix) -> list[float]:
        number = self.seed
        for token in (sentence, *prefix):
            number = (number * 1_000_003 + token + 7) % 2**31
        generator = torch.Generator().manual_seed(number)
        return (1.5 * torch.randn(self.vocabulary, generator=generator)).log_softmax(0).tolist()


class History:
    """A state that is nothing but what has been said; the table is asked with it, so a wrong
    order gives wrong numbers."""

    def __init__(self, sentences: list[int], beam: int) -> None:
        self.said: list[list[Prefix]] = [[()] * beam for _ in sentences]
        self.sentences, self.steps, self.kept = sentences, 0, 0

    def reorder(self, beams: Tensor) -> None:
        assert beams.shape == (len(self.said), len(self.said[0]))
        self.said = [
            [row[beam] for beam in order]
            for row, order in zip(self.said, beams.tolist(), strict=True)
        ]

    def keep(self, sentences: Tensor) -> None:
        assert 0 < len(sentences) < len(self.said)
        self.kept += 1
        self.said = [self.said[row] for row in sentences.tolist()]
        self.sentences = [self.sentences[row] for row in sentences.tolist()]


def run(
    tables: Tables,
    max_lengths: list[int],
    sentences: list[int] | None = None,
    prefixes: list[list[int]] | None = None,
    device: str = "cpu",
    chooser: Callable[[Problem[History]], Chooser] | None = None,
    rules: Callable[[Problem[History], SearchOptions], Rules] | None = None,
    **wanted: Any,
) -> tuple[list[list[Hypothesis]], History]:
    options = SearchOptions(**wanted)
    numbers = list(range(len(max_lengths))) if sentences is None else sentences
    state = History(numbers, options.hypotheses)

    def step(tokens: Tensor, state: History) -> Tensor:
        assert tokens.shape == (len(state.said), options.hypotheses)
        if state.steps == 0:
            assert (tokens == BOS).all()
        else:
            state.said = [
                [(*p, t) for p, t in zip(*row, strict=True)]
                for row in zip(state.said, tokens.tolist(), strict=True)
            ]
        state.steps += 1
        rows = [
            [tables.row(n, p) for p in row]
            for n, row in zip(state.sentences, state.said, strict=True)
        ]
        return torch.tensor(rows, device=device)

    lengths = torch.tensor(max_lengths, device=device)
    problem = Problem(step, state, lengths, BOS, EOS, prefixes or (), normalised=True)
    if rules is not None:
        return Loop(problem, options, rules(problem, options)).run(), state
    return search(problem, options, chooser and chooser(problem)), state


def penalty(length: int, alpha: float) -> float:
    return math.pow((5 + length) / 6, alpha)


def everything(
    tables: Tables, sentence: int, longest: int, prefix: Prefix = (), total: float = 0.0
) -> Iterator[tuple[Prefix, float]]:
    """Every output there is with its log-probability; EOS stands at the end of those that end."""
    for token, value in enumerate(tables.row(sentence, prefix)):
        if token == EOS or len(prefix) + 1 == longest:
            yield (*prefix, token), total + value
        else:
            yield from everything(tables, sentence, longest, (*prefix, token), total + value)


def plain_beam(
    tables: Tables, sentence: int, longest: int, beam: int, start: tuple[Prefix, float] = ((), 0.0)
) -> list[tuple[Prefix, float]]:
    """Beam search in so many words, never stopping before the last position."""
    live, outputs = [start], []
    for _ in range(longest - len(start[0])):
        grown = [
            ((*p, t), s + value) for p, s in live for t, value in enumerate(tables.row(sentence, p))
        ]
        grown = sorted(grown, key=lambda pair: -pair[1])[:beam]
        outputs += [pair for pair in grown if pair[0][-1] == EOS]
        live = [pair for pair in grown if pair[0][-1] != EOS]
    return outputs + live


def ranked(
    outputs: list[tuple[Prefix, float]], alpha: float, nbest: int
) -> list[tuple[Prefix, float]]:
    """Finished before cut, then by score; tokens without EOS."""
    scored = [(p[-1] != EOS, -total / penalty(len(p), alpha), p) for p, total in outputs]
    return [(p if cut else p[:-1], -score) for cut, score, p in sorted(scored)[:nbest]]


def assert_same(found: list[Hypothesis], expected: list[tuple[Prefix, float]]) -> None:
    assert [h.tokens for h in found] == [tokens for tokens, _ in expected]
    assert [h.score for h in found] == pytest.approx([score for _, score in expected], abs=1e-5)


def logs(*probabilities: float) -> list[float]:
    return [math.log(p) if p else NEVER for p in probabilities]
