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
            mask = graph("Add", mask, layers.bias(stack.relative, positions, positions))
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
        past = [self._input(graph, "past", index) for index, _ in enumerate(stack.layers)]
        before = size_of(graph, past[0].keys, 2)
        position = graph("Reshape", before, graph.constant([1]))
        bias = None
        if stack.relative is not None:
            seen = counted(graph, graph("Add", before, graph.constant(1)))
            bias = layers.bias(stack.relative, position, seen)
        column = graph("Unsqueeze", tokens, graph.constant([1]))
        x = _embedded(layers, stack.embeddings, column, position)
        present = []
        for index, layer in enumerate(stack.layers):
            newest = _Newest(layers, layer.attention, past[index], position, bias)
            across = memory[index] if memory else None
            x = layers.layer(x, layer, newest.look, across)
            present += newest.seen
        x = layers.norm(x, stack.norm)
        logits = self._logits(layers, graph("Squeeze", x, graph.constant([1])))
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
        found = [
            self._input(graph, "memory", index) for index, _ in enumerate(self.model.decoder.layers)
        ]
        mask = padding_mask(graph, lengths, size_of(graph, found[0].keys, 2))
        return [(one, mask) for one in found]

    def _logits(self, layers: Layers, x: str) -> str:
        product = layers.product(x, self.model.output_weight)
        bias = self.model.output_bias
        return product if bias is None else layers.graph("Add", product, layers.weight(bias))

    def _shape(self, kind: str) -> list[int | str]:
        config = self.model.config
        length = {"memory": "S", "past": "T", "present": "T + 1"}[kind]
        return ["N", config.kv_heads or config.n_heads, length, config.size]

    def _input(self, graph: Graph, kind: str, index: int) -> KeysValues:
        shape = self._shape(kind)
        keys = graph.input(f"{kind}_keys_{index}", np.float32, shape)
        return KeysValues(keys, graph.input(f"{kind}_values_{index}", np.float32, shape))

    def _output(self, graph: Graph, kind: str, index: int, both: KeysValues) -> None:
        graph.output(f"{kind}_keys_{index}", both.keys, self._shape(kind))
        graph.output(f"{kind}_values_{index}", both.values, self._shape(kind))


class _Newest:
    """Attention of the newest position to itself and to all before it."""

    def __init__(
        self, layers: Layers, layer: Any, past: KeysValues, position: str, mask: str | None
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
        queries = layers.turned(layers.queries(x, self.layer), self.layer, self.position)
        return layers.attend(queries, seen, self.mask, self.layer)


def _itself(layers: Layers, layer: Any, positions: str, mask: str, x: str) -> str:
    """Attention of whole sequences to themselves."""
    keys, values = layers.keys_values(x, layer)
    seen = KeysValues(layers.turned(keys, layer, positions), values)
    queries = layers.turned(layers.queries(x, layer), layer, positions)
    return layers.attend(queries, seen, mask, layer)


def _embedded(layers: Layers, embeddings: Any, tokens: str, positions: str) -> str:
    """Tokens (N, T) at their positions (T) -> (N, T, D)."""
    graph = layers.graph
    x = graph("Gather", layers.weight(embeddings.tokens.weight), tokens, axis=0)
    if embeddings.scale != 1.0:
        x = graph("Mul", x, graph.constant(embeddings.scale, np.float32))
    if embeddings.positions is not None:
        table = embeddings.positions.table
        if embeddings.positions.learned:
            stored = layers.weight(table)
        else:
            stored = graph.constant(table.float().numpy(), np.float32)
        x = graph("Add", x, graph("Gather", stored, positions, axis=0))
    return layers.norm(x, embeddings.norm)
