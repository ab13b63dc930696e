"""The weights before training: Glorot's uniform distribution for each matrix of the paper, zero
biases, embeddings of variance 1 / d_model."""

from __future__ import annotations

from torch import nn

from dragoman.model.attention import MultiHeadAttention


def initialise(module: nn.Module) -> None:
    """For `nn.Module.apply`, which calls it for the parts of a model before the whole."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, MultiHeadAttention):
        for matrix in module.key_value.weight.chunk(2):  # W^K and W^V lie in one, but are two
            nn.init.xavier_uniform_(matrix)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
