"""Search against tables of numbers: worked examples, exhaustive search, and a beam search that
never stops early."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import (
    BOS,
    EOS,
    NEVER,
    A,
    B,
    History,
    RandomTables,
    Tables,
    assert_same,
    everything,
    logs,
    penalty,
    plain_beam,
    ranked,
    run,
)

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search import search
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import Problem

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
    # Alpha 1: ending at once scores log 0.6 / (6/6) = -0.51. The other way has log 0.4, worse by
    # now, but is certain from there on and 7 tokens long: -0.92 / (12/6) = -0.46.
    waits = {(A,) * n: logs(0, 0, 1, 0) for n in range(1, 6)}
    waits |= {(): logs(0, 0.6, 0.4, 0), (A,) * 6: logs(0, 1, 0, 0)}
    ((found,),), _ = run(Tables([waits], logs(0, 1, 0, 0)), [7], beam=2, alpha=1.0)
    assert found.tokens == (A,) * 6
    assert found.score == pytest.approx(math.log(0.4) / 2)


@pytest.mark.parametrize(
    ("alpha", "end", "steps"),
    [
        (0.0, 0.6, 1),  # no penalty: what is behind stays behind
        (1.0, 0.6, 7),  # log 0.4 / (12/6) = -0.46 at length 7 may still beat log 0.6 = -0.51 ...
        (1.0, 0.7, 1),  # ... but log 0.3 / 2 = -0.60 may not beat log 0.7 = -0.36
    ],
)
def test_the_search_ends_when_nothing_can_win(alpha: float, end: float, steps: int) -> None:
    table = Tables([{(): logs(0, end, 1 - end, 0)}], logs(0, 0, 1, 0))
    ((found,),), state = run(table, [7], beam=2, alpha=alpha)
    assert state.steps == steps
    assert found.tokens == ()  # what was cut comes after what finished
    assert found.score == pytest.approx(math.log(end))


def test_the_end_waits_for_as_many_as_are_asked_for() -> None:
    _, one = run(GARDEN_PATH, [9], beam=3, nbest=1, alpha=0.0)
    _, three = run(GARDEN_PATH, [9], beam=3, nbest=3, alpha=0.0)
    assert (one.steps, three.steps) == (2, 3)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    alpha=st.sampled_from([0.0, 0.6, 1.0, 2.5]),
    longest=st.integers(1, 4),
    nbest=st.integers(1, 8),
)
def test_a_beam_as_wide_as_the_space_is_exhaustive_search(
    seed: int, alpha: float, longest: int, nbest: int
) -> None:
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
def test_stopping_early_never_changes_the_answer(
    seed: int, alpha: float, longest: int, beam: int, data: st.DataObject
) -> None:
    tables, nbest = RandomTables(seed, vocabulary=5), data.draw(st.integers(1, beam))
    (found,), _ = run(tables, [longest], beam=beam, alpha=alpha, nbest=nbest)
    assert_same(found, ranked(plain_beam(tables, 0, longest, beam), alpha, nbest))


@settings(derandomize=True, max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), max_lengths=st.lists(st.integers(1, 8), min_size=1, max_size=5))
def test_one_beam_is_greedy_exactly(seed: int, max_lengths: list[int]) -> None:
    tables = RandomTables(seed, vocabulary=6)
    greedy, _ = run(tables, max_lengths, beam=1)
    for sentence, longest in enumerate(max_lengths):
        assert_same(greedy[sentence], ranked(plain_beam(tables, sentence, longest, 1), 0.6, 1))


@pytest.mark.parametrize("beam", [1, 4])
@settings(derandomize=True, max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), max_lengths=st.lists(st.integers(1, 9), min_size=2, max_size=12))
def test_a_sentence_does_not_notice_its_company(
    beam: int, seed: int, max_lengths: list[int]
) -> None:
    tables = RandomTables(seed, vocabulary=6)
    together, _ = run(tables, max_lengths, beam=beam, nbest=min(beam, 3))
    alone = [
        run(tables, [n], [i], beam=beam, nbest=min(beam, 3))[0][0]
        for i, n in enumerate(max_lengths)
    ]
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
    # Five go on to (A, A), few enough being over that the first stays in the batch; it would end
    # well, but too late.
    found, state = run(
        Tables([{(A, A): logs(0, 1, 0, 0)}] * 6, logs(0, 0, 1, 0)), [2, 9, 9, 9, 9, 9], beam=beam
    )
    assert found[0] == [Hypothesis((A, A), 0.0, (0.0, 0.0))]
    assert found[1] == [Hypothesis((A, A), 0.0, (0.0, 0.0, 0.0))]
    assert state.kept == 0


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("value", [float("nan"), NEVER])
def test_a_step_without_numbers_ends_in_an_empty_hypothesis(beam: int, value: float) -> None:
    broken = Tables(
        [{}, {(A,): logs(0, 1, 0, 0), (): logs(0, 0, 1, 0)}, {(): logs(0, 0, 1, 0)}], [value] * 4
    )
    found, state = run(broken, [30, 30, 30], beam=beam)
    assert found[0] == found[2] == [Hypothesis((), NEVER, ())]
    assert found[1] == [Hypothesis((A,), 0.0, (0.0, 0.0))]
    assert state.steps == 2


def test_a_beam_without_numbers_leaves_the_others_alone() -> None:
    half_broken = Tables(
        [{(): logs(0, 0, 0.9, 0.1), (A,): [float("nan")] * 4, (B,): logs(0, 1, 0, 0)}],
        logs(0, 1, 0, 0),
    )
    ((found,),), _ = run(half_broken, [9], beam=2, alpha=0.0)
    assert found.tokens == (B,)
    assert math.exp(found.score) == pytest.approx(0.1)


def test_no_sentences() -> None:
    assert (
        search(
            Problem(lambda tokens, state: tokens, History([], 4), torch.tensor([]), BOS, EOS),
            SearchOptions(),
        )
        == []
    )


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("beam", [1, 4])
def test_a_gpu_finds_the_same(beam: int) -> None:
    tables, max_lengths = RandomTables(11, vocabulary=7), [3, 9, 5, 12, 1, 8]
    here, _ = run(tables, max_lengths, beam=beam, nbest=min(beam, 2))
    there, _ = run(tables, max_lengths, beam=beam, nbest=min(beam, 2), device="cuda")
    for found, expected in zip(there, here, strict=True):
        assert_same(found, [(h.tokens, h.score) for h in expected])
