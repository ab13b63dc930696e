"""What keeps confidence from being right: kinds whose level alone differs, and chance."""

from __future__ import annotations

import numpy as np
from confidence_limits import Kind, by_chance, limits, with_level


def kind(name: str, level: float, count: int = 400) -> Kind:
    """One sign, which is worth the same in every kind, on a level that no sign shows."""
    draw = np.random.default_rng(len(name))
    sign = draw.uniform(0.3, 0.7, count)
    noise = draw.normal(0.0, 0.05, count)
    return Kind(name, sign[:, None], sign + level + noise)


def test_the_level_of_a_kind_is_told_from_what_the_signs_are_worth() -> None:
    kinds = [kind("low", -0.1), kind("middle", 0.0), kind("higher", 0.1)]
    found = limits(kinds, 0)
    assert 0.12 < found.bias < 0.18  # the others lie 0.15 above it
    assert abs(found.error - found.bias) < 0.01
    assert found.level_known < 0.02
    assert found.correlation > 0.85
    assert abs(found.correlation - found.own_correlation) < 0.02


def test_a_level_is_learnt_from_the_other_half() -> None:
    expected = np.array([0.5, 0.5, 0.5, 0.5])
    moved = with_level(expected, np.array([0.4, 0.7, 0.2, 0.9]))
    np.testing.assert_allclose(moved, [0.8, 0.3, 0.8, 0.3])


def test_chance_grows_smaller_with_more_sentences() -> None:
    """In ten bins of n/10 sentences, the mean of the residuals is 0.8 s / sqrt(n/10) off."""
    draw = np.random.default_rng(2)
    for count in (200, 3200):
        residuals = draw.normal(0.0, 0.15, count)
        expected = draw.uniform(0.3, 0.7, count)
        of_chance = 0.8 * 0.15 / (count / 10) ** 0.5
        assert 0.7 * of_chance < by_chance(expected, residuals) < 1.3 * of_chance
