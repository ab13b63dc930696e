"""The clock of a passage: how long chunks are handed out for."""

from __future__ import annotations

import pytest

from dragoman.improving.source_texts import TextChunk
from dragoman.improving.text_through_model import _Clock


def handed_out(
    monkeypatch: pytest.MonkeyPatch, limit: float, processes: int, start: float
) -> tuple[int, float]:
    """How many chunks processes that need `start` seconds at first and one second for a chunk get,
    and when the last one is done."""
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    clock = _Clock(limit, 0.0, processes)
    feed = clock.feed(iter([TextChunk(number, []) for number in range(10_000)]))
    free = [start] * processes  # when each process is free
    ends: list[float] = []
    for _ in feed:
        worker = free.index(min(free))
        end = free[worker] + 1.0
        free[worker] = end
        ends.append(end)
        if len(ends) >= processes:  # the oldest result is waited for before more is handed out
            now = max(now, ends[len(ends) - processes])
            clock.tick(1)
    return len(ends), max(ends)


@pytest.mark.parametrize("processes", [1, 6, 10])
def test_starting_the_processes_is_not_taken_for_the_pace(
    monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    count, end = handed_out(monkeypatch, limit=100.0, processes=processes, start=15.0)
    possible = processes * 85
    assert 0.9 * possible < count <= possible
    assert end <= 102.0


def test_no_limit_hands_out_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    assert handed_out(monkeypatch, limit=0.0, processes=6, start=15.0)[0] == 10_000
