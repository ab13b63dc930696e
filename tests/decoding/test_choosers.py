"""Ways to take the next tokens: the fast top against torch's, draws against their probabilities,
branches by hand."""

from __future__ import annotations

import math
from typing import Any

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
    RandomTables,
    Tables,
    assert_same,
    logs,
    penalty,
    plain_beam,
    ranked,
    run,
)
from torch import Tensor

from dragoman.decoding.choosers import Drawn, Likeliest, likeliest, top
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search_options import SearchOptions

C, D = 4, 5


@settings(derandomize=True, max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    shape=st.lists(st.integers(1, 3), min_size=1, max_size=2),
    size=st.one_of(st.integers(1, 200), st.integers(600, 1100)),
    count=st.integers(1, 9),
    forbidden=st.booleans(),
)
def test_top_is_topk(seed: int, shape: list[int], size: int, count: int, forbidden: bool) -> None:
    values = torch.randn(*shape, size, generator=torch.Generator().manual_seed(seed))
    if forbidden:
        values[..., seed % 3 :: 2] = NEVER
    count = min(count, size)
    found, places = top(values, count)
    assert torch.equal(found, values.topk(count).values)
    assert torch.equal(values.gather(-1, places), found)
    assert all(len(set(row)) == count for row in places.reshape(-1, count).tolist())


@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("size", [3, 70, 1000])
def test_the_likeliest_of_all_by_one_sort(beam: int, size: int) -> None:
    logits = 3.0 * torch.randn(4, beam, size, generator=torch.Generator().manual_seed(beam + size))
    live = torch.randn(4, beam, generator=torch.Generator().manual_seed(7)) - 5.0
    live[1, beam - 1], live[2] = NEVER, NEVER
    log_probs = logits.log_softmax(-1)
    totals, order = (live[..., None] + log_probs).flatten(1).sort(descending=True)
    for choice in (Likeliest().choose(live, log_probs.clone(), 0), likeliest(live, logits.clone())):
        assert torch.allclose(choice.totals, totals[:, :beam], atol=1e-5)
        living = choice.totals > NEVER
        assert torch.equal((choice.beams * size + choice.tokens)[living], order[:, :beam][living])
        assert torch.allclose(
            choice.log_probs[living],
            log_probs.flatten(1).gather(1, order[:, :beam])[living],
            atol=1e-5,
        )


def drawn(probabilities: list[float], count: int, seed: int = 1, **wanted: Any) -> Tensor:
    """How often each token came, in `count` draws."""
    chooser = Drawn(
        SearchOptions(sample=True, nbest=count, seed=seed, **wanted), torch.device("cpu")
    )
    choice = chooser.choose(
        torch.zeros(1, count), torch.tensor(logs(*probabilities)).expand(1, count, -1), 0
    )
    assert torch.equal(
        choice.log_probs, torch.tensor(logs(*probabilities))[choice.tokens]
    )  # the table's, whatever the heat
    return choice.tokens.flatten().bincount(minlength=len(probabilities))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, [0.2, 0.0, 0.5, 0.3]),
        ({"temperature": 0.5}, [4 / 38, 0.0, 25 / 38, 9 / 38]),  # squares
        (
            {"temperature": 2.0},
            [0.26275, 0.0, 0.41544, 0.32181],
        ),  # square roots, of 1.70211 together
        ({"top_k": 2}, [0.0, 0.0, 5 / 8, 3 / 8]),
        ({"top_k": 9}, [0.2, 0.0, 0.5, 0.3]),
        ({"top_p": 0.6}, [0.0, 0.0, 5 / 8, 3 / 8]),  # the second is needed to have 0.6 ...
        ({"top_p": 0.5}, [0.0, 0.0, 1.0, 0.0]),  # ... but not to have 0.5
        ({"top_p": 0.6, "temperature": 0.5}, [0.0, 0.0, 1.0, 0.0]),  # the first has 25/38 by itself
        ({"top_p": 0.7, "top_k": 2}, [0.0, 0.0, 5 / 8, 3 / 8]),
        ({"top_p": 0.6, "top_k": 2}, [0.0, 0.0, 1.0, 0.0]),  # 5/8 of what top_k leaves
    ],
)
def test_tokens_come_as_often_as_their_probabilities_say(
    wanted: dict[str, Any], expected: list[float]
) -> None:
    count = 20_000
    found, wished = drawn([0.2, 0.0, 0.5, 0.3], count, **wanted), count * torch.tensor(expected)
    assert not found[wished == 0].any()
    assert (
        float(((found - wished) ** 2 / wished)[wished > 0].sum()) < 16.3
    )  # chi-square, 3 degrees of freedom: 1 in 1000


def test_a_seed_draws_the_same_again() -> None:
    tables = RandomTables(5, vocabulary=6)
    first, again, other = (
        run(tables, [9, 4, 12], sample=True, nbest=6, seed=seed)[0] for seed in (3, 3, 4)
    )
    assert first == again != other


