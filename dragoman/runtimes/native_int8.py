"""A model in 8-bit integers whose stacks are computed by the native library: the whole encoder in
one call, and a whole step of the decoder. Twins of `Encoder.forward`, `Decoder.step` and
`MultiHeadAttention.keys_values`; every other method stays torch's. Knows tensors only.

B sentences, S source positions, K beams, D d_model, H heads, E width of a head.
"""

from __future__ import annotations

import ctypes
from types import MethodType
from typing import Any, NamedTuple

import numpy
import torch
from torch import Tensor, nn

from dragoman.decoding.giving_way import give_way, is_awaited
from dragoman.kernels import native
from dragoman.kernels import native_structs as structs
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.cache import DecoderState
from dragoman.model.decoder import Decoder
from dragoman.model.embeddings import Embeddings
from dragoman.model.encoder import Encoder
from dragoman.model.feedforward import ACTIVATIONS
from dragoman.model.model_config import ModelConfig
from dragoman.model.sight import Mask, Record
from dragoman.model.transformer import Transformer

_FIRST_CAPACITY = 16  # positions of a cache, unless the source lets expect more
_AT_ONCE = 512  # source positions that an encoder that gives way takes through a layer in one call
_ACTIVATIONS = list(ACTIVATIONS)  # in the order of the enum in int8_stack.h


def fits(config: ModelConfig) -> bool:
    """Whether the library is there and knows the layers of a model of this shape."""
    widest = max(config.d_model, config.d_ff, config.n_heads * config.size)
    known = not config.parallel and config.positions != "distances"
    return native.available() and known and widest <= native.MOST_COLUMNS


def install(model: Transformer) -> None:
    """Let the native library compute the stacks of a model whose layers it holds."""
    if model.config.encoder_layers:
        encoder: Any = model.encoder
        encoder.native = NativeStack(encoder, model.config)
        encoder.forward = MethodType(_encode, encoder)
    if model.config.decoder_layers:
        decoder: Any = model.decoder
        decoder.native = NativeStack(decoder, model.config)
        decoder.step = MethodType(_step, decoder)
        for layer in decoder.layers if model.config.encoder_layers else ():
            across = layer.cross_attention
            across.keys_values = MethodType(_keys_values, across)


