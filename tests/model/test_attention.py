"""Attention against values worked out by hand, and the explicit path against the fast kernel."""

from __future__ import annotations

import math

import pytest
import torch

from dragoman.model.attention import MultiHeadAttention
from dragoman.model.model_config import ModelConfig
from dragoman.model.scaled_dot_product import attention


def test_worked_example() -> None:
    query, keys, values = 1.0, [2.0, 0.1, 1.5], [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    exponentials = [math.exp(query * key / math.sqrt(1)) for key in keys]
    expected_weights = [e / sum(exponentials) for e in exponentials]
    expected = [
        sum(w * row[column] for w, row in zip(expected_weights, values, strict=True))
        for column in range(2)
    ]
    assert [round(w, 2) for w in expected_weights] == [0.57, 0.09, 0.35]
    assert [round(x, 2) for x in expected] == [0.57, 0.35]

    output, weights = attention(
        torch.tensor([[query]]), torch.tensor(keys)[:, None], torch.tensor(values)
    )
    assert weights[0].tolist() == pytest.approx(expected_weights, abs=1e-6)
    assert output[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_scores_are_divided_by_the_root_of_the_key_width() -> None:
    query, key = (
        torch.tensor([[1.0, 2.0, 3.0, 4.0]]),
        torch.tensor([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]]),
    )
    _, weights = attention(query, key, torch.eye(2))  # products 5 and 5
    assert weights[0].tolist() == pytest.approx([0.5, 0.5])
    _, weights = attention(
        query, key * torch.tensor([[2.0], [1.0]]), torch.eye(2)
    )  # products 10 and 5, sqrt(4) = 2
    assert weights[0, 0].item() == pytest.approx(1 / (1 + math.exp(-2.5)))


def test_a_masked_key_has_no_weight() -> None:
    query, key, value = torch.randn(3, 8), torch.randn(4, 8), torch.randn(4, 8)
    output, weights = attention(query, key, value, torch.tensor([True, False, True, True]))
    expected, _ = attention(query, key[[0, 2, 3]], value[[0, 2, 3]])
    assert weights[:, 1].tolist() == [0.0, 0.0, 0.0]
    torch.testing.assert_close(output, expected)


def test_causal_weights_are_lower_triangular() -> None:
    _, weights = attention(torch.randn(5, 8), torch.randn(5, 8), torch.randn(5, 8), causal=True)
    assert torch.equal(weights > 0, torch.ones(5, 5).tril() > 0)
    torch.testing.assert_close(weights.sum(-1), torch.ones(5))


@pytest.mark.parametrize(("masked", "causal"), [(False, False), (True, False), (False, True)])
def test_the_explicit_path_equals_the_fast_kernel(masked: bool, causal: bool) -> None:
    torch.manual_seed(1)
    layer = MultiHeadAttention(ModelConfig(d_model=32, n_heads=4), causal=causal)
    x = torch.randn(3, 6, 32)
    mask = (torch.arange(6) < torch.tensor([6, 2, 4])[:, None])[:, None, None] if masked else None
    record: list[torch.Tensor] = []
    explicit = layer(x, x, mask, record)
    fast = layer(x, x, mask)
    torch.testing.assert_close(explicit, fast)
    (weights,) = record
    assert weights.shape == (3, 4, 6, 6)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4, 6))


def test_each_head_works_in_its_own_subspace() -> None:
    torch.manual_seed(2)
    layer, x = MultiHeadAttention(ModelConfig(d_model=8, n_heads=2)), torch.randn(1, 3, 8)
    q, k, v = layer.query(x)[0], layer.key_value(x)[0, :, :8], layer.key_value(x)[0, :, 8:]
    heads = [
        attention(q[:, part], k[:, part], v[:, part])[0] for part in (slice(0, 4), slice(4, 8))
    ]
    torch.testing.assert_close(layer(x)[0], layer.out(torch.cat(heads, dim=-1)))
