"""The simulation of many workers: every part once and in order, and a fleet without trouble works
all of the time."""

from __future__ import annotations

from pathlib import Path

import pytest
import thousand_workers as simulation

from dragoman.tables import table_parts


@pytest.fixture(autouse=True)
def own_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_parts, "_KINDS", dict(table_parts._KINDS))


def test_parts_and_what_is_left(tmp_path: Path) -> None:
    parts, figures = simulation.manifest(tmp_path, 4, 200_000)
    assert len(parts) == 20
    assert sum(part.piece.rows for part in parts) == 200_000
    assert len({part.out for part in parts}) == 20
    assert 0 < figures["manifest_bytes_a_part"] < 1000


def test_equal_workers_are_always_busy() -> None:
    fleet = simulation.Fleet(50, spread=0.0, slow_share=0.0, deaths=0.0)
    found = simulation.schedule(fleet, range(1000), 1)
    assert found["share_of_ideal_speed"] == 1.0
    assert found["simulated_hours"] == round(20 * fleet.seconds / 3600, 3)
    assert found["deaths"] == 0


def test_deaths_and_slow_workers_cost_time_and_no_part() -> None:
    fleet = simulation.Fleet(50, deaths=0.05)
    found = simulation.schedule(fleet, range(2000), 1)
    assert found["deaths"] > 50
    assert 0.5 < found["share_of_ideal_speed"] < 1.0
    assert found["in_order_share_of_ideal_speed"] < found["share_of_ideal_speed"]