class NativeStack:
    """A stack as the library wants it, and the tensors that it points to."""

    def __init__(self, stack: Encoder | Decoder, config: ModelConfig) -> None:
        self._alive: list[Tensor] = []
        self.embeds = False  # whether the library embeds whole sequences, too
        self.width = config.d_model
        self.heads = config.n_heads
        self.size = config.size
        self._layers = (structs.Layer * len(stack.layers))()
        for struct, layer in zip(self._layers, stack.layers, strict=True):
            self._fill(struct, layer)
        self.struct = structs.Stack(
            layers=ctypes.addressof(self._layers),
            norm=self._norm(stack.norm),
            n_layers=len(stack.layers),
            width=config.d_model,
            heads=config.n_heads,
            kv_heads=config.kv_heads or config.n_heads,
            size=config.size,
            activation=_ACTIVATIONS.index(config.activation),
            norm_first=config.norm_first,
            across=isinstance(stack, Decoder) and config.encoder_layers > 0,
        )
        self._check()
        first: Any = stack.layers[0]
        if first.attention.rotary is not None:
            self.struct.frequencies = self._kept(first.attention.rotary.frequencies)
        if isinstance(stack.embeddings, Embeddings):
            self._embed(stack.embeddings)

    def by_layer(self) -> list[structs.Stack]:
        """Return a stack for each layer; the norm behind all of them is part of the last."""
        size = ctypes.sizeof(structs.Layer)
        stacks = []
        for number in range(self.struct.n_layers):
            one = structs.Stack.from_buffer_copy(self.struct)
            one.layers = ctypes.addressof(self._layers) + number * size
            one.n_layers = 1
            if number < self.struct.n_layers - 1:
                one.norm = structs.Norm()
            stacks.append(one)
        return stacks

    def _fill(self, struct: structs.Layer, layer: Any) -> None:
        struct.own = layer.attention.joint.struct
        struct.own_out = layer.attention.out.struct
        if hasattr(layer, "cross_attention"):
            struct.cross_query = layer.cross_attention.query.struct
            struct.cross_out = layer.cross_attention.out.struct
            struct.after_cross = self._norm(layer.after_cross_attention.norm)
        struct.inner = layer.feedforward.inner.struct
        struct.outer = layer.feedforward.outer.struct
        if layer.feedforward.gate is not None:
            struct.gate = layer.feedforward.gate.struct
        struct.after_own = self._norm(layer.after_attention.norm)
        struct.after_feedforward = self._norm(layer.after_feedforward.norm)

    def _check(self) -> None:
        """The library trusts the shapes of a stack, so nothing gets there that does not fit."""
        struct = self.struct
        width = struct.width
        assert struct.heads % struct.kv_heads == 0
        queries = struct.heads * struct.size
        joint = queries + 2 * struct.kv_heads * struct.size
        for layer in self._layers:
            inner = layer.inner.rows
            expected = [
                (layer.own, width, joint),
                (layer.own_out, queries, width),
                (layer.inner, width, inner),
                (layer.outer, inner, width),
            ]
            if layer.gate.packed:
                expected.append((layer.gate, width, inner))
            if struct.across:
                expected.append((layer.cross_query, width, queries))
                expected.append((layer.cross_out, queries, width))
            for matrix, columns, rows in expected:
                assert (matrix.columns, matrix.rows) == (columns, rows)

    def _embed(self, embeddings: Any) -> None:
        table = embeddings.tokens.weight
        assert table.is_contiguous()
        assert table.size(1) == self.width
        assert len(embeddings.tokens.scale) == len(table)
        self.embeds = embeddings.second is None
        self.struct.vocabulary = len(table)
        self.struct.embeddings = embeddings.tokens.weight.data_ptr()
        self.struct.embedding_scale = self._kept(embeddings.tokens.scale)
        self.struct.embedding_factor = embeddings.scale
        self.struct.embedding_norm = self._norm(embeddings.norm)
        if embeddings.positions is not None:
            positions = embeddings.positions.table
            assert positions.size(1) == self.width
            self.struct.positions = self._kept(positions)
            self.struct.most_positions = len(positions)

    def _norm(self, norm: nn.Module) -> structs.Norm:
        if isinstance(norm, nn.Identity):
            return structs.Norm()
        bias = getattr(norm, "bias", None)
        assert norm.weight.shape == (self.width,)
        assert bias is None or bias.shape == (self.width,)
        return structs.Norm(
            gain=self._kept(norm.weight),  # type: ignore[arg-type]
            bias=0 if bias is None else self._kept(bias),
            epsilon=norm.eps,
            kind=1 if isinstance(norm, nn.LayerNorm) else 2,
        )

    def _kept(self, tensor: Tensor) -> int:
        """Where the tensor lies, in float32 and as long as this stack lives."""
        whole = tensor.detach().float().contiguous()
        self._alive.append(whole)
        return whole.data_ptr()


def _encode(encoder: Any, source: Tensor, mask: Mask = None, record: Record = None) -> Tensor:
    """`Encoder.forward`; what is padded stays as it was embedded."""
    if record is not None:
        return Encoder.forward(encoder, source, mask, record)
    x = _embedded(encoder, source)
    lengths = None if mask is None else mask.flatten(1).sum(1)
    bias = None
    if encoder.relative is not None:
        bias = encoder._biased(None, x.size(1)).float().contiguous()
    if is_awaited():
        _encode_giving_way(encoder.native, x, lengths, bias)
    else:
        native.encode(encoder.native.struct, x, lengths, bias)
    return x


def _embedded(encoder: Any, source: Tensor) -> Tensor:
    """`Embeddings.forward`, or what reads an image or sound instead: (B, S, D)."""
    stack: NativeStack = encoder.native
    if not stack.embeds:
        x: Tensor = encoder.embeddings(source)
        return x.float().contiguous()
    assert source.dtype == torch.long
    x = torch.empty(*source.shape, stack.width)
    native.embed(stack.struct, source.contiguous(), x)
    return x


def _keys_values(attention: Any, memory: Tensor) -> Tensor:
    """`MultiHeadAttention.keys_values`, head after head in memory: (2, B, H, S, E).

    It is numpy that puts them there: torch would wake its threads for so little, which then wait
    for more, and that takes the processor longer than the copying.
    """
    both = MultiHeadAttention.keys_values(attention, memory)
    return torch.from_numpy(numpy.ascontiguousarray(both.numpy()))


