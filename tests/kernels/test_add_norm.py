"""The sum and its norm in one kernel, against torch's layer norm."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from dragoman.kernels.add_norm import add_norm, fits, residual_by_triton
from dragoman.model.model_config import ModelConfig
from dragoman.model.norm import Residual

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("width", [96, 512])
@torch.no_grad()
def test_add_and_norm(device: torch.device, width: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(2, 7, width, device=device, dtype=dtype)
    norm = nn.LayerNorm(width).to(device)
    norm.weight.normal_()
    norm.bias.normal_()
    expected = norm(x.float() + y.float())
    close: dict[str, Any] = (
        {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 2e-2, "atol": 2e-2}
    )
    torch.testing.assert_close(add_norm(x, y, norm.to(dtype)).float(), expected, **close)


def test_a_residual(device: torch.device) -> None:
    """The kernel has no gradient; where one is wanted, the plain box computes."""
    config = ModelConfig(d_model=32, n_heads=2)
    residual = Residual(config).to(device).eval()
    x = torch.randn(3, 4, 32, device=device)
    expected = residual(x, torch.relu)
    assert residual_by_triton(residual, x, torch.relu).requires_grad
    with torch.no_grad():
        result = residual_by_triton(residual, x, torch.relu)
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"norm_first": True}, False),
        ({"norm": "rms"}, False),
        ({"d_model": 16384}, False),
    ],
)
def test_what_it_is_for(fields: dict[str, object], expected: bool) -> None:
    assert fits(ModelConfig(**fields)) == expected  # type: ignore[arg-type]
