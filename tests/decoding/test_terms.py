"""Terms against tables of numbers: exhaustive search, narrow beams that may not forget a term,
and worked examples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tables import (
    EOS,
    NEVER,
    A,
    B,
    History,
    Prefix,
    RandomTables,
    Tables,
    assert_same,
    everything,
    logs,
    penalty,
    ranked,
    run,
)

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.step import Problem
from dragoman.decoding.term_tree import Wanted
from dragoman.decoding.terms import Terms, required_length

C, D, X, Y = 4, 5, 6, 7
Sentence = list[list[list[int]]]  # terms, forms, tokens


class Disliked(RandomTables):
    """Some tokens are all but impossible."""

    def __init__(self, seed: int, vocabulary: int, tokens: set[int]) -> None:
        super().__init__(seed, vocabulary)
        self.tokens = tokens

    def drawn(self, sentence: int, prefix: Prefix) -> list[float]:
        row = torch.tensor(super().drawn(sentence, prefix))
        row[sorted(self.tokens)] -= 15.0
        return row.log_softmax(0).tolist()


def run_terms(
    tables: Tables,
    terms: list[Sentence],
    max_lengths: list[int],
    beam: int,
    joins: Sequence[int] = (),
    vocabulary: int = 8,
    sentences: list[int] | None = None,
    prefixes: list[list[int]] | None = None,
    device: str = "cpu",
    **wanted: Any,
) -> tuple[list[list[Hypothesis]], History]:
    glued = torch.isin(torch.arange(vocabulary), torch.tensor(list(joins), dtype=torch.long)).to(
        device
    )

    def chooser(problem: Problem[History]) -> Terms:
        return Terms(Wanted(terms), problem, beam, glued)

    return run(tables, max_lengths, sentences, prefixes, device, chooser, beam=beam, **wanted)


def says(
    tokens: Prefix,
    terms: Sentence,
    joins: Sequence[int] = (),
    found: tuple[tuple[int, int], ...] = (),
) -> bool:
    """A form of each term is somewhere, no token being part of two, and nothing but another of
    these is written onto it."""
    if not terms:
        starts = {start for start, _ in found}
        return all(
            end == len(tokens) or tokens[end] not in joins or end in starts for _, end in found
        )
    return any(
        says(tokens, terms[1:], joins, (*found, (at, end)))
        for form in terms[0]
        for at in range(len(tokens) - len(form) + 1)
        if tokens[at : (end := at + len(form))] == tuple(form)
        and all(end <= a or at >= b for a, b in found)
    )


def sentences_of(
    tokens: list[int], terms: tuple[int, int], sizes: tuple[int, int]
) -> st.SearchStrategy[Sentence]:
    form = st.lists(st.sampled_from(tokens), min_size=sizes[0], max_size=sizes[1])
    return st.lists(st.lists(form, min_size=1, max_size=3), min_size=terms[0], max_size=terms[1])


def test_the_required_length_is_that_of_the_shortest_forms_and_the_end() -> None:
    assert required_length([]) == 1
    assert required_length([[[A, B], [C]], [[A, A, A], [B, B]]]) == 1 + 2 + 1


@pytest.mark.parametrize(("most", "sizes"), [(3, (1, 3)), (1, (3, 3))])
@settings(derandomize=True, max_examples=70, deadline=None)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_a_beam_as_wide_as_the_space_finds_the_best_output_with_the_terms(
    most: int, sizes: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    terms = data.draw(sentences_of([0, A, B], (1, most), sizes))
    assume(required_length(terms) <= 5)
    longest, alpha = (
        data.draw(st.integers(required_length(terms), 5)),
        data.draw(st.sampled_from([0.0, 1.0])),
    )
    tables = RandomTables(seed, vocabulary=4)
    (found,), _ = run_terms(tables, [terms], [longest], 600, vocabulary=4, alpha=alpha)
    ((_, best),) = ranked(
        [(p, total) for p, total in everything(tables, 0, longest) if says(p, terms)], alpha, 1
    )
    assert says(found[0].tokens, terms)
    assert found[0].score == pytest.approx(best, abs=1e-5)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    batch=st.lists(sentences_of([0, A, B, C, D, X], (0, 5), (1, 3)), min_size=1, max_size=4),
    room=st.integers(0, 8),
    joins=st.sets(st.sampled_from([0, A, B, C, D, X, Y])),
    disliked=st.sets(st.integers(2, 7)),
)
def test_a_narrow_beam_forgets_no_term(
    seed: int, batch: list[Sentence], room: int, joins: set[int], disliked: set[int]
) -> None:
    tables, beam = Disliked(seed, 8, disliked), 3 + max(map(len, batch))
    max_lengths = [required_length(terms) + room + i for i, terms in enumerate(batch)]
    rows, _ = run_terms(tables, batch, max_lengths, beam, sorted(joins), nbest=beam)
    for i, (found, terms) in enumerate(zip(rows, batch, strict=True)):
        assert found[0].score > NEVER
        for h in found:
            said = (*h.tokens, EOS) if h.finished else h.tokens
            assert len(said) <= max_lengths[i]
            assert says(h.tokens, terms, sorted(joins)), (h, terms, joins)
            assert h.log_probs == pytest.approx(
                [tables.row(i, said[:n])[token] for n, token in enumerate(said)], abs=1e-5
            )
            assert h.score == pytest.approx(sum(h.log_probs) / penalty(len(said), 0.6), abs=1e-4)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    batch=st.lists(sentences_of([0, A, B, C], (0, 4), (1, 2)), min_size=2, max_size=8),
    data=st.data(),
)
def test_a_sentence_does_not_notice_its_company(
    seed: int, batch: list[Sentence], data: st.DataObject
) -> None:
    tables = RandomTables(seed, vocabulary=8)
    max_lengths = [required_length(terms) + data.draw(st.integers(0, 9)) for terms in batch]
    together, _ = run_terms(tables, batch, max_lengths, 7, [D], nbest=3)
    for i, (found, terms, longest) in enumerate(zip(together, batch, max_lengths, strict=True)):
        (alone,), _ = run_terms(tables, [terms], [longest], 7, [D], sentences=[i], nbest=3)
        assert found == alone
        if not terms:
            (plain,), _ = run(tables, [longest], [i], beam=7, nbest=3)
            assert_same(found, [(h.tokens, h.score) for h in plain])


def test_sentences_that_are_over_leave_the_batch() -> None:
    long = Tables([{} for _ in range(8)], logs(0, 0.01, 0.9, 0.01, 0.01, 0.07, 0, 0))
    lengths = [3, 4, 4, 5, 6, 7, 8, 20]
    found, state = run_terms(
        long, [[[[B, C]]], [], [[[D]]], [[[C]]], [], [], [[[B]], [[B]]], [[[C]]]], lengths, 5
    )
    assert state.kept >= 3
    assert [sorted({B, C, D} & set(row[0].tokens)) for row in found] == [
        [B, C],
        [],
        [D],
        [C],
        [],
        [],
        [B],
        [C],
    ]


@pytest.mark.parametrize("forms", [[[D], [D, X], [Y, D, X]], [[D], [C, D], [C, D, X]]])
@settings(derandomize=True, max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_no_output_is_found_twice(forms: list[list[int]], seed: int) -> None:
    terms = [[[A, B], [A, C], [A, B, C]], forms]
    (found,), _ = run_terms(RandomTables(seed, vocabulary=8), [terms], [9], 12, [X], nbest=12)
    assert len({h.tokens for h in found}) == len(found)


def test_what_overlaps_a_form_is_free_to_come() -> None:
    # B, C is complete behind A, B, but B is taken; it comes once more.
    said = (A, B, C, B, C, EOS)
    rows = {
        said[:n]: logs(*(0.93 if token == said[n] else 0.01 for token in range(8)))
        for n in range(6)
    }
    (found,), _ = run_terms(
        Tables([rows], logs(*[1 / 8] * 8)), [[[[A, B]], [[B, C]]]], [9], 5, alpha=0.0
    )
    assert found[0].tokens == said[:-1]


def test_what_was_said_moves_with_the_beams() -> None:
    # After two tokens A, B has overtaken X, B. C completes the form behind the first, where it was
    # not begun, but not behind X.
    said = (X, B, C, A, B, C, EOS)
    rows = {
        said[:n]: logs(*(0.93 if token == said[n] else 0.01 for token in range(8)))
        for n in range(2, 7)
    }
    rows |= {
        (): logs(0, 0, 0.4, 0, 0, 0.1, 0.5, 0),
        (X,): logs(0, 0.4, 0, 0.6, 0, 0, 0, 0),
        (A,): logs(0, 0, 0, 1, 0, 0, 0, 0),
    }
    rows[A, B] = logs(0, 0.05, 0, 0, 0.9, 0.05, 0, 0)
    (found,), _ = run_terms(Tables([rows], logs(*[1 / 8] * 8)), [[[[A, B, C]]]], [9], 4, alpha=0.0)
    assert found[0].tokens == said[:-1]


def test_a_term_comes_where_it_is_natural() -> None:
    class ByPosition(Tables):
        """2, 3, 4, 5, 7, 8, 9, 10 and the end; only in the fifth place is X about as good as the
        table's own token."""

        def row(self, sentence: int, prefix: Prefix) -> list[float]:
            token = {4: 7, 5: 8, 6: 9, 7: 10, 8: EOS}.get(len(prefix), 2 + len(prefix))
            own = 0.5 if len(prefix) == 4 else 0.9
            rest = {X: 0.4} if len(prefix) == 4 else {}
            return logs(*(({token: own} | rest).get(n, 0.01) for n in range(12)))

    (found,), _ = run_terms(
        ByPosition([], []), [[[[X], [Y, Y]]]], [20], 4, vocabulary=12, alpha=0.0
    )
    assert found[0].tokens == (2, 3, 4, 5, X, 8, 9, 10)


