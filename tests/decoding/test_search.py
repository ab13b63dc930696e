"""Search against tables of numbers: worked examples, exhaustive search, and a beam search that never stops early."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dragoman.decoding.beam import beam_search
from dragoman.decoding.greedy import greedy_search
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.seam import Hypothesis
from dragoman.decoding.search import search

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

    def row(self, sentence: int, prefix: Prefix) -> list[float]:
        number = self.seed
        for token in (sentence, *prefix):
            number = (number * 1_000_003 + token + 7) % 2**31
        generator = torch.Generator().manual_seed(number)
        return (1.5 * torch.randn(self.vocabulary, generator=generator)).log_softmax(0).tolist()


class History:
    """A state that is nothing but what has been said; the table is asked with it, so a wrong order gives wrong numbers."""

    def __init__(self, sentences: list[int], beam: int) -> None:
        self.said: list[list[Prefix]] = [[()] * beam for _ in sentences]
        self.sentences, self.steps, self.kept = sentences, 0, 0

    def reorder(self, beams: Tensor) -> None:
        assert beams.shape == (len(self.said), len(self.said[0]))
        self.said = [[row[beam] for beam in order] for row, order in zip(self.said, beams.tolist(), strict=True)]

    def keep(self, sentences: Tensor) -> None:
        assert 0 < len(sentences) < len(self.said)
        self.kept += 1
        self.said = [self.said[row] for row in sentences.tolist()]
        self.sentences = [self.sentences[row] for row in sentences.tolist()]


def run(
    tables: Tables,
    max_lengths: list[int],
    sentences: list[int] | None = None,
    method: Any = None,
    device: str = "cpu",
    **wanted: Any,
) -> tuple[list[list[Hypothesis]], History]:
    options = SearchOptions(**wanted)
    state = History(list(range(len(max_lengths))) if sentences is None else sentences, options.beam)

    def step(tokens: Tensor, state: History) -> Tensor:
        assert tokens.shape == (len(state.said), options.beam)
        if state.steps == 0:
            assert (tokens == BOS).all()
        else:
            state.said = [[(*p, t) for p, t in zip(*row, strict=True)] for row in zip(state.said, tokens.tolist(), strict=True)]
        state.steps += 1
        rows = [[tables.row(n, p) for p in row] for n, row in zip(state.sentences, state.said, strict=True)]
        return torch.tensor(rows, device=device)

    lengths = torch.tensor(max_lengths, device=device)
    if method is not None:
        return method(step, state, lengths, options, BOS, EOS), state
    return search(step, state, len(max_lengths), lengths, options, BOS, EOS), state


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


def plain_beam(tables: Tables, sentence: int, longest: int, beam: int) -> list[tuple[Prefix, float]]:
    """Beam search in so many words, never stopping before the last position."""
    live: list[tuple[Prefix, float]] = [((), 0.0)]
    outputs = []
    for _ in range(longest):
        grown = [((*p, t), s + value) for p, s in live for t, value in enumerate(tables.row(sentence, p))]
        grown = sorted(grown, key=lambda pair: -pair[1])[:beam]
        outputs += [pair for pair in grown if pair[0][-1] == EOS]
        live = [pair for pair in grown if pair[0][-1] != EOS]
    return outputs + live


def ranked(outputs: list[tuple[Prefix, float]], alpha: float, nbest: int) -> list[tuple[Prefix, float]]:
    """Finished before cut, then by score; tokens without EOS."""
    scored = [(p[-1] != EOS, -total / penalty(len(p), alpha), p) for p, total in outputs]
    return [(p if cut else p[:-1], -score) for cut, score, p in sorted(scored)[:nbest]]


def assert_same(found: list[Hypothesis], expected: list[tuple[Prefix, float]]) -> None:
    assert [h.tokens for h in found] == [tokens for tokens, _ in expected]
    assert [h.score for h in found] == pytest.approx([score for _, score in expected], abs=1e-5)


def logs(*probabilities: float) -> list[float]:
    return [math.log(p) if p else NEVER for p in probabilities]


GARDEN_PATH = Tables(
    [
        {
            (): logs(0, 0.1, 0.5, 0.4),  # A looks better than B ...
            (A,): logs(0, 0.3, 0.3, 0.4),
            (B,): logs(0, 0.9, 0.1, 0.0),  # ... but B ends well: 0.4 * 0.9 = 0.36
            (A, B): logs(0, 1.0, 0.0, 0.0),  # greedy: 0.5 * 0.4 * 1 = 0.2
        }
    ],
    otherwise=logs(0, 1.0, 0, 0),
)


def test_greedy_takes_the_likeliest_token_each_time() -> None:
    ((found,),), state = run(GARDEN_PATH, [9], beam=1, alpha=1.0)
    assert found.tokens == (A, B)
    assert found.score == pytest.approx(math.log(0.2) / (8 / 6))
    assert found.log_probs == pytest.approx(logs(0.5, 0.4, 1.0))
    assert found.finished
    assert state.steps == 3


def test_beam_sees_past_the_first_token() -> None:
    (found,), _ = run(GARDEN_PATH, [9], beam=3, nbest=3, alpha=0.0)
    assert [h.tokens for h in found] == [(B,), (A, B), (A,)]
    assert [math.exp(h.score) for h in found] == pytest.approx([0.36, 0.2, 0.15])


def test_a_live_hypothesis_that_can_still_win_is_waited_for() -> None:
    # Alpha 1: ending at once scores -1.0 / (6/6) = -1.0. The other way has -1.2, worse by now, but is certain from there on
    # and 7 tokens long: -1.2 / (12/6) = -0.6.
    waits = {(A,) * n: [NEVER, NEVER, 0.0, NEVER] for n in range(1, 6)}
    waits |= {(): [NEVER, -1.0, -1.2, NEVER], (A,) * 6: [NEVER, 0.0, NEVER, NEVER]}
    ((found,),), _ = run(Tables([waits], logs(0, 1, 0, 0)), [7], beam=2, alpha=1.0)
    assert found.tokens == (A,) * 6
    assert found.score == pytest.approx(-0.6)


@pytest.mark.parametrize(
    ("alpha", "start", "steps"),
    [
        (0.0, -1.1, 1),  # no penalty: what is behind stays behind
        (1.0, -1.9, 10),  # at most -1.9 / (12/6) = -0.95 at length 7: may still beat -1.0 ...
        (1.0, -2.1, 1),  # ... but -2.1 / 2 = -1.05 may not
    ],
)
def test_the_search_ends_when_nothing_can_win(alpha: float, start: float, steps: int) -> None:
    table = Tables([{(): [NEVER, -1.0, start, NEVER]}], [NEVER, NEVER, 0.0, NEVER])
    ((found,),), state = run(table, [7], beam=2, alpha=alpha)
    assert state.steps == min(steps, 7)
    assert found.tokens == ()  # what was cut comes after what finished
    assert found.score == pytest.approx(-1.0)


def test_the_end_waits_for_as_many_as_are_asked_for() -> None:
    _, one = run(GARDEN_PATH, [9], beam=3, nbest=1, alpha=0.0)
    _, three = run(GARDEN_PATH, [9], beam=3, nbest=3, alpha=0.0)
    assert (one.steps, three.steps) == (2, 3)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6), alpha=st.sampled_from([0.0, 0.6, 1.0, 2.5]), longest=st.integers(1, 4), nbest=st.integers(1, 8)
)
def test_a_beam_as_wide_as_the_space_is_exhaustive_search(seed: int, alpha: float, longest: int, nbest: int) -> None:
    tables = RandomTables(seed, vocabulary=4)
    (found,), _ = run(tables, [longest], beam=4 * 3**3, alpha=alpha, nbest=nbest)
    assert_same(found, ranked(list(everything(tables, 0, longest)), alpha, nbest))


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    alpha=st.sampled_from([0.0, 0.6, 1.0, 2.5]),
    longest=st.integers(1, 9),
    beam=st.integers(2, 6),
    data=st.data(),
)
def test_stopping_early_never_changes_the_answer(seed: int, alpha: float, longest: int, beam: int, data: st.DataObject) -> None:
    tables, nbest = RandomTables(seed, vocabulary=5), data.draw(st.integers(1, beam))
    (found,), _ = run(tables, [longest], beam=beam, alpha=alpha, nbest=nbest)
    assert_same(found, ranked(plain_beam(tables, 0, longest, beam), alpha, nbest))


@settings(derandomize=True, max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), max_lengths=st.lists(st.integers(1, 8), min_size=1, max_size=5))
def test_one_beam_is_greedy_exactly(seed: int, max_lengths: list[int]) -> None:
    tables = RandomTables(seed, vocabulary=6)
    greedy, _ = run(tables, max_lengths, method=greedy_search, beam=1)
    assert run(tables, max_lengths, method=beam_search, beam=1)[0] == greedy
    for sentence, longest in enumerate(max_lengths):
        assert_same(greedy[sentence], ranked(plain_beam(tables, sentence, longest, 1), 0.6, 1))


@pytest.mark.parametrize("beam", [1, 4])
@settings(derandomize=True, max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), max_lengths=st.lists(st.integers(1, 9), min_size=2, max_size=12))
def test_a_sentence_does_not_notice_its_company(beam: int, seed: int, max_lengths: list[int]) -> None:
    tables = RandomTables(seed, vocabulary=6)
    together, _ = run(tables, max_lengths, beam=beam, nbest=min(beam, 3))
    alone = [run(tables, [n], [i], beam=beam, nbest=min(beam, 3))[0][0] for i, n in enumerate(max_lengths)]
    assert together == alone


@pytest.mark.parametrize("beam", [1, 3])
def test_sentences_that_are_over_leave_the_batch(beam: int) -> None:
    long = Tables([{} for _ in range(8)], logs(0, 0.01, 0.98, 0.01))
    found, state = run(long, [1, 2, 2, 3, 4, 5, 6, 40], beam=beam)
    assert state.kept >= 3
    assert state.sentences == [7]
    assert [len(row) for row in found] == [1] * 8


@settings(derandomize=True, max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_numbers_belong_to_the_tokens(seed: int) -> None:
    tables = RandomTables(seed, vocabulary=6)
    rows, _ = run(tables, [7, 3, 5], beam=5, nbest=5, alpha=0.8)
    for sentence, found in enumerate(rows):
        assert len({h.tokens for h in found}) == len(found)
        assert sorted(found, key=lambda h: (not h.finished, -h.score)) == found
        for h in found:
            said = (*h.tokens, EOS) if h.finished else h.tokens
            expected = [tables.row(sentence, said[:i])[token] for i, token in enumerate(said)]
            assert h.log_probs == pytest.approx(expected, abs=1e-6)
            assert h.score == pytest.approx(sum(expected) / penalty(len(said), 0.8), abs=1e-5)


@pytest.mark.parametrize("beam", [1, 3])
def test_what_never_ends_is_cut(beam: int) -> None:
    ((found, *_),), state = run(Tables([{}], logs(0, 0, 1, 0)), [5], beam=beam)
    assert found == Hypothesis((A,) * 5, 0.0, (0.0,) * 5)
    assert not found.finished
    assert state.steps == 5


@pytest.mark.parametrize("beam", [1, 3])
def test_nothing_is_said_past_the_maximum_while_others_speak_on(beam: int) -> None:
    # Five go on to (A, A), few enough being over that the first stays in the batch; it would end well, but too late.
    found, state = run(Tables([{(A, A): logs(0, 1, 0, 0)}] * 6, logs(0, 0, 1, 0)), [2, 9, 9, 9, 9, 9], beam=beam)
    assert found[0] == [Hypothesis((A, A), 0.0, (0.0, 0.0))]
    assert found[1] == [Hypothesis((A, A), 0.0, (0.0, 0.0, 0.0))]
    assert state.kept == 0


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("value", [float("nan"), NEVER])
def test_a_step_without_numbers_ends_in_an_empty_hypothesis(beam: int, value: float) -> None:
    broken = Tables([{}, {(A,): logs(0, 1, 0, 0), (): logs(0, 0, 1, 0)}, {(): logs(0, 0, 1, 0)}], [value] * 4)
    found, state = run(broken, [30, 30, 30], beam=beam)
    assert found[0] == found[2] == [Hypothesis((), NEVER, ())]
    assert found[1] == [Hypothesis((A,), 0.0, (0.0, 0.0))]
    assert state.steps == 2


def test_a_beam_without_numbers_leaves_the_others_alone() -> None:
    half_broken = Tables([{(): logs(0, 0, 0.9, 0.1), (A,): [float("nan")] * 4, (B,): logs(0, 1, 0, 0)}], logs(0, 1, 0, 0))
    ((found,),), _ = run(half_broken, [9], beam=2, alpha=0.0)
    assert found.tokens == (B,)
    assert math.exp(found.score) == pytest.approx(0.1)


def test_no_sentences() -> None:
    assert search(lambda tokens, state: tokens, History([], 4), 0, torch.tensor([]), SearchOptions(), BOS, EOS) == []


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("beam", [1, 4])
def test_a_gpu_finds_the_same(beam: int) -> None:
    tables, max_lengths = RandomTables(11, vocabulary=7), [3, 9, 5, 12, 1, 8]
    here, _ = run(tables, max_lengths, beam=beam, nbest=min(beam, 2))
    there, _ = run(tables, max_lengths, beam=beam, nbest=min(beam, 2), device="cuda")
    for found, expected in zip(there, here, strict=True):
        assert_same(found, [(h.tokens, h.score) for h in expected])
