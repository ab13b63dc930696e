"""An encoder, and one step of a decoder, as ONNX graphs. Knows our model and the layers as nodes;
no files, no search and no text.

N rows, S source and T earlier target positions, D d_model, V vocabulary, G heads of keys and
values, E width of a head. A row of the decoder is one hypothesis: a search with K beams has K rows
for each sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dragoman.formats.onnx_graph import Graph, Weight
from dragoman.formats.onnx_layers import KeysValues, Layers, counted, padding_mask, size_of
from dragoman.model.transformer import Transformer

# The positions of keys and values, as the axes of inputs and outputs are named.
_LENGTHS = {
    "memory": "S",
    "past": "T",
    "present": "T + 1",
}


@dataclass(frozen=True)
class Stacks:
    """Writes the two graphs of a model, whose weights are given by name."""

    model: Transformer
    weights: dict[str, Weight]

    def encoder(self) -> Graph:
        """From source tokens to what every step of the decoder sees: keys and values of each of
        its layers."""
        layers = self._layers()
        graph = layers.graph
        stack = self.model.encoder
        source = graph.input("source", np.int64, ["N", "S"])
        lengths = graph.input("lengths", np.int64, ["N"])
        size = size_of(graph, source, 1)
        positions = counted(graph, size)
        mask = padding_mask(graph, lengths, size)
        if stack.relative is not None:
            bias = layers.bias(stack.relative, positions, positions)
            mask = graph("Add", mask, bias)
        x = _embedded(layers, stack.embeddings, source, positions)
        for layer in stack.layers:
            own = partial(_itself, layers, layer.attention, positions, mask)
            x = layers.layer(x, layer, own)
        memory = layers.norm(x, stack.norm)
        for index, layer in enumerate(self.model.decoder.layers):
            found = layers.keys_values(memory, layer.cross_attention)
            self._output(graph, "memory", index, found)
        return graph

    def decoder(self) -> Graph:
        """From the newest token of each row, the keys and values before it and those of the
        memory to the logits of the next token, and the keys and values with the newest."""
        layers = self._layers()
        graph = layers.graph
        stack = self.model.decoder
        tokens = graph.input("tokens", np.int64, ["N"])
        memory = self._memory(graph)
        n_layers = len(stack.layers)
        past = [self._input(graph, "past", index) for index in range(n_layers)]
        before = size_of(graph, past[0].keys, 2)
        single = graph.constant([1])
        position = graph("Reshape", before, single)
        bias = None
        if stack.relative is not None:
            one = graph.constant(1)
            count = graph("Add", before, one)
            seen = counted(graph, count)
            bias = layers.bias(stack.relative, position, seen)
        column = graph("Unsqueeze", tokens, single)
        x = _embedded(layers, stack.embeddings, column, position)
        present = []
        for index, layer in enumerate(stack.layers):
            newest = _Newest(layers, layer.attention, past[index], position, bias)
            across = memory[index] if memory else None
            x = layers.layer(x, layer, newest.look, across)
            present += newest.seen
        normed = layers.norm(x, stack.norm)
        newest_only = graph("Squeeze", normed, single)
        logits = self._logits(layers, newest_only)
        graph.output("logits", logits, ["N", self.model.config.vocab_size])
        for index, both in enumerate(present):
            self._output(graph, "present", index, both)
        return graph

    def _layers(self) -> Layers:
        names = {id(one): name for name, one in self.model.named_parameters()}
        return Layers(Graph(self.weights), self.model.config, names)

    def _memory(self, graph: Graph) -> list[tuple[KeysValues, str]]:
        """What each layer sees of the source, and the mask of its padding."""
        if not self.model.config.encoder_layers:
            return []
        lengths = graph.input("lengths", np.int64, ["N"])
        count = len(self.model.decoder.layers)
        found = [self._input(graph, "memory", index) for index in range(count)]
        size = size_of(graph, found[0].keys, 2)
        mask = padding_mask(graph, lengths, size)
        return [(one, mask) for one in found]

    def _logits(self, layers: Layers, x: str) -> str:
        product = layers.product(x, self.model.output_weight)
        bias = self.model.output_bias
        if bias is None:
            return product
        weight = layers.weight(bias)
        return layers.graph("Add", product, weight)

    def _shape(self, kind: str) -> list[int | str]:
        config = self.model.config
        heads = config.kv_heads or config.n_heads
        return ["N", heads, _LENGTHS[kind], config.size]

    def _input(self, graph: Graph, kind: str, index: int) -> KeysValues:
        shape = self._shape(kind)
        keys = graph.input(f"{kind}_keys_{index}", np.float32, shape)
        values = graph.input(f"{kind}_values_{index}", np.float32, shape)
        return KeysValues(keys, values)

    def _output(self, graph: Graph, kind: str, index: int, both: KeysValues) -> None:
        shape = self._shape(kind)
        graph.output(f"{kind}_keys_{index}", both.keys, shape)
        graph.output(f"{kind}_values_{index}", both.values, shape)


class _Newest:
    """Attention of the newest position to itself and to all before it."""

    def __init__(
        self,
        layers: Layers,
        layer: Any,
        past: KeysValues,
        position: str,
        mask: str | None,
    ) -> None:
        self.layers = layers
        self.layer = layer
        self.past = past
        self.position = position
        self.mask = mask
        self.seen: list[KeysValues] = []  # with the newest position, once it has looked

    def look(self, x: str) -> str:
        layers = self.layers
        newest = layers.keys_values(x, self.layer)
        turned = layers.turned(newest.keys, self.layer, self.position)
        keys = layers.graph("Concat", self.past.keys, turned, axis=2)
        values = layers.graph("Concat", self.past.values, newest.values, axis=2)
        seen = KeysValues(keys, values)
        self.seen.append(seen)
        projected = layers.queries(x, self.layer)
        queries = layers.turned(projected, self.layer, self.position)
        return layers.attend(queries, seen, self.mask, self.layer)


def _itself(layers: Layers, layer: Any, positions: str, mask: str, x: str) -> str:
    """Attention of whole sequences to themselves."""
    keys, values = layers.keys_values(x, layer)
    turned_keys = layers.turned(keys, layer, positions)
    seen = KeysValues(turned_keys, values)
    projected = layers.queries(x, layer)
    queries = layers.turned(projected, layer, positions)
    return layers.attend(queries, seen, mask, layer)


def _embedded(layers: Layers, embeddings: Any, tokens: str, positions: str) -> str:
    """Tokens (N, T) at their positions (T) -> (N, T, D)."""
    graph = layers.graph
    vectors = layers.weight(embeddings.tokens.weight)
    x = graph("Gather", vectors, tokens, axis=0)
    if embeddings.scale != 1.0:
        scale = graph.constant(embeddings.scale, np.float32)
        x = graph("Mul", x, scale)
    if embeddings.positions is not None:
        table = embeddings.positions.table
        if embeddings.positions.learned:
            stored = layers.weight(table)
        else:
            stored = graph.constant(table.float().numpy(), np.float32)
        rows = graph("Gather", stored, positions, axis=0)
        x = graph("Add", x, rows)
    return layers.norm(x, embeddings.norm)