@pytest.mark.parametrize("place", [1, 3, 5])
def test_a_term_comes_where_the_hypothesis_looks_at_its_source(place: int) -> None:
    # To the table all places are alike; the n-th token looks at the n-th source token. Each
    # sentence has a place of its own.
    likely = {n: EOS if n == 7 else B for n in range(8)}
    rows: list[list[float]] = [
        logs(*(0.93 if token == likely[n] else 0.01 for token in range(8))) for n in range(8)
    ]

    class ByLength(Tables):
        def row(self, sentence: int, prefix: Prefix) -> list[float]:
            return rows[len(prefix)]

    steps = iter(range(8))
    terms, places = [[[[X, Y]]], [[[A]], [[A]]], []], [[[place]], [[place], [6]], []]
    glued = torch.zeros(8, dtype=torch.bool)

    def looks() -> torch.Tensor:
        return torch.eye(8)[next(steps)].expand(3, 5, 8)

    def chooser(problem: Problem[History]) -> Terms:
        return Terms(Wanted(terms, places), problem, 5, glued, looks)

    found, _ = run(ByLength([], []), [8, 8, 8], chooser=chooser, beam=5, alpha=0.0)
    assert [n for n, token in enumerate(found[0][0].tokens) if token != B] == [place, place + 1]
    assert [n for n, token in enumerate(found[1][0].tokens) if token != B] == [place, 6]
    assert found[2][0].tokens == (B,) * 7


