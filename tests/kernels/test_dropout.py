"""Dropout drops the right share, keeps the expectation and follows the seed."""

from __future__ import annotations

from typing import cast

import pytest
import torch

from dragoman.kernels.dropout import hashed, sow
from dragoman.kernels.training_twins import accelerate_training


def dropout(share: float) -> torch.nn.Dropout:
    """As a CPU trains with it."""
    module = torch.nn.Dropout(share)
    accelerate_training(module, torch.device("cpu"))
    return module


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
def test_share_and_expectation(share: float) -> None:
    torch.manual_seed(0)
    n = 400_000
    dropped = dropout(share)(torch.ones(n))
    four_sigma = 4 * (share * (1 - share) / n) ** 0.5
    assert (dropped == 0).float().mean().item() == pytest.approx(share, abs=four_sigma)
    assert dropped.mean().item() == pytest.approx(1.0, abs=four_sigma / (1 - share))
    assert dropped[dropped != 0].unique().item() == pytest.approx(1 / (1 - share), rel=1e-4)


def test_values_drop_independently_of_their_neighbours() -> None:
    torch.manual_seed(0)
    gone = dropout(0.1)(torch.ones(1_000_000)) == 0
    for distance in (1, 2, 3, 4, 8, 512):  # four neighbours come from one draw
        both = (gone[distance:] & gone[:-distance]).float().mean().item()
        assert both == pytest.approx(0.01, abs=0.0005)
    for lane in range(4):
        assert gone[lane::4].float().mean().item() == pytest.approx(0.1, abs=0.0025)


def test_the_gradient_passes_where_the_value_did() -> None:
    torch.manual_seed(0)
    x = torch.randn(7, 5, 3, requires_grad=True)
    y = dropout(0.5)(x)
    y.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.where(y == 0, 0.0, 2.0))
    torch.testing.assert_close(y, x * x.grad)


def test_a_seed_repeats_the_drops_and_calls_differ() -> None:
    x = torch.ones(1001)
    torch.manual_seed(3)
    first, second = dropout(0.2)(x), dropout(0.2)(x)
    torch.manual_seed(3)
    assert torch.equal(first, dropout(0.2)(x))
    assert torch.equal(second, dropout(0.2)(x))
    assert not torch.equal(first, second)


def test_nothing_drops_outside_training_or_at_share_zero() -> None:
    x = torch.randn(9)
    assert dropout(0.5).eval()(x) is x
    assert dropout(0.0)(x) is x


@pytest.mark.parametrize("shape", [(0, 4), (1,), (3, 7), (2, 3, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_shape_and_type_stay(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.randn(shape, dtype=dtype)
    for given in (x, x.transpose(0, -1)):
        y = dropout(0.5)(given)
        assert (y.shape, y.dtype) == (given.shape, dtype)
        assert torch.equal(y, torch.where(y == 0, y, given * 2))


def test_hashed_places_look_random() -> None:
    """What compiled code on a GPU drops by: every share, no pattern along rows or columns, none
    between two seeds."""
    one, two = (
        hashed(torch.Size((2000, 512)), torch.tensor(seed, dtype=torch.int32))
        for seed in (12345, -987654321)
    )
    assert one.min() >= 0
    assert one.max() < 2**16
    for share in (0.1, 0.5):
        gone, other = one < round(share * 2**16), two < round(share * 2**16)
        both = [gone & other] + [
            gone.flatten()[step:] & gone.flatten()[:-step] for step in (1, 2, 16, 512, 1024)
        ]
        assert gone.float().mean().item() == pytest.approx(share, abs=0.002)
        assert gone.float().mean(0).std().item() == pytest.approx(
            (share * (1 - share) / 2000) ** 0.5, rel=0.15
        )
        for pair in both:
            assert pair.float().mean().item() == pytest.approx(share**2, abs=0.002)


def test_a_seed_for_every_dropout() -> None:
    model = torch.nn.Sequential(torch.nn.Dropout(0.1), torch.nn.Linear(2, 2), torch.nn.Dropout(0.2))
    seeds = sow(model, torch.device("cpu"))
    seeds.copy_(torch.tensor([7, 8]))
    planted = [cast(torch.Tensor, model[i].seed) for i in (0, 2)]
    assert [int(seed) for seed in planted] == [7, 8]
