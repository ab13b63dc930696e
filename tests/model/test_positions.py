"""The sinusoids of §3.5 against the formula, one number at a time."""

from __future__ import annotations

import math

import pytest
import torch

from dragoman.model.positions import Positions, sinusoids


@pytest.mark.parametrize("position", [0, 1, 7, 500, 1023])
@pytest.mark.parametrize("i", [0, 1, 100, 255])
def test_sinusoids_follow_the_formula(position: int, i: int) -> None:
    table = sinusoids(1024, 512)
    angle = position / 10000 ** (2 * i / 512)
    assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
    assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_positions_are_added_from_the_first_on() -> None:
    positions, x = Positions(16, 8), torch.randn(2, 3, 8)
    torch.testing.assert_close(positions(x) - x, sinusoids(16, 8)[:3].expand(2, 3, 8))


def test_the_table_is_not_saved() -> None:
    assert not Positions(16, 8).state_dict()