def test_an_occurrence_that_is_translated_does_not_count_again() -> None:
    """Who still looks at the first occurrence does not say the term for the second."""
    row = logs(0, 0.01, 0.05, 0.93, 0.01, 0, 0, 0)
    last = logs(0, 1, 0, 0, 0, 0, 0, 0)

    class ByLength(Tables):
        def row(self, sentence: int, prefix: Prefix) -> list[float]:
            return last if len(prefix) == 7 else row

    looked_at = iter([0, 1, 1, 1, 4, 5, 6, 7])
    glued = torch.zeros(8, dtype=torch.bool)

    def looks() -> torch.Tensor:
        return torch.eye(8)[next(looked_at)].expand(1, 5, 8)

    def chooser(problem: Problem[History]) -> Terms:
        return Terms(Wanted([[[[A]], [[A]]]], [[[1], [5]]]), problem, 5, glued, looks)

    found, _ = run(ByLength([], []), [8], chooser=chooser, beam=5, alpha=0.0)
    places = [n for n, token in enumerate(found[0][0].tokens) if token == A]
    assert places[0] in (1, 2, 3)
    assert places[1:] == [5]


GLUE = Tables(
    [
        {
            (): logs(0, 0.1, 0.5, 0.4, 0, 0, 0, 0),
            (A,): logs(
                0, 0.15, 0, 0.05, 0, 0, 0.2, 0.6
            ),  # A is mostly followed by Y, which is written onto it
            (A, Y): logs(0, 0.9, 0, 0, 0, 0.1, 0, 0),
            (A, X): logs(0, 0.2, 0, 0, 0, 0, 0, 0.8),
        }
    ],
    otherwise=logs(0, 1, 0, 0, 0, 0, 0, 0),
)


