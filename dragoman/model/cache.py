"""What the decoder remembers between two steps: keys and values, so that each step computes one
position only.

B sentences, K beams, H heads, E = d_model / H, P positions there is space for.

The K beams of a sentence share its memory, and they share the keys and values of what they have
said as well: position after position, those of all beams lie side by side and never move. Who
continues whom is kept in one small tensor, the ancestors. It is a mask for attention, and a reorder
touches nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.model.sight import KeysValues, Record

_FIRST_CAPACITY = 16


class LayerCache:
    """Keys and values of the positions decoded so far in one layer."""

    def __init__(self) -> None:
        self.both: Tensor | None = None  # (2, B, H, P, K, E): keys, then values

    def append(self, newest: Tensor, position: Tensor, seen: int) -> KeysValues:
        """Take in the newest position (2, B, H, K, E) and return the first `seen` positions.

        Keys and values are each (B, H, seen * K, E).
        """
        both = self.both
        if both is None or seen > both.size(3):
            both = self.reserve(newest, max(_FIRST_CAPACITY, 2 * (seen - 1)))
        both.index_copy_(3, position, newest.unsqueeze(3))
        so_far = both[:, :, :, :seen]
        keys, values = so_far.flatten(3, 4)
        return keys, values

    def fill(self, first: Tensor, beams: int) -> None:
        """Take in the first positions (2, B, H, T, E), which all beams have in common."""
        both = self.both
        count = first.size(3)
        if both is None or count >= both.size(3):
            one_beam = first[:, :, :, :1]
            one_position = one_beam.expand(-1, -1, -1, beams, -1)
            both = self.reserve(one_position, max(_FIRST_CAPACITY, 2 * count))
        both[:, :, :, :count] = first.unsqueeze(4)

    def reserve(self, like: Tensor, capacity: int) -> Tensor:
        """Make space for `capacity` positions like (2, B, H, K, E), and return it; what is there
        stays, and what is not is any number."""
        old = self.both
        sides, rows, heads, beams, size = like.shape
        both = like.new_empty(sides, rows, heads, capacity, beams, size)
        if old is not None:
            done = old.size(3)
            both[:, :, :, :done] = old
        self.both = both
        return both

    def keep(self, sentences: Tensor) -> None:
        """Keep these sentences (B'), in this order, and drop the others."""
        if self.both is not None:
            self.both = self.both[:, sentences]


@dataclass
class DecoderState:
    """The memory of B sentences, one copy each, and what their K beams have said.

    Search reorders it and drops finished sentences.
    """

    # For each layer keys and values, each (B, H, S, E); None where there is no encoder.
    memory: list[KeysValues | None]
    # (B, 1, 1, S), added to attention's scores: 0 where there is a token, else -inf.
    memory_mask: Tensor | None
    layers: list[LayerCache]
    # How many positions have been decoded: (1,) on the device, and for us.
    position: Tensor
    length: int = 0
    # If not 0, attention is over this many positions whatever the length; a mask hides the rest.
    fixed: int = 0
    # (B, K, P, K), added to attention's scores: 0 where beam k continues that beam, else -inf.
    ancestors: Tensor | None = None
    # (K, K), the ancestors at the newest position: each beam continues itself.
    itself: Tensor | None = None
    # Where there is one, it holds after each step what the newest position saw of the memory,
    # (B, H, K, S) for each layer.
    record: Record = None

    def anew(self) -> DecoderState:
        """Return a state before the first step that shares this one's memory."""
        return DecoderState(
            memory=self.memory,
            memory_mask=self.memory_mask,
            layers=[LayerCache() for _ in self.layers],
            position=torch.zeros_like(self.position),
        )

    def extend(self, beams: int, like: Tensor) -> tuple[int, Tensor | None]:
        """Prepare for one more position.

        Returns how many positions are seen, and their mask (B, 1, K, seen * K).
        """
        seen = self.fixed or self.length + 1
        if beams == 1 and not self.fixed:
            return seen, None
        if self.ancestors is None or self.ancestors.size(2) < seen:
            capacity = max(seen, _FIRST_CAPACITY, 2 * self.length)
            self.reserve_ancestors(beams, like, capacity)
        assert self.ancestors is not None
        assert self.itself is not None
        n_rows = len(self.ancestors)
        newest = self.itself[:, None].expand(n_rows, -1, 1, -1)
        self.ancestors.index_copy_(2, self.position, newest)
        so_far = self.ancestors[:, :, :seen]
        mask = so_far.flatten(2)
        return seen, mask[:, None]

    def begin(self, count: int, beams: int, like: Tensor) -> None:
        """Stand behind the first `count` positions, as if each beam had taken them by itself."""
        self.length = count
        self.position.fill_(count)
        if self.ancestors is None and beams > 1:
            self.reserve_ancestors(beams, like, max(_FIRST_CAPACITY, 2 * count))
        if self.ancestors is not None and self.itself is not None:
            self.ancestors.fill_(-math.inf)
            self.ancestors[:, :, :count] = self.itself[:, None]

    def advance(self, count: int = 1) -> None:
        """Move on by one position, or more."""
        self.length += count
        self.position += count

    def reorder(self, beams: Tensor) -> None:
        """beams (B, K): which of its sentence's old beams each new beam continues."""
        ancestors = self.ancestors
        if ancestors is not None:
            index = beams[:, :, None, None]
            continued = ancestors.gather(1, index.expand_as(ancestors))
            ancestors.copy_(continued)

    def keep(self, sentences: Tensor) -> None:
        """Keep these sentences (B'), in this order, and drop the others."""
        kept: list[KeysValues | None] = []
        for keys_values in self.memory:
            if keys_values is None:
                kept.append(None)
            else:
                keys, values = keys_values
                kept.append((keys[sentences], values[sentences]))
        self.memory = kept
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask[sentences]
        if self.ancestors is not None:
            self.ancestors = self.ancestors[sentences]
        for layer in self.layers:
            layer.keep(sentences)

    def fix(self, capacity: int, newest: Tensor) -> None:
        """Make space for `capacity` positions, which keep their addresses from now on.

        `newest` is like one position, (2, B, H, K, E).
        """
        self.fixed = capacity
        self.reserve_ancestors(newest.size(3), newest[0], capacity)
        for cache in self.layers:
            cache.reserve(newest, capacity).zero_()  # hidden by the mask, but not if it is nan

    def reserve_ancestors(self, beams: int, like: Tensor, capacity: int) -> None:
        """Make space for `capacity` positions; `like` has a row for each sentence."""
        itself = like.new_full((beams, beams), -math.inf)
        itself.fill_diagonal_(0.0)
        n_rows = len(like)
        grown = like.new_full((n_rows, beams, capacity, beams), -math.inf)
        if self.ancestors is not None:
            done = slice(self.length)
            grown[:, :, done] = self.ancestors[:, :, done]
        self.itself = itself
        self.ancestors = grown
