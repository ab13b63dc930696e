"""The Evoformer's blocks beside the published pseudo-code (AlphaFold 2, supplementary algorithms 7
to 14), written here index by index in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman.model.evoformer import (
    ColumnAttention,
    EvoformerBlock,
    OuterProductMean,
    RowAttention,
    Transition,
    TriangleAttention,
    TriangleProduct,
)

Array = NDArray[np.float64]
S, R, M, Z, H, C = 3, 4, 6, 5, 2, 3


def drawn(module: nn.Module) -> Any:
    """In double precision, with no weight at its first value."""
    torch.manual_seed(1)
    module = module.double()
    with torch.no_grad():
        for weight in module.parameters():
            weight.normal_()
    return module


def table(*shape: int) -> Tensor:
    torch.manual_seed(2)
    return torch.randn(*shape, dtype=torch.float64)


def linear(layer: Any, x: Array) -> Array:
    y = layer.weight.detach().numpy() @ x
    return y if layer.bias is None else y + layer.bias.detach().numpy()


def norm(layer: Any, x: Array) -> Array:
    scaled = (x - x.mean()) / np.sqrt(x.var() + layer.eps)
    return scaled * layer.weight.detach().numpy() + layer.bias.detach().numpy()


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max())
    return e / e.sum()


def heads(layer: Any, x: Array) -> Array:
    return linear(layer, x).reshape(H, C)


def attended(part: Any, own: Array, keys: list[Array], bias: Array) -> Array:
    """Lines 2 to 7 of the algorithms for one query: `own` is its normed vector, `keys` are those of
    what it sees, and `bias` (keys, H) is added."""
    gate = sigmoid(linear(part.gate, own)).reshape(H, C)
    query = heads(part.query, own)
    found = np.zeros((H, C))
    for h in range(H):
        scores = [
            query[h] @ heads(part.key, k)[h] / np.sqrt(C) + bias[n, h] for n, k in enumerate(keys)
        ]
        weights = softmax(np.array(scores))
        for weight, k in zip(weights, keys, strict=True):
            found[h] += weight * heads(part.value, k)[h]
    return linear(part.out, (gate * found).ravel())


@torch.no_grad()
def test_row_attention_with_pair_bias() -> None:
    """Algorithm 7."""
    block = drawn(RowAttention(M, Z, H, C))
    m, z = table(S, R, M), table(R, R, Z)
    expected = np.zeros((S, R, M))
    for s in range(S):
        normed = [norm(block.norm, m[s, i].numpy()) for i in range(R)]
        for i in range(R):
            bias = [linear(block.bias, norm(block.pair_norm, z[i, j].numpy())) for j in range(R)]
            expected[s, i] = attended(block.attention, normed[i], normed, np.array(bias))
    np.testing.assert_allclose(block(m, z).numpy(), expected)


@torch.no_grad()
def test_column_attention() -> None:
    """Algorithm 8."""
    block = drawn(ColumnAttention(M, H, C))
    m = table(S, R, M)
    expected = np.zeros((S, R, M))
    for i in range(R):
        normed = [norm(block.norm, m[s, i].numpy()) for s in range(S)]
        for s in range(S):
            expected[s, i] = attended(block.attention, normed[s], normed, np.zeros((S, H)))
    np.testing.assert_allclose(block(m).numpy(), expected)


@torch.no_grad()
def test_transition() -> None:
    """Algorithm 9."""
    block = drawn(Transition(M))
    m = table(S, R, M)
    assert block.inner.out_features == 4 * M
    expected = np.zeros((S, R, M))
    for s in range(S):
        for i in range(R):
            inner = linear(block.inner, norm(block.norm, m[s, i].numpy()))
            expected[s, i] = linear(block.outer, np.maximum(inner, 0))
    np.testing.assert_allclose(block(m).numpy(), expected)


@torch.no_grad()
def test_outer_product_mean() -> None:
    """Algorithm 10."""
    block = drawn(OuterProductMean(M, Z, C))
    m = table(S, R, M)
    expected = np.zeros((R, R, Z))
    for i in range(R):
        for j in range(R):
            mean = np.zeros((C, C))
            for s in range(S):
                a = linear(block.left, norm(block.norm, m[s, i].numpy()))
                b = linear(block.right, norm(block.norm, m[s, j].numpy()))
                mean += np.outer(a, b) / S
            expected[i, j] = linear(block.out, mean.ravel())
    np.testing.assert_allclose(block(m).numpy(), expected)


@pytest.mark.parametrize("outgoing", [True, False])
@torch.no_grad()
def test_triangle_multiplicative_update(outgoing: bool) -> None:
    """Algorithms 11 and 12."""
    block = drawn(TriangleProduct(Z, C, outgoing))
    z = table(R, R, Z)

    def edge(side: str, i: int, j: int) -> Array:
        x = norm(block.norm, z[i, j].numpy())
        gate = sigmoid(linear(getattr(block, f"{side}_gate"), x))
        return gate * linear(getattr(block, side), x)

    expected = np.zeros((R, R, Z))
    for i in range(R):
        for j in range(R):
            total = np.zeros(C)
            for k in range(R):
                if outgoing:
                    total += edge("left", i, k) * edge("right", j, k)
                else:
                    total += edge("left", k, i) * edge("right", k, j)
            gate = sigmoid(linear(block.gate, norm(block.norm, z[i, j].numpy())))
            expected[i, j] = gate * linear(block.out, norm(block.inner_norm, total))
    np.testing.assert_allclose(block(z).numpy(), expected)


@pytest.mark.parametrize("starting", [True, False])
@torch.no_grad()
def test_triangle_attention(starting: bool) -> None:
    """Algorithms 13 (around the starting node) and 14 (around the ending node)."""
    block = drawn(TriangleAttention(Z, H, C, starting))
    z = table(R, R, Z)
    x = np.array([[norm(block.norm, z[i, j].numpy()) for j in range(R)] for i in range(R)])
    expected = np.zeros((R, R, Z))
    for i in range(R):
        for j in range(R):
            if starting:
                keys = [x[i, k] for k in range(R)]
                bias = [linear(block.bias, x[j, k]) for k in range(R)]
            else:
                keys = [x[k, j] for k in range(R)]
                bias = [linear(block.bias, x[k, i]) for k in range(R)]
            expected[i, j] = attended(block.attention, x[i, j], keys, np.array(bias))
    np.testing.assert_allclose(block(z).numpy(), expected)


@torch.no_grad()
def test_a_whole_block_and_a_batch_of_it() -> None:
    """Each part adds to what came before, in the order of algorithm 6; tables can be stacked."""
    block = drawn(EvoformerBlock(M, Z, H, C))
    for weight in block.parameters():
        weight.mul_(0.2)
    m, z = table(2, S, R, M), table(2, R, R, Z)
    sequences, pairs = block(m, z)
    assert sequences.shape == m.shape
    assert pairs.shape == z.shape
    m_one, z_one = m[1], z[1]
    m_one = m_one + block.rows(m_one, z_one)
    m_one = m_one + block.columns(m_one)
    m_one = m_one + block.transition(m_one)
    z_one = z_one + block.products(m_one)
    for part in (block.outgoing, block.incoming, block.starting, block.ending):
        z_one = z_one + part(z_one)
    z_one = z_one + block.pair_transition(z_one)
    torch.testing.assert_close(sequences[1], m_one)
    torch.testing.assert_close(pairs[1], z_one)