@pytest.mark.parametrize(
    ("terms", "joins", "tokens", "probability"),
    [
        ([[[A]]], [], (A, Y), 0.5 * 0.6 * 0.9),
        ([[[A]]], [Y], (A, X, Y), 0.5 * 0.2 * 0.8),  # only the form itself may not be written onto
        ([[[A]]], [EOS, X, Y], (A,), 0.5 * 0.15),  # nor does the end spoil it
        (
            [[[A], [A, Y]]],
            [X, Y],
            (A, Y),
            0.5 * 0.6 * 0.9,
        ),  # but it may grow to another form of the term
        ([[[A], [A, X]]], [X, Y], (A,), 0.5 * 0.15),
        ([[[A], [A, X]]], [X], (A, Y), 0.5 * 0.6 * 0.9),
        ([[[A], [A, X, Y]]], [X, Y], (A, X, Y), 0.5 * 0.2 * 0.8),
        ([[[A], [A, X, D]]], [X, Y], (A,), 0.5 * 0.15),  # once it grows, it does so to the end
        ([[[A], [B, A, Y]]], [X, Y], (A,), 0.5 * 0.15),
        ([[[A]], [[Y]]], [Y], (A, Y), 0.5 * 0.6 * 0.9),  # and another term may follow it
        ([[[A, X]], [[A]]], [X], None, 0.0),  # two terms are not one
    ],
)
def test_nothing_is_written_onto_a_form(
    terms: Sentence, joins: list[int], tokens: Prefix | None, probability: float
) -> None:
    (found,), _ = run_terms(GLUE, [terms], [5], 5, joins, alpha=0.0)
    if tokens is None:
        assert found == [Hypothesis((), NEVER, ())]
    else:
        assert found[0].tokens == tokens
        assert math.exp(found[0].score) == pytest.approx(probability)


def test_a_term_asked_for_twice_is_said_twice() -> None:
    disliked = Tables([{}], logs(0, 0.5, 0.01, 0.49, 0, 0, 0, 0))
    (found,), _ = run_terms(disliked, [[[[A]], [[B, A], [A]], [[A]]]], [6], 6, alpha=0.0)
    assert sorted(found[0].tokens) == [A, A, A]
    assert math.exp(found[0].score) == pytest.approx(0.01**3 * 0.5)


@pytest.mark.parametrize(
    ("prefix", "rest"),
    [([A], ()), ([A, Y], ()), ([B, A, Y], ()), ([B], (A,)), ([B, C], (A,)), ([], (A,))],
)
def test_a_term_in_the_prefix_is_said_already(prefix: list[int], rest: Prefix) -> None:
    # Y may not be written onto A, but who gives the beginning may do as he likes.
    table = Tables([{}], logs(0, 0.9, 0.01, 0.02, 0.02, 0.02, 0.02, 0.01))
    (found,), _ = run_terms(table, [[[[A], [C, A]]]], [7], 4, [Y], prefixes=[prefix], alpha=0.0)
    assert found[0].tokens == (*prefix, *rest)


def test_what_cannot_be_met_is_no_hypothesis() -> None:
    table = Tables([{}, {}, {(): [math.nan] * 8}], logs(0, 0.5, 0.1, 0.1, 0.3, 0, 0, 0))
    found, _ = run_terms(table, [[[[A, A], [B, A]]], [[[A], [A, A]]], [[[A]]]], [2, 2, 9], 4)
    assert found[0] == found[2] == [Hypothesis((), NEVER, ())]
    assert found[1][0].tokens == (A,)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_finds_the_same() -> None:
    tables, batch = (
        RandomTables(3, vocabulary=8),
        [[[[A, B], [A]], [[C, D, X]]], [], [[[B]], [[B]], [[X, B], [B, C]]]],
    )
    here, _ = run_terms(tables, batch, [9, 9, 12], 6, [D, X], nbest=3)
    there, _ = run_terms(tables, batch, [9, 9, 12], 6, [D, X], nbest=3, device="cuda")
    for found, expected in zip(there, here, strict=True):
        assert_same(found, [(h.tokens, h.score) for h in expected])
