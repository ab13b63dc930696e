"""Attention of Transformer-XL (Dai et al. 2019), which XLNet has: a score is the sum of what a
query finds in a key and of what it finds in the distance to it. Knows vectors and masks; no stack.

B sentences, T queries, S keys, D d_model, H heads, E = D / H.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from dragoman.model.layer import Layer
from dragoman.model.model_config import ModelConfig
from dragoman.model.scaled_dot_product import join_heads, split_keys_values, split_queries
from dragoman.model.sight import Keep, Mask, Record

_FAR = 10000.0  # the longest wavelength, as in §3.5


class DistanceAttention(nn.Module):
    """(q + u) k + (q + v) r, where r is the encoding of a distance in a matrix of its own, and u
    and v are learnt for all queries alike."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.n_heads = config.n_heads
        self.d_model = config.d_model
        width = config.n_heads * config.size
        self.query = nn.Linear(config.d_model, width, bias=False)
        self.key_value = nn.Linear(config.d_model, 2 * width, bias=False)
        self.distance = nn.Linear(config.d_model, width, bias=False)
        self.out = nn.Linear(width, config.d_model, bias=False)
        self.to_content = nn.Parameter(torch.zeros(config.n_heads, config.size))
        self.to_distance = nn.Parameter(torch.zeros(config.n_heads, config.size))

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        mask: Mask = None,
        record: Record = None,
        keep: Keep | None = None,
    ) -> Tensor:
        """What x (B, T, D) finds in the memory (B, T, D), at the same positions, or in itself."""
        seen = x if memory is None else memory
        query = split_queries(self.query(x), self.n_heads)  # (B, H, T, E)
        key, value = split_keys_values(self.key_value(seen), self.n_heads, self.n_heads)
        asking_content = query + self.to_content[:, None]
        asking_distance = query + self.to_distance[:, None]
        content = asking_content @ key.transpose(-2, -1)
        scores = content + self._of_distances(asking_distance)
        scale = math.sqrt(query.size(-1))
        weights = _softmax(scores / scale, mask)
        if record is not None:
            record.append(weights)
        found = weights @ value
        return self.out(join_heads(found))

    def _of_distances(self, query: Tensor) -> Tensor:
        """(B, H, T, S): what each query finds in the distances to all keys."""
        length = query.size(2)
        distances = torch.arange(length - 1, -length, -1, device=query.device)
        encoded = encode_distances(distances, self.d_model)
        projected = self.distance(encoded.to(query.dtype))
        keys = split_queries(projected[None], self.n_heads)  # (1, H, 2T - 1, E)
        every = query @ keys.transpose(-2, -1)  # (B, H, T, 2T - 1)
        positions = torch.arange(length, device=query.device)
        # Query t is the distance t - s from key s, which stands at place T - 1 - (t - s).
        distance = positions[:, None] - positions
        places = length - 1 - distance
        shape = every[..., :length]
        return every.gather(3, places.expand_as(shape))


class DistanceLayer(Layer):
    """A layer of an encoder with this attention."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.attention = DistanceAttention(config)  # type: ignore[assignment]


def encode_distances(distances: Tensor, d_model: int) -> Tensor:
    """Sines and then cosines of the wavelengths of §3.5, (N,) -> (N, D); distances may be below
    0."""
    even = torch.arange(0, d_model, 2, device=distances.device, dtype=torch.float32)
    rates = _FAR ** -(even / d_model)
    angles = distances[:, None].float() * rates
    return torch.cat((angles.sin(), angles.cos()), dim=-1)


def _softmax(scores: Tensor, mask: Mask) -> Tensor:
    """The weights of what is seen; where nothing is, all are 0."""
    if mask is None:
        return scores.softmax(-1)
    least = torch.finfo(scores.dtype).min
    seen = scores.masked_fill(~mask, least)
    weights = seen.softmax(-1)
    return weights * mask
