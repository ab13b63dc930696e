"""What the decoder remembers between two steps: keys and values, so that each step computes one position only."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


class LayerCache:
    """Keys and values of the positions decoded so far in one layer; grows by doubling."""

    def __init__(self) -> None:
        self.length = 0
        self._keys: Tensor | None = None  # (B * K, H, capacity, E)
        self._values: Tensor | None = None

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Takes the newest position (B * K, H, 1, E) in and returns all of them."""
        if self._keys is None or self._values is None or self.length == self._keys.size(2):
            self._keys, self._values = self._grown(self._keys, key), self._grown(self._values, value)
        self._keys[:, :, self.length : self.length + 1] = key
        self._values[:, :, self.length : self.length + 1] = value
        self.length += 1
        return self._keys[:, :, : self.length], self._values[:, :, : self.length]

    def select(self, rows: Tensor) -> None:
        """Row i continues what row `rows[i]` was."""
        if self._keys is not None and self._values is not None:
            self._keys, self._values = self._keys[rows], self._values[rows]

    def _grown(self, old: Tensor | None, like: Tensor) -> Tensor:
        rows, heads, _, width = like.shape
        grown = like.new_empty(rows, heads, max(16, 2 * self.length), width)
        if old is not None:
            grown[:, :, : self.length] = old[:, :, : self.length]
        return grown


@dataclass
class DecoderState:
    """The memory of B sentences, one copy each, and the caches of their K beams. Search reorders it and lets sentences go."""

    memory: list[tuple[Tensor, Tensor]]  # a layer: keys and values, each (B, H, S, E)
    memory_mask: Tensor | None  # (B, 1, 1, S), true where there is a token
    layers: list[LayerCache]
    beams: int = 1

    def reorder(self, beams: Tensor) -> None:
        """beams (B, K): which of its sentence's old beams each new beam continues."""
        first = torch.arange(beams.size(0), device=beams.device)[:, None] * self.beams
        self._select((first + beams).flatten())
        self.beams = beams.size(1)

    def keep(self, sentences: Tensor) -> None:
        """sentences (B'): those that stay, in order."""
        self.memory = [(key[sentences], value[sentences]) for key, value in self.memory]
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask[sentences]
        beams = torch.arange(self.beams, device=sentences.device)
        self._select((sentences[:, None] * self.beams + beams).flatten())

    def _select(self, rows: Tensor) -> None:
        for layer in self.layers:
            layer.select(rows)
