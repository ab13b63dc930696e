"""Dropout drops the right share, keeps the expectation and follows the seed."""

from __future__ import annotations

import pytest
import torch

from dragoman.model.dropout import dropout


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
def test_share_and_expectation(share: float) -> None:
    torch.manual_seed(0)
    n = 400_000
    dropped = dropout(torch.ones(n), share, training=True)
    four_sigma = 4 * (share * (1 - share) / n) ** 0.5
    assert (dropped == 0).float().mean().item() == pytest.approx(share, abs=four_sigma)
    assert dropped.mean().item() == pytest.approx(1.0, abs=four_sigma / (1 - share))
    assert dropped[dropped != 0].unique().item() == pytest.approx(1 / (1 - share), rel=1e-4)


def test_values_drop_independently_of_their_neighbours() -> None:
    torch.manual_seed(0)
    gone = dropout(torch.ones(1_000_000), 0.1, training=True) == 0
    for distance in (1, 2, 3, 4, 8, 512):  # four neighbours come from one draw
        both = (gone[distance:] & gone[:-distance]).float().mean().item()
        assert both == pytest.approx(0.01, abs=0.0005)
    for lane in range(4):
        assert gone[lane::4].float().mean().item() == pytest.approx(0.1, abs=0.0025)


def test_the_gradient_passes_where_the_value_did() -> None:
    torch.manual_seed(0)
    x = torch.randn(7, 5, 3, requires_grad=True)
    y = dropout(x, 0.5, training=True)
    y.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.where(y == 0, 0.0, 2.0))
    torch.testing.assert_close(y, x * x.grad)


def test_a_seed_repeats_the_drops_and_calls_differ() -> None:
    x = torch.ones(1001)
    torch.manual_seed(3)
    first, second = dropout(x, 0.2, training=True), dropout(x, 0.2, training=True)
    torch.manual_seed(3)
    assert torch.equal(first, dropout(x, 0.2, training=True))
    assert torch.equal(second, dropout(x, 0.2, training=True))
    assert not torch.equal(first, second)


def test_nothing_drops_outside_training_or_at_share_zero() -> None:
    x = torch.randn(9)
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0, training=True) is x


@pytest.mark.parametrize("shape", [(0, 4), (1,), (3, 7), (2, 3, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_shape_and_type_stay(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.randn(shape, dtype=dtype)
    for given in (x, x.transpose(0, -1)):
        y = dropout(given, 0.5, training=True)
        assert (y.shape, y.dtype) == (given.shape, dtype)
        assert torch.equal(y, torch.where(y == 0, y, given * 2))
