"""The Transformer (§3, figure 1): encoder, decoder and the one matrix they share. Token ids in,
logits out.

Of its family some have the encoder alone, and then maybe a classifier, and some the decoder alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.kernels.packed_attention import Segments
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.cache import DecoderState
from dragoman.model.decoder import Decoder
from dragoman.model.encoder import Encoder
from dragoman.model.heads import Classifier, OutputTransform
from dragoman.model.model_config import ModelConfig


@dataclass
class AttentionWeights:
    """The weights of every layer, each (B, H, queries, keys)."""

    encoder: list[Tensor] = field(default_factory=list)
    decoder: list[Tensor] = field(default_factory=list)
    cross: list[Tensor] = field(default_factory=list)


class Transformer(nn.Module):
    """B sentences, S source and T target tokens. Rows are padded at the end; `lengths` says
    where the padding begins. A source is None where there is no encoder, a target where there is
    no decoder; images and sound are never padded."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        target_tokens = nn.Embedding(config.vocab_size, config.d_model)
        # §3.4: one matrix for source, target and output, unless the sides have vocabularies of
        # their own.
        shared = config.source_vocab_size == 0
        source_tokens = (
            target_tokens if shared else nn.Embedding(config.source_vocab_size, config.d_model)
        )
        if config.encoder_layers:
            self.encoder = Encoder(config, source_tokens)
        if config.decoder_layers:
            self.decoder = Decoder(config, target_tokens)
        self.output = (
            nn.Linear(config.d_model, config.vocab_size, bias=False) if not config.tied else None
        )
        self.output_bias = (
            nn.Parameter(torch.zeros(config.vocab_size)) if config.output_bias else None
        )
        self.transform = OutputTransform(config) if config.output_transform else None
        self.classifier = Classifier(config) if config.classes else None
        self.apply(_initialise)

    @property
    def output_weight(self) -> Tensor:
        """The matrix before the softmax, (V, D): the target embedding, unless it has one of its
        own."""
        return self._tokens.weight if self.output is None else self.output.weight

    @property
    def _tokens(self) -> nn.Embedding:
        stack = self.decoder if self.config.decoder_layers else self.encoder
        return stack.embeddings.tokens  # type: ignore[return-value]

    def forward(
        self, source: Tensor | None, target: Tensor | None = None, lengths: Tensor | None = None
    ) -> Tensor:
        """Logits (B, T, V) of the token after each target token; of an encoder alone (B, S, V),
        of each source token itself."""
        return self.logits(self.features(source, target, lengths))

    def features(
        self, source: Tensor | None, target: Tensor | None = None, lengths: Tensor | None = None
    ) -> Tensor:
        """The decoder's output (B, T, D), or that of an encoder alone, from which the logits are
        computed."""
        if not self.config.encoder_layers:
            return self.decoder(target, None)
        if not self.config.decoder_layers:
            memory = self.encode(source, lengths)
            return memory if self.transform is None else self.transform(memory)
        mask = self._mask(source, lengths)
        return self.decoder(target, self.encoder(source, mask), mask)

    def encode(self, source: Tensor | None, lengths: Tensor | None = None) -> Tensor:
        """The encoder's output (B, S, D)."""
        return self.encoder(source, self._mask(source, lengths))

    def classify(self, source: Tensor | None, lengths: Tensor | None = None) -> Tensor:
        """Logits (B, classes), from the encoder's first position."""
        assert self.classifier is not None
        return self.classifier(self.encode(source, lengths)[:, 0])

    def packed_features(
        self, source: Tensor, target: Tensor, sources: Tensor, targets: Tensor, longest: int
    ) -> Tensor:
        """The same, (T, D), for pairs that lie end to end, source (S) and target (T): pair i
        from sources[i] and targets[i]."""
        memory = self.encoder(source, Segments(sources, sources, longest))
        if torch.is_autocast_enabled(memory.device.type):  # once, rather than in each layer
            memory = memory.to(torch.get_autocast_dtype(memory.device.type))
        return self.decoder(
            target,
            memory,
            Segments(targets, sources, longest),
            own=Segments(targets, targets, longest),
        )

    def logits(self, features: Tensor) -> Tensor:
        """(…, D) -> (…, V)."""
        tokens = self._tokens
        if self.output is None and not isinstance(tokens, nn.Embedding):
            return tokens.project(features)
        return F.linear(features, self.output_weight, self.output_bias)

    def start(self, source: Tensor | None, lengths: Tensor | None = None) -> DecoderState:
        """Reads the source once; the state from which `step` decodes."""
        if not self.config.encoder_layers:
            return self.decoder.start(None, None)
        mask = self._mask(source, lengths)
        return self.decoder.start(self.encoder(source, mask), mask)

    def step(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """Logits (B, K, V) of what follows `tokens` (B, K), the newest token of each of K beams."""
        return self.logits(self.decoder.step(tokens, state))

    def fuse(self) -> Transformer:
        """Makes one matrix of two wherever a decoding step can then do with one product; for
        translating only."""
        for layer in self.decoder.layers if self.config.decoder_layers else ():
            own: MultiHeadAttention = layer.attention  # type: ignore[assignment]
            with torch.device("meta"):
                rows = own.query.out_features + own.key_value.out_features
                own.fused = nn.Linear(self.config.d_model, rows, bias=self.config.bias)
            for name in ("weight", "bias") if self.config.bias else ("weight",):
                joint = torch.cat([getattr(own.query, name), getattr(own.key_value, name)]).detach()
                setattr(own.fused, name, nn.Parameter(joint, requires_grad=False))
        return self

    @torch.no_grad()
    def attention_weights(
        self, source: Tensor | None, target: Tensor | None = None, lengths: Tensor | None = None
    ) -> AttentionWeights:
        """One pass over finished pairs through the explicit softmax of equation 1."""
        weights = AttentionWeights()
        mask = self._mask(source, lengths)
        memory = self.encoder(source, mask, weights.encoder) if self.config.encoder_layers else None
        if self.config.decoder_layers:
            self.decoder(target, memory, mask, (weights.decoder, weights.cross))
        return weights

    @torch.no_grad()
    def choices(self, memory: Tensor | None, target: Tensor) -> tuple[Tensor, AttentionWeights]:
        """The probability of each token of finished targets (B, T) but the first, and where the
        decoder looked before it."""
        weights = AttentionWeights()
        logits = self.logits(
            self.decoder(target[:, :-1], memory, None, (weights.decoder, weights.cross))
        )
        return logits.float().softmax(-1).gather(-1, target[:, 1:, None])[..., 0], weights

    def _mask(self, source: Tensor | None, lengths: Tensor | None) -> Tensor | None:
        return (
            None
            if source is None or self.config.input != "tokens"
            else padding_mask(source, lengths)
        )


def padding_mask(tokens: Tensor, lengths: Tensor | None) -> Tensor | None:
    """(B, 1, 1, S), true where there is a token. No lengths: every row is full."""
    if lengths is None:
        return None
    return (torch.arange(tokens.size(1), device=tokens.device) < lengths[:, None])[:, None, None]


def _initialise(module: nn.Module) -> None:
    """Glorot's uniform for each matrix of the paper, zero biases, embeddings of variance 1 /
    d_model."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, MultiHeadAttention):
        for matrix in module.key_value.weight.chunk(2):  # W^K and W^V lie in one, but are two
            nn.init.xavier_uniform_(matrix)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
