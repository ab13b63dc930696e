"""PaLM's block beside twenty lines of numpy, with the cache, in a whole model and in 8 bits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dragoman.errors import OptionError
from dragoman.folder import quantised
from dragoman.model.families import FAMILIES
from dragoman.model.model_config import ModelConfig
from dragoman.model.parallel_layer import ParallelLayer
from dragoman.model.sight import Sight
from dragoman.model.transformer import Transformer
from dragoman.runtimes import int8

Array = NDArray[np.float64]
SIZES = {"vocab_size": 60, "d_model": 32, "d_ff": 48, "n_heads": 4, "decoder_layers": 3}


def palm() -> Transformer:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(**SIZES | FAMILIES["palm"], dropout=0.0))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def block_in_numpy(layer: ParallelLayer, x: Array) -> Array:
    """(T, D): x + Attention(Norm(x)) + FFN(Norm(x)), one head of keys and values for all queries,
    pairs of dimensions turned by their position, SwiGLU, no biases."""
    weights = {name: one.detach().double().numpy() for name, one in layer.named_parameters()}
    epsilon = layer.after_both.norm.eps
    y = x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * weights["after_both.norm.weight"]
    length = len(x)
    size = weights["attention.key_value.weight"].shape[0] // 2
    angles = np.arange(length)[:, None] * weights["attention.rotary.frequencies"]

    def turned(v: Array) -> Array:
        left, right = v[:, : size // 2], v[:, size // 2 :]
        cos, sin = np.cos(angles), np.sin(angles)
        return np.concatenate([left * cos - right * sin, right * cos + left * sin], axis=1)

    key, value = np.split(y @ weights["attention.key_value.weight"].T, 2, axis=1)
    queries = np.split(y @ weights["attention.query.weight"].T, 4, axis=1)
    seen = np.tril(np.ones((length, length)))
    found = []
    for query in queries:
        scores = np.exp(turned(query) @ turned(key).T / np.sqrt(size)) * seen
        found.append(scores / scores.sum(-1, keepdims=True) @ value)
    attention = np.concatenate(found, axis=1) @ weights["attention.out.weight"].T
    gate = y @ weights["feedforward.gate.weight"].T
    inner = gate / (1 + np.exp(-gate)) * (y @ weights["feedforward.inner.weight"].T)
    return x + attention + inner @ weights["feedforward.outer.weight"].T


@torch.no_grad()
def test_the_block_is_that_of_the_formula() -> None:
    layer = palm().decoder.layers[1]
    assert isinstance(layer, ParallelLayer)
    assert not [name for name, _ in layer.named_parameters() if "bias" in name]
    x = torch.randn(1, 7, 32)
    ours = layer(x, Sight())[0].double().numpy()
    np.testing.assert_allclose(ours, block_in_numpy(layer, x[0].double().numpy()), atol=1e-5)


@torch.no_grad()
def test_step_by_step_and_in_8_bits() -> None:
    model = palm()
    target = torch.randint(4, 60, (3, 9))
    whole = model(None, target)
    state = model.start(None)
    steps = [model.step(target[:, place : place + 1], state) for place in range(9)]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, rtol=1e-4, atol=1e-5)
    if not int8.available():
        pytest.skip("this CPU has no 8-bit kernels in torch")
    near = int8.build(model.config, quantised.quantise(model))
    state = near.start(None)
    steps = [near.step(target[:, place : place + 1], state) for place in range(9)]
    distance = (torch.cat(steps, dim=1) - whole).norm() / whole.norm()
    assert 0.0 < distance < 0.05


def test_where_it_does_not_fit() -> None:
    with pytest.raises(OptionError, match="parallel needs norm_first"):
        ModelConfig(vocab_size=60, parallel=True)
    with pytest.raises(OptionError, match="an encoder or a decoder alone"):
        ModelConfig(vocab_size=60, parallel=True, norm_first=True)
    with pytest.raises(OptionError, match="for an encoder alone"):
        ModelConfig(vocab_size=60, positions="distances")
