"""A search that runs away is found out and tried again; tables of numbers stand for the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search import Loop
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import Problem
from dragoman.tasks.whisper_fallback import compression_ratio, listen

END = 0
WORDS = range(1, 9)  # said one after the other
DOT = 9
OTHERS = range(10, 40)
SIZE = 40
LONGEST = 224
Row = Callable[[int, int], list[float]]  # the newest token and the position -> probabilities


class Newest:
    """A state that knows the newest token of each beam and how many there were."""

    def __init__(self) -> None:
        self.position = 0

    def reorder(self, beams: Tensor) -> None: ...

    def keep(self, sentences: Tensor) -> None: ...


def searched(row: Row, options: SearchOptions, eager: bool = True) -> list[Hypothesis]:
    def step(tokens: Tensor, state: Newest) -> Tensor:
        rows = [[row(token, state.position) for token in beams] for beams in tokens.tolist()]
        state.position += 1
        return torch.tensor(rows).log()

    limit = torch.tensor([LONGEST])
    problem = Problem(step, Newest(), limit, start=END, end=END, normalised=True, eager=eager)
    return Loop(problem, options).run()[0]


def probabilities(**likely: float) -> list[float]:
    """Of all tokens; what is left of 1 is shared by the others."""
    left = (1.0 - sum(likely.values())) / len(OTHERS)
    row = [0.0] * SIZE
    for token in OTHERS:
        row[token] = left
    for name, value in likely.items():
        row[int(name[1:])] = value
    return row


def tempted(token: int, position: int) -> list[float]:
    """Eight words that are hard to hear, then the end; but whoever says a dot may say dots."""
    if position < len(WORDS):
        return probabilities(**{f"t{WORDS[position]}": 0.15})
    if token == DOT:
        return probabilities(t9=0.985, t0=0.015)
    return probabilities(t0=0.6, t9=0.3)


def stuck(token: int, position: int) -> list[float]:
    """Dots without end, unless something else is drawn, which leads to the words."""
    if token == END and position == 0:
        return probabilities(t9=0.9)
    if token == DOT:
        return probabilities(t9=0.9, t1=0.08)
    if token in WORDS and token < WORDS[-1]:
        return probabilities(**{f"t{token + 1}": 0.98})
    return probabilities(t0=0.98)


def text(tokens: Sequence[int]) -> str:
    return " ".join("." if token == DOT else f"word{token}" for token in tokens)


def test_the_length_penalty_of_translation_runs_away_here_and_the_mean_does_not() -> None:
    old = searched(tempted, SearchOptions(5), eager=False)[0]
    assert len(old.tokens) > 200
    assert set(old.tokens[8:]) == {DOT}
    heard = listen(lambda options: searched(tempted, options), text, 0.0, 5)
    assert heard is not None
    assert not heard.is_repetitive
    assert heard.tokens[:8] == tuple(WORDS)
    assert len(heard.tokens) < 14


def test_what_repeats_itself_is_drawn_again() -> None:
    first = searched(stuck, SearchOptions(1))
    assert compression_ratio(text(first[0].tokens)) > 2.4
    heard = listen(lambda options: searched(stuck, options), text, 0.0, 1)
    assert heard is not None
    assert heard.temperature > 0
    assert not heard.is_repetitive
    again = listen(lambda options: searched(stuck, options), text, 0.0, 1)
    assert heard == again  # the seeds are fixed


def given(*results: tuple[tuple[int, ...], float]) -> Callable[[SearchOptions], list[Hypothesis]]:
    """A search that returns one result after the other: its tokens and the mean log-probability."""
    remaining = iter(results)

    def search(options: SearchOptions) -> list[Hypothesis]:
        tokens, mean = next(remaining)
        return [Hypothesis(tokens, 0.0, (mean,) * (len(tokens) + 1))]

    return search


GOOD = tuple(WORDS)
DOTS = (DOT,) * 60


@pytest.mark.parametrize(
    ("results", "silence", "expected", "temperature"),
    [
        ([(GOOD, -0.9)], 0.0, GOOD, 0.0),
        ([(GOOD, -0.9)], 0.99, GOOD, 0.0),  # a model that is sure is believed
        ([(GOOD, -1.1)], 0.61, None, 0.0),
        ([(DOTS, -0.1), (GOOD, -0.5)], 0.0, GOOD, 0.2),
        ([(GOOD, -1.1), (DOTS, -0.2), (GOOD, -0.5)], 0.0, GOOD, 0.4),
        ([(DOTS, -0.1), (GOOD, -1.5)], 0.7, None, 0.2),
    ],
)
def test_what_is_believed(
    results: list[tuple[tuple[int, ...], float]],
    silence: float,
    expected: tuple[int, ...] | None,
    temperature: float,
) -> None:
    heard = listen(given(*results), text, silence, 5)
    assert (heard and heard.tokens) == expected
    assert heard is None or heard.temperature == temperature


def test_where_nothing_can_be_believed_the_best_is_taken() -> None:
    other = tuple(OTHERS[:8])
    attempts = [(DOTS, -0.01), (GOOD, -3.0), (other, -1.2), (GOOD, -2.0), (DOTS, -0.1), (DOTS, 0.0)]
    heard = listen(given(*attempts), text, 0.0, 5)
    assert heard is not None
    assert heard.tokens == other
    longer = (*DOTS, *DOTS)
    heard = listen(given((longer, -0.1), *[(DOTS, -0.2)] * 5), text, 0.0, 5)
    assert heard is not None
    assert heard.tokens == DOTS


def test_the_best_of_a_search_has_the_best_mean() -> None:
    """A sum of -2 over two tokens is worse than one of -3 over six."""
    short = Hypothesis((1, 2), -2.0, (-1.0, -0.5, -0.5))
    longer = Hypothesis(tuple(range(1, 7)), -3.0, (-0.5,) * 6 + (0.0,))
    cut = Hypothesis((1,) * 9, -0.1, (-0.01,) * 9)
    heard = listen(lambda options: [short, cut, longer], text, 0.0, 5)
    assert heard is not None
    assert heard.tokens == longer.tokens
    assert heard.log_prob == pytest.approx(-3 / 7)


def test_a_model_of_nothing_says_nothing() -> None:
    heard = listen(lambda options: [Hypothesis((), -math.inf, ())], text, 0.0, 5)
    assert heard is not None
    assert heard.tokens == ()
