"""Attention in a decoding step: each twin against torch's own attention."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.kernels import decoding_attention
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.model_config import ModelConfig

ROWS, HEADS, CAPACITY, POSITION = 3, 2, 10, 6


class Example:
    """Queries of some beams over a cache that has more space than positions."""

    def __init__(self, beams: int, size: int, device: torch.device, dtype: torch.dtype) -> None:
        torch.manual_seed(0)
        joint = torch.randn(ROWS, beams, 3 * HEADS * size, device=device, dtype=dtype)
        self.query = joint[..., : HEADS * size].unflatten(-1, (HEADS, size)).transpose(1, 2)
        shape = (ROWS, 2 * HEADS, CAPACITY * beams, size)
        self.key, self.value = torch.randn(shape, device=device, dtype=dtype).chunk(2, dim=1)
        hidden = torch.rand(ROWS, 1, beams, CAPACITY * beams, device=device) < 0.5
        hidden[..., 0] = False
        hidden[..., (POSITION + 1) * beams :] = True
        self.mask = torch.zeros_like(hidden, dtype=dtype).masked_fill(hidden, -torch.inf)
        self.position = torch.tensor([POSITION], device=device)

    def expected(self, mask: Tensor | None) -> Tensor:
        return F.scaled_dot_product_attention(self.query, self.key, self.value, mask)


@pytest.mark.parametrize("beams", [1, 4, 5])
def test_plain_products(beams: int) -> None:
    example = Example(beams, 16, torch.device("cpu"), torch.float32)
    for mask in (None, example.mask, example.mask[:, :, :1]):
        result = decoding_attention.products(example.query, (example.key, example.value), mask)
        torch.testing.assert_close(result, example.expected(mask))


@pytest.mark.gpu
@pytest.mark.parametrize(("beams", "size"), [(1, 16), (4, 64), (5, 32), (20, 16)])
@torch.no_grad()
def test_the_kernel(device: torch.device, beams: int, size: int, dtype: torch.dtype) -> None:
    example = Example(beams, size, device, dtype)
    tolerance = 1e-4 if dtype == torch.float32 else 2e-2
    close: dict[str, Any] = {"rtol": tolerance, "atol": tolerance}
    seen = (example.key, example.value)
    for mask, last in ((example.mask, example.position), (example.mask, None), (None, None)):
        result = decoding_attention.launch(example.query, seen, mask, last)
        torch.testing.assert_close(result, example.expected(mask), **close)
    one_for_all = example.mask[:, :, :1]
    result = decoding_attention.launch(example.query, seen, one_for_all, None)
    torch.testing.assert_close(result, example.expected(one_for_all), **close)


@pytest.mark.gpu
@torch.no_grad()
def test_what_the_kernel_is_not_for(device: torch.device) -> None:
    """Weights that are recorded, a mask for each head, and more beams than it has rows for."""
    attention = MultiHeadAttention(ModelConfig(d_model=32, n_heads=2)).to(device)
    example = Example(2, 16, device, torch.float32)
    seen = (example.key, example.value)
    record: list[Tensor] = []
    look = decoding_attention.look_by_triton
    result = look(attention, example.query, seen, example.mask, None, record)
    torch.testing.assert_close(result, example.expected(example.mask), rtol=1e-4, atol=1e-4)
    assert [tuple(one.shape) for one in record] == [(ROWS, HEADS, 2, CAPACITY * 2)]
    each = example.mask + torch.randn(1, HEADS, 1, 1, device=device)
    result = look(attention, example.query, seen, each, None, None)
    torch.testing.assert_close(result, example.expected(each), rtol=1e-4, atol=1e-4)
    example = Example(decoding_attention.MOST_BEAMS + 1, 16, device, torch.float32)
    result = look(attention, example.query, (example.key, example.value), None, None, None)
    torch.testing.assert_close(result, example.expected(None), rtol=1e-4, atol=1e-4)
