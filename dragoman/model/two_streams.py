"""Pre-training by permutations, as XLNet has it (Yang et al. 2019): every token is predicted from
those before it in a random order, by two streams through the same layers. The stream of contents
knows each token; the stream of queries knows its position and what came before it in the order, but
not the token itself. Knows an encoder with distances; no batches and no loop.

B sentences, T tokens, D d_model, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dragoman.model.embeddings import Embeddings
from dragoman.model.encoder import Encoder
from dragoman.model.model_config import ModelConfig
from dragoman.model.sight import Sight


class TwoStreams(nn.Module):
    """Tokens (B, T) and the place of each in the order (B, T) -> logits (B, T, V) of each token."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        tokens = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(tokens.weight, std=config.d_model**-0.5)
        self.encoder = Encoder(config, tokens)
        self.unknown = nn.Parameter(torch.randn(config.d_model) * config.d_model**-0.5)

    def forward(self, tokens: Tensor, order: Tensor) -> Tensor:
        before = order[:, None, :, None] > order[:, None, None, :]  # (B, 1, T, T)
        itself = torch.eye(tokens.size(1), dtype=torch.bool, device=tokens.device)
        contents = self.encoder.embeddings(tokens)
        queries = self.unknown.expand_as(contents)
        for layer in self.encoder.layers:
            queries = layer(queries, Sight(contents, before))
            contents = layer(contents, Sight(mask=before | itself))
        embeddings = self.encoder.embeddings
        assert isinstance(embeddings, Embeddings)
        return queries @ embeddings.tokens.weight.T
