"""What an output may not say, held to exhaustive search through the outputs that are left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import (
    BOS,
    EOS,
    A,
    B,
    History,
    Prefix,
    RandomTables,
    Tables,
    assert_same,
    everything,
    logs,
    ranked,
    run,
)

from dragoman.decoding.rules import Rules, rules_for
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import Problem

WIDE = 4 * 3**4  # all there is of 4 tokens and 5 positions
SEEDS = st.integers(0, 10**6)
PREFIXES = st.lists(st.sampled_from([BOS, A, B]), max_size=4)


def repeats(output: Prefix, size: int) -> bool:
    tokens = output[:-1] if output[-1] == EOS else output
    grams = [tokens[i : i + size] for i in range(len(tokens) - size + 1)]
    return len(set(grams)) < len(grams)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(seed=SEEDS, prefixes=st.lists(PREFIXES, min_size=1, max_size=3), nbest=st.integers(1, 4))
def test_a_forced_prefix_leaves_the_outputs_that_begin_so(
    seed: int, prefixes: list[list[int]], nbest: int
) -> None:
    tables = RandomTables(seed, vocabulary=4)
    rows, _ = run(tables, [5] * len(prefixes), prefixes=prefixes, beam=WIDE, nbest=nbest)
    for sentence, (found, prefix) in enumerate(zip(rows, prefixes, strict=True)):
        left = [
            (p, s) for p, s in everything(tables, sentence, 5) if p[: len(prefix)] == tuple(prefix)
        ]
        assert_same(found, ranked(left, 0.6, nbest))


@settings(derandomize=True, max_examples=25, deadline=None)
@given(seed=SEEDS, prefixes=st.lists(PREFIXES, min_size=2, max_size=8), data=st.data())
def test_a_prefix_stays_with_its_sentence(
    seed: int, prefixes: list[list[int]], data: st.DataObject
) -> None:
    tables = RandomTables(seed, vocabulary=6)
    max_lengths = [len(prefix) + data.draw(st.integers(1, 9)) for prefix in prefixes]
    wanted: dict[str, Any] = {"beam": 3, "nbest": 2, "no_repeat_ngram": 2, "min_length": 3}
    together, _ = run(tables, max_lengths, prefixes=prefixes, **wanted)
    for i, (found, prefix) in enumerate(zip(together, prefixes, strict=True)):
        assert found[0].tokens[: len(prefix)] == tuple(prefix)
        assert found == run(tables, [max_lengths[i]], [i], [prefix], **wanted)[0][0]


@settings(derandomize=True, max_examples=30, deadline=None)
@given(
    seed=SEEDS, least=st.integers(1, 5), longest=st.integers(1, 5), beam=st.sampled_from([1, WIDE])
)
def test_an_output_is_no_shorter_than_the_least(
    seed: int, least: int, longest: int, beam: int
) -> None:
    tables = RandomTables(seed, vocabulary=4)
    (found,), _ = run(tables, [longest], beam=beam, min_length=least)
    left = [(p, s) for p, s in everything(tables, 0, longest) if p[-1] != EOS or len(p) >= least]
    if beam == WIDE:
        assert_same(found, ranked(left, 0.6, 1))
    assert (*found[0].tokens, *[EOS] * found[0].finished) in [p for p, _ in left]


@pytest.mark.parametrize("size", [1, 2, 3])
@settings(derandomize=True, max_examples=25, deadline=None)
@given(seed=SEEDS, longest=st.integers(1, 5), nbest=st.integers(1, 4))
def test_no_ngram_is_said_twice(size: int, seed: int, longest: int, nbest: int) -> None:
    tables = RandomTables(seed, vocabulary=4)
    (found,), _ = run(tables, [longest], beam=WIDE, nbest=nbest, no_repeat_ngram=size)
    left = [(p, s) for p, s in everything(tables, 0, longest) if not repeats(p, size)]
    assert_same(found, ranked(left, 0.6, nbest))


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("beam", [1, 3])
def test_a_table_that_repeats_itself_is_made_to_vary(size: int, beam: int) -> None:
    stuck = Tables([{}, {}, {}], logs(0.02, 0.01, 0.9, 0.07))
    rows, _ = run(stuck, [4, 30, 9], beam=beam, no_repeat_ngram=size)
    for found in rows:
        assert not repeats(found[0].tokens, size)
        assert beam > 1 or found[0].tokens[:size] == (A,) * size


def test_what_is_given_may_repeat_itself() -> None:
    table = Tables([{}, {}, {}], logs(0, 0.2, 0.7, 0.1))
    rows, _ = run(
        table, [9] * 3, prefixes=[[A, B, A, B, A], [A], [A, A]], beam=1, no_repeat_ngram=2
    )
    # Behind it A may follow A where it has not yet, B may not where it has, and the end is likelier
    # than a first B.
    assert [found[0].tokens for found in rows] == [(A, B, A, B, A, A), (A, A), (A, A)]


@settings(derandomize=True, max_examples=25, deadline=None)
@given(
    seed=SEEDS,
    once=st.lists(st.lists(st.sampled_from([A, B]), unique=True), min_size=1, max_size=3),
    nbest=st.integers(1, 4),
)
def test_some_tokens_are_said_once(seed: int, once: list[list[int]], nbest: int) -> None:
    """Each sentence has its own, and others may repeat themselves."""
    tables = RandomTables(seed, vocabulary=4)

    def rules(problem: Problem[History], options: SearchOptions) -> Rules:
        found = rules_for(replace(problem, once=once), options)
        return found or Rules(problem, options)

    rows, _ = run(tables, [5] * len(once), rules=rules, beam=WIDE, nbest=nbest)
    for sentence, (found, tokens) in enumerate(zip(rows, once, strict=True)):
        left = [
            (p, s)
            for p, s in everything(tables, sentence, 5)
            if all(p.count(token) <= 1 for token in tokens)
        ]
        assert_same(found, ranked(left, 0.6, nbest))
