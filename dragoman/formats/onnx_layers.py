"""The layers of our models as nodes of an ONNX graph. Knows our modules and the graph; no files, no
search and no text.

N rows, T new and S seen positions, D d_model, H heads, G heads of keys and values, E width of a
head.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from dragoman.formats.onnx_graph import Graph
from dragoman.model.model_config import ModelConfig
from dragoman.model.positions import RelativeBias

_FRONT = [0, 2, 1, 3]  # heads before positions, and back again


class KeysValues(NamedTuple):
    """Of one layer, each (N, G, S, E)."""

    keys: str
    values: str


@dataclass(frozen=True)
class Layers:
    """Writes layers of models of one shape into a graph."""

    graph: Graph
    config: ModelConfig
    names: dict[int, str]  # of each parameter, by its id()

    def weight(self, parameter: Any) -> str:
        """A parameter as a value."""
        return self.graph.weight(self.names[id(parameter)])

    def linear(self, x: str, layer: Any) -> str:
        """x W^T + b."""
        product = self.product(x, layer.weight)
        if layer.bias is None:
            return product
        bias = self.weight(layer.bias)
        return self.graph("Add", product, bias)

    def product(self, x: str, matrix: Any) -> str:
        """x W^T."""
        weight = self.weight(matrix)
        turned = self.graph("Transpose", weight, perm=[1, 0])
        return self.graph("MatMul", x, turned)

    def norm(self, x: str, layer: Any) -> str:
        """The norm of mean and variance, or of the root mean square alone; or none."""
        if isinstance(layer, torch.nn.Identity):
            return x
        graph = self.graph
        weight = self.weight(layer.weight)
        if isinstance(layer, torch.nn.LayerNorm):
            bias = self.weight(layer.bias)
            return graph("LayerNormalization", x, weight, bias, axis=-1, epsilon=layer.eps)
        squares = graph("Mul", x, x)
        mean = graph("ReduceMean", squares, axes=[-1], keepdims=1)
        epsilon = graph.constant(layer.eps, np.float32)
        above_zero = graph("Add", mean, epsilon)
        root = graph("Sqrt", above_zero)
        normed = graph("Div", x, root)
        return graph("Mul", normed, weight)

    def residual(self, x: str, layer: Any, sublayer: Callable[[str], str]) -> str:
        """The box "Add & Norm" of figure 1."""
        if layer.norm_first:
            normed = self.norm(x, layer.norm)
            return self.graph("Add", x, sublayer(normed))
        added = self.graph("Add", x, sublayer(x))
        return self.norm(added, layer.norm)

    def feedforward(self, layer: Any, x: str) -> str:
        """Equation 2, with another activation or a gate where the model has them."""
        inner = self.linear(x, layer.inner)
        if layer.gate is None:
            active = self.activation(inner)
            return self.linear(active, layer.outer)
        opening = self.linear(x, layer.gate)
        gate = self.activation(opening)
        gated = self.graph("Mul", gate, inner)
        return self.linear(gated, layer.outer)

    def activation(self, x: str) -> str:
        """The function between the two products of a feed-forward network."""
        graph = self.graph
        kind = self.config.activation
        if kind == "relu":
            return graph("Relu", x)
        if kind == "silu":
            sigmoid = graph("Sigmoid", x)
            return graph("Mul", x, sigmoid)
        curve = self._tanh_curve(x) if kind == "gelu_tanh" else self._error_curve(x)
        one = graph.constant(1.0, np.float32)
        share = graph("Add", curve, one)
        half = graph.constant(0.5, np.float32)
        halved = graph("Mul", x, half)
        return graph("Mul", halved, share)

    def _error_curve(self, x: str) -> str:
        """erf(x / sqrt(2)), of GELU as it is defined."""
        scale = self.graph.constant(math.sqrt(0.5), np.float32)
        inner = self.graph("Mul", x, scale)
        return self.graph("Erf", inner)

    def _tanh_curve(self, x: str) -> str:
        """tanh(sqrt(2 / pi) (x + 0.044715 x^3)), which is nearly the same."""
        graph = self.graph
        square = graph("Mul", x, x)
        cube = graph("Mul", x, square)
        share = graph.constant(0.044715, np.float32)
        small = graph("Mul", cube, share)
        added = graph("Add", x, small)
        scale = graph.constant(math.sqrt(2 / math.pi), np.float32)
        inner = graph("Mul", added, scale)
        return graph("Tanh", inner)

    def keys_values(self, x: str, layer: Any) -> KeysValues:
        """Those that an attention makes of x (N, T, D)."""
        both = self.linear(x, layer.key_value)
        keys, values = self.graph.several("Split", 2, both, axis=-1)
        return KeysValues(
            keys=self._heads(keys, layer.kv_heads),
            values=self._heads(values, layer.kv_heads),
        )

    def queries(self, x: str, layer: Any) -> str:
        """Those that an attention makes of x (N, T, D): (N, H, T, E)."""
        projected = self.linear(x, layer.query)
        return self._heads(projected, layer.n_heads)

    def attend(self, queries: str, seen: KeysValues, mask: str | None, layer: Any) -> str:
        """Equation 1, and the matrix that joins the heads: (N, T, D). The mask is added."""
        graph = self.graph
        config = self.config
        scale = graph.constant(1 / math.sqrt(config.size), np.float32)
        spread = self._spread(seen.keys, layer)
        keys = graph("Transpose", spread, perm=[0, 1, 3, 2])
        scaled = graph("Mul", queries, scale)
        scores = graph("MatMul", scaled, keys)  # (N, H, T, S)
        if mask is not None:
            scores = graph("Add", scores, mask)
        weights = graph("Softmax", scores, axis=-1)
        values = self._spread(seen.values, layer)
        heads = graph("MatMul", weights, values)
        apart = graph("Transpose", heads, perm=_FRONT)
        width = config.n_heads * config.size
        shape = graph.constant([0, 0, width])
        joined = graph("Reshape", apart, shape)
        return self.linear(joined, layer.out)

    def turned(self, x: str, layer: Any, positions: str) -> str:
        """x (N, H, T, E), turned by its positions (T) where these are rotary."""
        if layer.rotary is None:
            return x
        graph = self.graph
        last = graph.constant([1])
        column = graph("Unsqueeze", self._floats(positions), last)
        frequencies = self.weight(layer.rotary.frequencies)
        angles = graph("Mul", column, frequencies)  # (T, E / 2)
        cosine = graph("Cos", angles)
        sine = graph("Sin", angles)
        left, right = graph.several("Split", 2, x, axis=-1)
        new_left = graph(
            "Sub",
            graph("Mul", left, cosine),
            graph("Mul", right, sine),
        )
        new_right = graph(
            "Add",
            graph("Mul", right, cosine),
            graph("Mul", left, sine),
        )
        return graph("Concat", new_left, new_right, axis=-1)

    def bias(self, relative: RelativeBias, queries: str, keys: str) -> str:
        """The bias of each distance between positions (T) and (S): (1, H, T, S).

        The buckets of all distances are computed here, since beyond the furthest they are one.
        """
        graph = self.graph
        furthest = relative.furthest
        distances = torch.arange(-furthest, furthest + 1)
        with torch.no_grad():
            here = torch.zeros(1, dtype=torch.long)
            found = relative(here, distances)
        of_distances = found[0, :, 0].T.float()  # (distances, H)
        table = graph.constant(of_distances.numpy(), np.float32)
        last = graph.constant([1])
        column = graph("Unsqueeze", queries, last)
        distance = graph("Sub", keys, column)
        least = graph.constant(-furthest)
        most = graph.constant(furthest)
        nearest = graph("Max", distance, least)
        within = graph("Min", nearest, most)
        index = graph("Add", within, most)
        rows = graph("Gather", table, index, axis=0)  # (T, S, H)
        first = graph("Transpose", rows, perm=[2, 0, 1])
        return graph("Unsqueeze", first, graph.constant([0]))

    def layer(self, x: str, layer: Any, own: Callable[[str], str], memory: Any = None) -> str:
        """One layer of a stack; `own` is its attention to itself, `memory` what it sees else."""
        x = self.residual(x, layer.after_attention, own)
        if memory is not None:
            seen, mask = memory
            across = partial(self._across, layer.cross_attention, seen, mask)
            x = self.residual(x, layer.after_cross_attention, across)
        feedforward = partial(self.feedforward, layer.feedforward)
        return self.residual(x, layer.after_feedforward, feedforward)

    def _across(self, layer: Any, seen: KeysValues, mask: str | None, x: str) -> str:
        queries = self.queries(x, layer)
        return self.attend(queries, seen, mask, layer)

    def _heads(self, x: str, count: int) -> str:
        """(N, T, heads * E) -> (N, heads, T, E)."""
        shape = self.graph.constant([0, 0, count, self.config.size])
        apart = self.graph("Reshape", x, shape)
        return self.graph("Transpose", apart, perm=_FRONT)

    def _spread(self, x: str, layer: Any) -> str:
        """(N, G, S, E) -> (N, H, S, E): each head of keys or values serves a group of queries."""
        group = layer.n_heads // layer.kv_heads
        if group == 1:
            return x
        graph = self.graph
        behind_heads = graph.constant([2])
        apart = graph("Unsqueeze", x, behind_heads)
        copies = graph.constant([1, 1, group, 1, 1])
        repeated = graph("Expand", apart, copies)
        shape = graph.constant([0, layer.n_heads, -1, self.config.size])
        return graph("Reshape", repeated, shape)

    def _floats(self, x: str) -> str:
        return self.graph("Cast", x, to=1)  # TensorProto.FLOAT


def counted(graph: Graph, end: str) -> str:
    """The positions 0, 1, …, end - 1; `end` is a scalar."""
    zero = graph.constant(0)
    one = graph.constant(1)
    return graph("Range", zero, end, one)


def size_of(graph: Graph, x: str, axis: int) -> str:
    """The size of one axis, as a scalar."""
    shape = graph("Shape", x)
    index = graph.constant(axis)
    return graph("Gather", shape, index, axis=0)


def padding_mask(graph: Graph, lengths: str, size: str) -> str:
    """(N, 1, 1, S), added to attention's scores: 0 where there is a token, else -inf."""
    last = graph.constant([1])
    column = graph("Unsqueeze", lengths, last)
    positions = counted(graph, size)
    there = graph("Less", positions, column)
    zero = graph.constant(0.0, np.float32)
    never = graph.constant(-math.inf, np.float32)
    mask = graph("Where", there, zero, never)
    return graph("Unsqueeze", mask, graph.constant([1, 2]))
