"""The convolutional translator: stacks of gated convolutions on both sides, and attention in every
layer of the decoder.

    Gehring, Auli, Grangier, Yarats, Dauphin: Convolutional Sequence to Sequence Learning
    (ICML 2017, arXiv 1705.03122)

All positions are computed at once, as in the Transformer, but a layer sees k neighbours only:
distant words meet after many layers. Of the paper's means to steady plain gradient descent two are
left out: Adam divides the scaling of the encoder's gradients (§3.4) away, and with it weight
normalisation gave the same loss a step at nine tenths of the speed. Knows tokens and tensors; no
text and no training.

Shapes: B sentences, K beams, S source and T target tokens, D width of the embeddings, H width of
the layers, V vocabulary.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from memory import State, attend, real
from torch import Tensor, nn

from dragoman.model.model_config import ModelConfig

KERNEL = 3  # k, as in most layers of the paper's models
DEPTH = 2  # layers for each layer of the Transformer: with k = 3 a layer has about half the weights
HALF = math.sqrt(0.5)  # §3.4: the sum of two parts keeps the variance of one


class ConvolutionalTranslator(nn.Module):
    """`config` is that of the Transformer beside it, of which vocabulary, d_model, dropout,
    layers and max_length are taken; `width` is H."""

    def __init__(self, config: ModelConfig, width: int) -> None:
        super().__init__()
        size = config.d_model
        tokens = nn.Embedding(config.vocab_size, size)
        shared = config.source_vocab_size == 0
        self.source = Embeddings(
            config, tokens if shared else nn.Embedding(config.source_vocab_size, size)
        )
        self.target = Embeddings(config, tokens)
        kept = 1 - config.dropout
        self.encoder_in = _linear(size, width, kept)
        self.encoder_out = _linear(width, size)
        self.decoder_in = _linear(size, width, kept)
        self.decoder_out = _linear(width, size)
        self.encoder = nn.ModuleList(
            GatedConvolution(width, kept) for _ in range(DEPTH * config.encoder_layers)
        )
        self.decoder = nn.ModuleList(
            DecoderLayer(size, width, kept) for _ in range(DEPTH * config.decoder_layers)
        )
        self.dropout = nn.Dropout(config.dropout)

    @property
    def output_weight(self) -> Tensor:
        """The matrix before the softmax, W_o at the end of §3.2, (V, D); here it is the target
        embedding."""
        return self.target.tokens.weight

    def forward(self, source: Tensor, target: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Logits (B, T, V) of the token after each target token."""
        return F.linear(self.features(source, target, lengths), self.output_weight)

    def features(self, source: Tensor, target: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(B, T, D), from which the logits are computed."""
        memory = self._read(source, lengths)
        embedded = self.dropout(self.target(target))
        x = self.decoder_in(embedded)
        for layer in self.decoder:
            # Padding on the left alone: a position sees itself and what is before it.
            windows = _windows(F.pad(self.dropout(x), (0, 0, KERNEL - 1, 0)))
            x = layer(x, windows, embedded, memory)
        return self.dropout(self.decoder_out(x))

    def start(self, source: Tensor, lengths: Tensor | None = None) -> State:
        """Reads the source; the state from which `step` decodes: of each layer, the k - 1 inputs
        before the newest."""
        memory = self._read(source, lengths)
        empty = memory[0].new_zeros(len(source), 1, KERNEL - 1, self.decoder_in.out_features)
        return State(memory, [empty] * len(self.decoder))

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """Logits (B, K, V) of what follows `tokens` (B, K), the newest token of each of K beams."""
        state.widen(tokens.size(1))
        embedded = self.target(tokens, state.position)
        x = self.decoder_in(embedded)
        for number, layer in enumerate(self.decoder):
            # (B, K, k, H)
            windows = torch.cat((state.past[number].to(x.dtype), x[:, :, None]), dim=2)
            state.past[number] = windows[:, :, 1:]
            x = layer(x, windows.flatten(2), embedded, state.memory)
        state.position += 1
        return F.linear(self.decoder_out(x), self.output_weight)

    def _read(self, source: Tensor, lengths: Tensor | None) -> list[Tensor]:
        """Keys z^u, values z^u + e (both of §3.3), what of the source is real, and its length."""
        seen = real(source, lengths)
        embedded = self.dropout(self.source(source))
        x = self.encoder_in(embedded)
        there = seen[:, :, None]
        before = (KERNEL - 1) // 2
        behind = KERNEL // 2
        for layer in self.encoder:
            # Zeros behind the last token, as there are before the first: padding must not be read.
            windows = _windows(F.pad(self.dropout(x) * there, (0, 0, before, behind)))
            x = layer(x, windows)
        keys = self.encoder_out(x)
        return [keys, (keys + embedded) * HALF, seen[:, None], seen.sum(1)[:, None, None]]


class Embeddings(nn.Module):
    """§3.1: e_j = w_j + p_j, a token and its absolute position, both learnt."""

    def __init__(self, config: ModelConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        self.tokens = tokens
        self.positions = nn.Embedding(config.max_length, config.d_model)
        for table in (self.tokens, self.positions):
            nn.init.normal_(table.weight, std=0.1)  # §3.5

    def forward(self, tokens: Tensor, position: int | None = None) -> Tensor:
        """(B, T) -> (B, T, D); with a position, all tokens are at that one."""
        if position is not None:
            return self.tokens(tokens) + self.positions.weight[position]
        return self.tokens(tokens) + self.positions.weight[: tokens.size(1)]


class GatedConvolution(nn.Module):
    """§3.2: h_i^l = v(W^l [h_{i-k/2}^{l-1}; …; h_{i+k/2}^{l-1}] + b^l) + h_i^{l-1}, where v([A;
    B]) = A * sigmoid(B)."""

    def __init__(self, width: int, kept: float) -> None:
        super().__init__()
        # §3.5: a gate lets a quarter of the variance through.
        self.product = _linear(KERNEL * width, 2 * width, 4 * kept)

    def forward(self, x: Tensor, windows: Tensor) -> Tensor:
        """x (B, T, H), windows (B, T, k * H) -> (B, T, H)."""
        return (F.glu(self.product(windows)) + x) * HALF


class DecoderLayer(nn.Module):
    """A convolution that looks at the source: the multi-step attention of §3.3."""

    def __init__(self, size: int, width: int, kept: float) -> None:
        super().__init__()
        self.convolution = GatedConvolution(width, kept)
        self.query = _linear(width, size)
        self.context = _linear(size, width)

    def forward(self, x: Tensor, windows: Tensor, embedded: Tensor, memory: list[Tensor]) -> Tensor:
        """x (B, T, H), windows (B, T, k * H), embedded (B, T, D) -> (B, T, H)."""
        keys, values, seen, lengths = memory
        x = self.convolution(x, windows)
        queries = (self.query(x) + embedded) * HALF  # equation 1: d_i = W_d h_i + b_d + g_i
        context = attend(queries, keys, values, seen)  # equation 2: c_i = sum_j a_ij (z_j + e_j)
        # §3.4: a mean of m values has an m-th of their variance, hence m sqrt(1/m).
        return (x + self.context(context * lengths.sqrt().to(context.dtype))) * HALF


def _windows(x: Tensor) -> Tensor:
    """(B, T + k - 1, H) -> (B, T, k * H): each position beside its neighbours. One product does
    the convolution then, which is faster on a CPU than torch's own."""
    count = x.size(1) - KERNEL + 1
    return torch.cat([x[:, first : first + count] for first in range(KERNEL)], dim=-1)


def _linear(inputs: int, outputs: int, gain: float = 1.0) -> nn.Linear:
    """§3.5: weights of variance gain / inputs."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=math.sqrt(gain / inputs))
    nn.init.zeros_(layer.bias)
    return layer
