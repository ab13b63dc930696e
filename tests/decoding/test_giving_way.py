"""A search that gives way: others may run between its positions, or end it."""

from __future__ import annotations

import pytest
from tables import RandomTables, run

from dragoman.decoding.giving_way import give_way, giving_way


class EnoughError(Exception):
    """What a caller raises to end a search."""


def test_a_search_calls_between_its_positions_and_finds_the_same() -> None:
    table = RandomTables(3, 6)
    alone, state = run(table, [9, 7, 8])
    inner = RandomTables(4, 6)
    inner_alone, _ = run(inner, [6])
    calls = []

    def between() -> None:
        found, _ = run(inner, [6])  # which calls nothing, or this would never end
        calls.append(found)

    with giving_way(between):
        beside, _ = run(table, [9, 7, 8])
    assert beside == alone
    assert calls == [inner_alone] * (state.steps - 1)
    give_way()  # nobody has asked for it any more
    assert len(calls) == state.steps - 1


def test_whoever_is_called_may_end_the_search() -> None:
    calls = []

    def between() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise EnoughError

    table = RandomTables(3, 6)
    with giving_way(between), pytest.raises(EnoughError):
        run(table, [30])
    assert len(calls) == 2
    run(table, [30])
    assert len(calls) == 2