def _encode_giving_way(
    stack: NativeStack, x: Tensor, lengths: Tensor | None, bias: Tensor | None
) -> None:
    """Take x (B, S, D) through an encoder, in place: some sentences through one layer at a time.
    Others have their turn in between. The numbers are those of a single call."""
    rows, width, _ = x.shape
    at_once = max(torch.get_num_threads(), _AT_ONCE // max(1, width))
    layers = stack.by_layer()
    for first in range(0, rows, at_once):
        some = slice(first, first + at_once)
        own_lengths = None if lengths is None else lengths[some]
        for layer in layers:
            native.encode(layer, x[some], own_lengths, bias)
            give_way()


def _step(decoder: Any, tokens: Tensor, state: DecoderState) -> Tensor:
    """`Decoder.step`."""
    stack: NativeStack = decoder.native
    rows, beams = tokens.shape
    features = torch.empty(rows, beams, stack.width)
    make_space(stack, state, features)
    past = past_of(stack, state, beams)
    bias = None
    if decoder.relative is not None:
        positions = torch.arange(state.length + 1)
        bias = decoder.relative(state.position, positions).float().contiguous()
        past.struct.bias = bias.data_ptr()
    native.step(stack.struct, past.struct, tokens.contiguous(), features)
    state.advance()
    return features


def make_space(stack: NativeStack, state: DecoderState, features: Tensor) -> None:
    """Make room for one more position, or more of them, in the caches and among the ancestors of
    features (B, K, D)."""
    rows, beams, _ = features.shape
    seen = state.length + 1
    capacity = max(_expected_positions(state), 2 * state.length)
    for cache in state.layers:
        if cache.both is None or seen > cache.both.size(3):
            cache.reserve(features.new_empty(2, rows, stack.heads, beams, stack.size), capacity)
    if beams > 1 and (state.ancestors is None or state.ancestors.size(2) < seen):
        state.reserve_ancestors(beams, features, max(seen, capacity))


def _expected_positions(state: DecoderState) -> int:
    """How many positions nearly all outputs have at most: half as many again as their source, and
    some more."""
    source = max((both[0].size(2) for both in state.memory if both is not None), default=0)
    return _FIRST_CAPACITY + source + source // 2


class Seen(NamedTuple):
    """What a step sees, and what must stay alive as long as that is used."""

    struct: structs.Past
    alive: list[Any]

    @property
    def positions(self) -> int:
        """How many positions there is space for, those done included."""
        past = self.struct
        if past.beams == 1:
            return int(past.capacity)
        return int(min(past.capacity, past.ancestor_capacity))


def past_of(stack: NativeStack, state: DecoderState, beams: int) -> Seen:
    """Return where the library finds what a step sees, for K beams."""
    caches = [cache.both for cache in state.layers]
    first = caches[0]
    assert first is not None
    past = structs.Past(rows=first.size(1), beams=beams, position=state.length)
    past.capacity = first.size(3)
    pointers = native.pointers([native.address(cache) for cache in caches])
    past.caches = ctypes.addressof(pointers)
    alive: list[Any] = [pointers, *caches]
    if beams > 1:
        assert state.ancestors is not None
        past.ancestors = state.ancestors.data_ptr()
        past.ancestor_capacity = state.ancestors.size(2)
        alive.append(state.ancestors)
    alive += _look_at_memory(past, state, stack.heads)
    return Seen(past, alive)


def _look_at_memory(past: structs.Past, state: DecoderState, heads: int) -> list[Any]:
    """Fill in what a step sees of the memory, and what it is to record. Returns what must stay
    alive until the step is done."""
    memory = [both for both in state.memory if both is not None]
    if not memory:
        return []
    source = memory[0][0].size(2)
    for both in memory:
        for one in both:
            assert one.shape[:3] == (past.rows, heads, source)
            assert one.is_contiguous()
    keys = native.pointers([key.data_ptr() for key, _ in memory])
    values = native.pointers([value.data_ptr() for _, value in memory])
    past.keys = ctypes.addressof(keys)
    past.values = ctypes.addressof(values)
    past.source = source
    alive: list[Any] = [keys, values, memory]
    if state.memory_mask is not None:
        lengths = (state.memory_mask == 0.0).flatten(1).sum(1)
        past.lengths = lengths.data_ptr()
        alive.append(lengths)
    if state.record is not None:
        shape = (past.rows, heads, past.beams, past.source)
        state.record[:] = [torch.empty(shape) for _ in memory]
        records = native.pointers([one.data_ptr() for one in state.record])
        past.records = ctypes.addressof(records)
        alive.append(records)
    return alive
