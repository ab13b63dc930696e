"""Search among trees alone, held to exhaustive search through every tree there is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import EOS, History, Prefix, RandomTables, assert_same, ranked, run

from dragoman.decoding import tree_grammar
from dragoman.decoding.grammar import GrammarRules
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import Problem
from dragoman.decoding.tree_grammar import AROUND, TreeAutomaton, TreeTokens
from dragoman.text.trees import fault

# The last is a token that no tree has.
SYMBOLS = ["<s>", "</s>", "(A", "(B", ")A", ")B", "x", "y", "junk"]
TOKENS = TreeTokens(
    leaves=[symbol in ("x", "y") for symbol in SYMBOLS],
    opens=[{"(A": 0, "(B": 1}.get(symbol, -1) for symbol in SYMBOLS],
    closes=[{")A": 0, ")B": 1}.get(symbol, -1) for symbol in SYMBOLS],
)
SEEDS = st.integers(0, 10**6)


def rules(leaves: list[int], problem: Problem[History], options: SearchOptions) -> GrammarRules:
    automaton = TreeAutomaton(TOKENS, leaves, problem, options.hypotheses)
    return GrammarRules(problem, options, automaton)


def inner(leaves: int, room: int) -> Iterator[Prefix]:
    """Every row of leaves and brackets with so many leaves, of at most `room` tokens."""
    if leaves == 0:
        yield ()
        return
    if leaves > room:
        return
    for tag in (6, 7):
        for rest in inner(leaves - 1, room - 1):
            yield (tag, *rest)
    for count in range(1, leaves + 1):
        for tree in trees(count, room - leaves + count):
            for rest in inner(leaves - count, room - len(tree)):
                yield (*tree, *rest)


def trees(leaves: int, room: int) -> Iterator[Prefix]:
    """Every tree of so many leaves and at most `room` tokens."""
    for label in (0, 1):
        for row in inner(leaves, room - 2):
            yield (2 + label, *row, 4 + label)


def total(tables: RandomTables, sentence: int, output: Prefix) -> float:
    values = [tables.row(sentence, output[:at])[token] for at, token in enumerate(output)]
    return sum(values)


@settings(derandomize=True, max_examples=15, deadline=None)
@given(seed=SEEDS, nbest=st.integers(1, 5), sizes=st.lists(st.integers(1, 3), max_size=3))
def test_a_wide_search_finds_the_best_trees(seed: int, nbest: int, sizes: list[int]) -> None:
    tables = RandomTables(seed, vocabulary=len(SYMBOLS))
    leaves = [*sizes, 2]
    longest = [count + AROUND + 2 for count in leaves]
    found, _ = run(tables, longest, rules=partial(rules, leaves), beam=300, nbest=nbest)
    for sentence, (hypotheses, count) in enumerate(zip(found, leaves, strict=True)):
        there_are = [(*tree, EOS) for tree in trees(count, longest[sentence] - 1)]
        scored = [(output, total(tables, sentence, output)) for output in there_are]
        assert_same(hypotheses, ranked(scored, 0.6, nbest))


@settings(derandomize=True, max_examples=20, deadline=None)
@given(
    seed=SEEDS,
    sizes=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), min_size=1, max_size=6),
    beam=st.integers(1, 5),
)
def test_every_output_is_a_tree_of_the_right_size(
    seed: int, sizes: list[tuple[int, int]], beam: int
) -> None:
    """With as little room as there can be, too; and the same alone as in a batch."""
    tables = RandomTables(seed, vocabulary=len(SYMBOLS))
    leaves = [count for count, _ in sizes]
    longest = [count + AROUND + more for count, more in sizes]
    found, _ = run(tables, longest, rules=partial(rules, leaves), beam=beam)
    for sentence, (hypotheses, count) in enumerate(zip(found, leaves, strict=True)):
        best = hypotheses[0]
        assert best.finished
        assert not fault([SYMBOLS[token] for token in best.tokens], count)
        alone, _ = run(
            tables,
            longest[sentence : sentence + 1],
            [sentence],
            rules=partial(rules, [count]),
            beam=beam,
        )
        assert alone[0][0].tokens == best.tokens


class Greedy(RandomTables):
    """Would open brackets for ever."""

    def row(self, sentence: int, prefix: Prefix) -> list[float]:
        return [-9.0, -9.0, -0.1, -1.0, -5.0, -5.0, -9.0, -9.0, -0.01]


@pytest.mark.parametrize("beam", [1, 4])
def test_depth_and_chains_are_bounded(beam: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_grammar, "DEEPEST", 7)
    monkeypatch.setattr(tree_grammar, "LONGEST_CHAIN", 3)
    tables = Greedy(1, vocabulary=len(SYMBOLS))
    found, _ = run(tables, [200], rules=partial(rules, [6]), beam=beam, alpha=0.0)
    symbols = [SYMBOLS[token] for token in found[0][0].tokens]
    assert not fault(symbols, 6)
    depth = deepest = chain = longest = 0
    for symbol in symbols:
        depth += symbol.startswith("(") - symbol.startswith(")")
        chain = chain + 1 if symbol.startswith("(") else 0
        deepest = max(deepest, depth)
        longest = max(longest, chain)
    assert (deepest, longest) == (7, 3)
