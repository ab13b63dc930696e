"""The Transformer (§3, figure 1): encoder, decoder and the one matrix they share. Token ids in, logits out."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.model.attention import MultiHeadAttention
from dragoman.model.cache import DecoderState
from dragoman.model.config import ModelConfig
from dragoman.model.decoder import Decoder
from dragoman.model.encoder import Encoder
from dragoman.packing import Segments


@dataclass
class AttentionWeights:
    """The weights of every layer, each (B, H, queries, keys)."""

    encoder: list[Tensor] = field(default_factory=list)
    decoder: list[Tensor] = field(default_factory=list)
    cross: list[Tensor] = field(default_factory=list)


class Transformer(nn.Module):
    """B sentences, S source and T target tokens. Rows are padded at the end; `lengths` says where the padding begins."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        target_tokens = nn.Embedding(config.vocab_size, config.d_model)
        # §3.4: one matrix for source, target and output, unless the sides have vocabularies of their own.
        shared = config.source_vocab_size == 0
        source_tokens = target_tokens if shared else nn.Embedding(config.source_vocab_size, config.d_model)
        if config.encoder_layers:
            self.encoder = Encoder(config, source_tokens)
        self.decoder = Decoder(config, target_tokens)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False) if not config.tied else None
        self.output_bias = nn.Parameter(torch.zeros(config.vocab_size)) if config.output_bias else None
        self.apply(_initialise)

    @property
    def output_weight(self) -> Tensor:
        """The matrix before the softmax, (V, D): the target embedding, unless it has one of its own."""
        return self.decoder.embeddings.tokens.weight if self.output is None else self.output.weight

    def forward(self, source: Tensor, target: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Logits (B, T, V) of the token after each target token."""
        return self.logits(self.features(source, target, lengths))

    def features(self, source: Tensor, target: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The decoder's output (B, T, D), from which the logits are computed."""
        if not self.config.encoder_layers:
            return self.decoder(target, None)
        mask = padding_mask(source, lengths)
        return self.decoder(target, self.encoder(source, mask), mask)

    def packed_features(self, source: Tensor, target: Tensor, sources: Tensor, targets: Tensor, longest: int) -> Tensor:
        """The same, (T, D), for pairs that lie end to end, source (S) and target (T): pair i from sources[i] and targets[i]."""
        memory = self.encoder(source, Segments(sources, sources, longest))
        if torch.is_autocast_enabled(memory.device.type):  # once, rather than in each layer
            memory = memory.to(torch.get_autocast_dtype(memory.device.type))
        return self.decoder(target, memory, Segments(targets, sources, longest), own=Segments(targets, targets, longest))

    def logits(self, features: Tensor) -> Tensor:
        """(…, D) -> (…, V)."""
        tokens = self.decoder.embeddings.tokens
        if self.output is None and not isinstance(tokens, nn.Embedding):
            return tokens.project(features)
        return F.linear(features, self.output_weight, self.output_bias)

    def start(self, source: Tensor, lengths: Tensor | None = None) -> DecoderState:
        """Reads the source once; the state from which `step` decodes."""
        if not self.config.encoder_layers:
            return self.decoder.start(None, None)
        mask = padding_mask(source, lengths)
        return self.decoder.start(self.encoder(source, mask), mask)

    def step(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """Logits (B, K, V) of what follows `tokens` (B, K), the newest token of each of K beams."""
        return self.logits(self.decoder.step(tokens, state))

    def fuse(self) -> Transformer:
        """Makes one matrix of two wherever a decoding step can then do with one product; for translating only."""
        for layer in self.decoder.layers:
            own: MultiHeadAttention = layer.attention  # type: ignore[assignment]
            with torch.device("meta"):
                rows = own.query.out_features + own.key_value.out_features
                own.fused = nn.Linear(self.config.d_model, rows, bias=self.config.bias)
            for name in ("weight", "bias") if self.config.bias else ("weight",):
                joint = torch.cat([getattr(own.query, name), getattr(own.key_value, name)]).detach()
                setattr(own.fused, name, nn.Parameter(joint, requires_grad=False))
        return self

    @torch.no_grad()
    def attention_weights(self, source: Tensor, target: Tensor, lengths: Tensor | None = None) -> AttentionWeights:
        """One pass over finished pairs through the explicit softmax of equation 1."""
        weights = AttentionWeights()
        mask = padding_mask(source, lengths)
        memory = self.encoder(source, mask, weights.encoder)
        self.decoder(target, memory, mask, (weights.decoder, weights.cross))
        return weights


def padding_mask(tokens: Tensor, lengths: Tensor | None) -> Tensor | None:
    """(B, 1, 1, S), true where there is a token. No lengths: every row is full."""
    if lengths is None:
        return None
    return (torch.arange(tokens.size(1), device=tokens.device) < lengths[:, None])[:, None, None]


def _initialise(module: nn.Module) -> None:
    """Glorot's uniform for each matrix of the paper, zero biases, embeddings of variance 1 / d_model."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, MultiHeadAttention):
        for matrix in module.key_value.weight.chunk(2):  # W^K and W^V lie in one, but are two
            nn.init.xavier_uniform_(matrix)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