@settings(derandomize=True, max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), temperature=st.sampled_from([0.3, 1.0, 3.0]))
def test_every_draw_is_an_output_with_its_own_numbers(seed: int, temperature: float) -> None:
    tables = RandomTables(seed, vocabulary=6)
    rows, _ = run(
        tables, [7, 3], sample=True, nbest=9, temperature=temperature, seed=seed, top_p=0.9
    )
    for sentence, found in enumerate(rows):
        assert len(found) == 9
        assert sorted(found, key=lambda h: (not h.finished, -h.score)) == found
        for h in found:
            said = (*h.tokens, EOS) if h.finished else h.tokens
            expected = [tables.row(sentence, said[:i])[token] for i, token in enumerate(said)]
            assert h.log_probs == pytest.approx(expected, abs=1e-5)
            assert h.score == pytest.approx(sum(expected) / penalty(len(said), 0.6), abs=1e-5)


def test_the_coldest_draw_is_greedy_search() -> None:
    tables = RandomTables(8, vocabulary=6)
    (found,), _ = run(tables, [9], sample=True, nbest=3, temperature=1e-4)
    ((greedy,),), _ = run(tables, [9], beam=1)
    assert {h.tokens for h in found} == {greedy.tokens}


@pytest.mark.parametrize(
    "wanted",
    [
        {"sample": True},
        {"sample": True, "top_k": 2},
        {"sample": True, "top_p": 0.5},
        {"branch": True},
    ],
)
@pytest.mark.parametrize("value", [math.nan, NEVER])
def test_a_row_without_numbers_dies_quietly(wanted: dict[str, Any], value: float) -> None:
    broken = Tables(
        [{}, {(): logs(0, 0, 1, 0), (A,): logs(0, 1, 0, 0)}, {(): logs(0, 0, 1, 0)}], [value] * 4
    )
    found, _ = run(broken, [9, 9, 9], nbest=1, **wanted)
    assert found == [
        [Hypothesis((), NEVER, ())],
        [Hypothesis((A,), 0.0, (0.0, 0.0))],
        [Hypothesis((), NEVER, ())],
    ]


FORK = Tables(
    [
        {
            (): logs(0.0, 0.05, 0.5, 0.3, 0.15, 0.0),
            (A,): logs(0, 0.1, 0.2, 0.3, 0.0, 0.4),
            (A, D): logs(0, 0.6, 0.4, 0, 0, 0),
            (A, B): logs(0, 0.3, 0, 0, 0.7, 0),
            (A, B, C): logs(0, 0.9, 0.1, 0, 0, 0),
            (B,): logs(0, 0.8, 0.2, 0, 0, 0),
            (C,): logs(0, 0.2, 0.8, 0, 0, 0),
            (C, A): logs(0, 1.0, 0, 0, 0, 0),
        }
    ],
    otherwise=logs(0, 1, 0, 0, 0, 0),
)


@pytest.mark.parametrize(
    ("prefix", "count", "expected"),
    [
        ([], 3, {(A, D): 0.5 * 0.4 * 0.6, (B,): 0.3 * 0.8, (C, A): 0.15 * 0.8}),
        ([], 4, {(A, D): 0.5 * 0.4 * 0.6, (B,): 0.3 * 0.8, (C, A): 0.15 * 0.8, (): 0.05}),
        ([A], 3, {(A, D): 0.5 * 0.4 * 0.6, (A, B, C): 0.5 * 0.3 * 0.7 * 0.9, (A, A): 0.5 * 0.2}),
        ([A], 1, {(A, D): 0.5 * 0.4 * 0.6}),
        (
            [A, B],
            6,
            {(A, B, C): 0.5 * 0.3 * 0.7 * 0.9, (A, B): 0.5 * 0.3 * 0.3},
        ),  # no more than there are
    ],
)
def test_branches_part_behind_the_prefix_and_go_on_greedily(
    prefix: list[int], count: int, expected: dict[Any, float]
) -> None:
    (found,), _ = run(FORK, [9], prefixes=[prefix], branch=True, nbest=count, alpha=0.0)
    assert {h.tokens: math.exp(h.score) for h in found} == pytest.approx(expected)
    assert len(found) == len(expected)


@settings(derandomize=True, max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    prefix=st.lists(st.sampled_from([BOS, A, B]), max_size=2),
    count=st.integers(1, 5),
)
def test_branches_are_greedy_searches_from_each_of_the_likeliest_tokens(
    seed: int, prefix: list[int], count: int
) -> None:
    tables, begun = RandomTables(seed, vocabulary=6), tuple(prefix)
    (found,), _ = run(tables, [7], prefixes=[prefix], branch=True, nbest=count)
    total = sum(tables.row(0, begun[:i])[token] for i, token in enumerate(begun))
    row = tables.row(0, begun)
    forks = sorted(range(6), key=lambda token: -row[token])[:count]
    starts = [((*begun, token), total + row[token]) for token in forks]
    outputs = [
        pair
        for start in starts
        for pair in ([start] if start[0][-1] == EOS else plain_beam(tables, 0, 7, 1, start))
    ]
    assert_same(found, ranked(outputs, 0.6, count))
