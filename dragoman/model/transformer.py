"""The Transformer (§3, figure 1): encoder, decoder and the one matrix they share. Token ids in,
logits out. Some of its family have the encoder or the decoder alone.

B sentences, S source and T target tokens, K beams, D d_model, V vocabulary.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.model.cache import DecoderState
from dragoman.model.decoder import Decoder
from dragoman.model.encoder import Encoder
from dragoman.model.heads import Classifier, OutputTransform
from dragoman.model.initialise import initialise
from dragoman.model.model_config import ModelConfig
from dragoman.model.sight import AttentionWeights, padding_mask

Rows = Tensor | None  # tokens (B, S or T) padded at the end, images, sound; None: no such stack
Lengths = Tensor | None  # (B,): where the padding of each source begins; None if there is none


class Transformer(nn.Module):
    """Figure 1, from the inputs at its bottom to the last linear layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        target_tokens = nn.Embedding(config.vocab_size, config.d_model)
        source_tokens = target_tokens  # §3.4: one matrix for source, target and output
        if config.source_vocab_size:
            source_tokens = nn.Embedding(config.source_vocab_size, config.d_model)
        if config.encoder_layers:
            self.encoder = Encoder(config, source_tokens)
        if config.decoder_layers:
            self.decoder = Decoder(config, target_tokens)
        self.output = None if config.tied else nn.Linear(config.d_model, config.vocab_size, False)
        bias = torch.zeros(config.vocab_size)
        self.output_bias = nn.Parameter(bias) if config.output_bias else None
        self.transform = OutputTransform(config) if config.output_transform else None
        self.classifier = Classifier(config) if config.classes else None
        self.apply(initialise)

    @property
    def output_weight(self) -> Tensor:
        """The matrix before the softmax, (V, D): the target embedding, unless it has its own."""
        stack = self.decoder if self.config.decoder_layers else self.encoder
        tokens = stack.embeddings.tokens
        return (self.output or tokens).weight  # type: ignore[union-attr, return-value]

    def forward(self, source: Rows, target: Rows = None, lengths: Lengths = None) -> Tensor:
        """Logits (B, T, V) of what follows each target token; of an encoder alone (B, S, V)."""
        return self.logits(self.features(source, target, lengths))

    def features(
        self,
        source: Rows,
        target: Rows = None,
        lengths: Lengths = None,
        memory: Tensor | None = None,
    ) -> Tensor:
        """What the logits are computed from: (B, T, D), of an encoder alone (B, S, D). `memory` is
        the encoder's output where that is known."""
        if not self.config.encoder_layers:
            return self.decoder(target, None)
        mask = padding_mask(source, lengths)
        if memory is None:
            memory = self.encoder(source, mask)
        if self.config.decoder_layers:
            return self.decoder(target, memory, mask)
        return memory if self.transform is None else self.transform(memory)

    def encode(self, source: Rows, lengths: Lengths = None) -> Tensor:
        """The encoder's output (B, S, D)."""
        return self.encoder(source, padding_mask(source, lengths))

    def classify(self, source: Rows, lengths: Lengths = None) -> Tensor:
        """Logits (B, classes) from the first position or the last; (B, S, classes) from each."""
        assert self.classifier is not None
        return self.classifier(self.encode(source, lengths), lengths)

    def logits(self, features: Tensor) -> Tensor:
        """The linear layer before the softmax: (…, D) -> (…, V)."""
        return F.linear(features, self.output_weight, self.output_bias)

    def start(self, source: Rows, lengths: Lengths = None) -> DecoderState:
        """Read the source once; return the state from which `step` decodes."""
        memory = self.encode(source, lengths) if self.config.encoder_layers else None
        return self.decoder.start(memory, padding_mask(source, lengths))

    def step(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """Logits (B, K, V) of what follows `tokens` (B, K), the newest token of each beam."""
        return self.logits(self.decoder.step(tokens, state))

    @torch.no_grad()
    def attention_weights(
        self, source: Rows, target: Rows = None, lengths: Lengths = None
    ) -> AttentionWeights:
        """Where finished pairs look, by the explicit softmax of equation 1."""
        weights = AttentionWeights()
        mask = padding_mask(source, lengths)
        memory = self.encoder(source, mask, weights.encoder) if self.config.encoder_layers else None
        if self.config.decoder_layers:
            self.decoder(target, memory, mask, (weights.decoder, weights.cross))
        return weights
