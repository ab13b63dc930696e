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
        return (
            product if layer.bias is None else self.graph("Add", product, self.weight(layer.bias))
        )

    def product(self, x: str, matrix: Any) -> str:
        """x W^T."""
        turned = self.graph("Transpose", self.weight(matrix), perm=[1, 0])
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
        square = graph("ReduceMean", graph("Mul", x, x), axes=[-1], keepdims=1)
        epsilon = graph.constant(layer.eps, np.float32)
        root = graph("Sqrt", graph("Add", square, epsilon))
        return graph("Mul", graph("Div", x, root), weight)

    def residual(self, x: str, layer: Any, sublayer: Callable[[str], str]) -> str:
        """The box "Add & Norm" of figure 1."""
        if layer.norm_first:
            return self.graph("Add", x, sublayer(self.norm(x, layer.norm)))
        return self.norm(self.graph("Add", x, sublayer(x)), layer.norm)

    def feedforward(self, layer: Any, x: str) -> str:
        """Equation 2, with another activation or a gate where the model has them."""
        inner = self.linear(x, layer.inner)
        if layer.gate is None:
            return self.linear(self.activation(inner), layer.outer)
        gate = self.activation(self.linear(x, layer.gate))
        return self.linear(self.graph("Mul", gate, inner), layer.outer)

    def activation(self, x: str) -> str:
        """The function between the two products of a feed-forward network."""
        graph = self.graph
        kind = self.config.activation
        if kind == "relu":
            return graph("Relu", x)
        if kind == "silu":
            return graph("Mul", x, graph("Sigmoid", x))
        inner = graph("Mul", x, graph.constant(math.sqrt(0.5), np.float32))
        curve = "Erf"
        if kind == "gelu_tanh":
            cube = graph("Mul", x, graph("Mul", x, x))
            small = graph("Mul", cube, graph.constant(0.044715, np.float32))
            scale = graph.constant(math.sqrt(2 / math.pi), np.float32)
            inner = graph("Mul", graph("Add", x, small), scale)
            curve = "Tanh"
        share = graph("Add", graph(curve, inner), graph.constant(1.0, np.float32))
        half = graph("Mul", x, graph.constant(0.5, np.float32))
        return graph("Mul", half, share)

    def keys_values(self, x: str, layer: Any) -> KeysValues:
        """Those that an attention makes of x (N, T, D)."""
        both = self.linear(x, layer.key_value)
        keys, values = self.graph.several("Split", 2, both, axis=-1)
        return KeysValues(self._heads(keys, layer.kv_heads), self._heads(values, layer.kv_heads))

    def queries(self, x: str, layer: Any) -> str:
        """Those that an attention makes of x (N, T, D): (N, H, T, E)."""
        return self._heads(self.linear(x, layer.query), layer.n_heads)

    def attend(self, queries: str, seen: KeysValues, mask: str | None, layer: Any) -> str:
        """Equation 1, and the matrix that joins the heads: (N, T, D). The mask is added."""
        graph = self.graph
        config = self.config
        scale = graph.constant(1 / math.sqrt(config.size), np.float32)
        keys = graph("Transpose", self._spread(seen.keys, layer), perm=[0, 1, 3, 2])
        scores = graph("MatMul", graph("Mul", queries, scale), keys)  # (N, H, T, S)
        if mask is not None:
            scores = graph("Add", scores, mask)
        weights = graph("Softmax", scores, axis=-1)
        heads = graph("MatMul", weights, self._spread(seen.values, layer))
        joined = graph("Transpose", heads, perm=_FRONT)
        width = config.n_heads * config.size
        return self.linear(graph("Reshape", joined, graph.constant([0, 0, width])), layer.out)

    def turned(self, x: str, layer: Any, positions: str) -> str:
        """x (N, H, T, E), turned by its positions (T) where these are rotary."""
        if layer.rotary is None:
            return x
        graph = self.graph
        column = graph("Unsqueeze", self._floats(positions), graph.constant([1]))
        angles = graph("Mul", column, self.weight(layer.rotary.frequencies))  # (T, E / 2)
        cosine = graph("Cos", angles)
        sine = graph("Sin", angles)
        left, right = graph.several("Split", 2, x, axis=-1)
        new_left = graph("Sub", graph("Mul", left, cosine), graph("Mul", right, sine))
        new_right = graph("Add", graph("Mul", right, cosine), graph("Mul", left, sine))
        return graph("Concat", new_left, new_right, axis=-1)

    def bias(self, relative: RelativeBias, queries: str, keys: str) -> str:
        """The bias of each distance between positions (T) and (S): (1, H, T, S).

        The buckets of all distances are computed here, since beyond the furthest they are one.
        """
        graph = self.graph
        furthest = relative.furthest
        distances = torch.arange(-furthest, furthest + 1)
        with torch.no_grad():
            found = relative(torch.zeros(1, dtype=torch.long), distances)
        table = graph.constant(found[0, :, 0].T.float().numpy(), np.float32)  # (distances, H)
        column = graph("Unsqueeze", queries, graph.constant([1]))
        distance = graph("Sub", keys, column)
        nearest = graph("Max", distance, graph.constant(-furthest))
        within = graph("Min", nearest, graph.constant(furthest))
        index = graph("Add", within, graph.constant(furthest))
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
        return self.residual(
            x, layer.after_feedforward, partial(self.feedforward, layer.feedforward)
        )

    def _across(self, layer: Any, seen: KeysValues, mask: str | None, x: str) -> str:
        return self.attend(self.queries(x, layer), seen, mask, layer)

    def _heads(self, x: str, count: int) -> str:
        """(N, T, heads * E) -> (N, heads, T, E)."""
        shape = self.graph.constant([0, 0, count, self.config.size])
        return self.graph("Transpose", self.graph("Reshape", x, shape), perm=_FRONT)

    def _spread(self, x: str, layer: Any) -> str:
        """(N, G, S, E) -> (N, H, S, E): each head of keys or values serves a group of queries."""
        group = layer.n_heads // layer.kv_heads
        if group == 1:
            return x
        graph = self.graph
        apart = graph("Unsqueeze", x, graph.constant([2]))
        repeated = graph("Expand", apart, graph.constant([1, 1, group, 1, 1]))
        shape = graph.constant([0, layer.n_heads, -1, self.config.size])
        return graph("Reshape", repeated, shape)

    def _floats(self, x: str) -> str:
        return self.graph("Cast", x, to=1)  # TensorProto.FLOAT


def counted(graph: Graph, end: str) -> str:
    """The positions 0, 1, …, end - 1; `end` is a scalar."""
    return graph("Range", graph.constant(0), end, graph.constant(1))


def size_of(graph: Graph, x: str, axis: int) -> str:
    """The size of one axis, as a scalar."""
    return graph("Gather", graph("Shape", x), graph.constant(axis), axis=0)


def padding_mask(graph: Graph, lengths: str, size: str) -> str:
    """(N, 1, 1, S), added to attention's scores: 0 where there is a token, else -inf."""
    column = graph("Unsqueeze", lengths, graph.constant([1]))
    there = graph("Less", counted(graph, size), column)
    zero = graph.constant(0.0, np.float32)
    never = graph.constant(-math.inf, np.float32)
    mask = graph("Where", there, zero, never)
    return graph("Unsqueeze", mask, graph.constant([1, 2]))
