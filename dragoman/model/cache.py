"""What the decoder remembers between two steps: keys and values, so that each step computes one
position only.

B sentences, K beams, H heads, E = d_model / H, P positions there is room for.

The K beams of a sentence share its memory, and they share the keys and values of what they have
said as well: position after position, those of all beams lie side by side and never move. Who
continues whom is kept in one small tensor, the ancestors. It is a mask for attention, and a reorder
touches nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from dragoman.model.attention import KeysValues

_FIRST_ROOM = 16


class LayerCache:
    """Keys and values of the positions decoded so far in one layer."""

    def __init__(self) -> None:
        self.both: Tensor | None = None  # (2, B, H, P, K, E): keys, then values

    def append(self, newest: Tensor, position: Tensor, seen: int) -> KeysValues:
        """Takes in the newest position (2, B, H, K, E) and returns the first `seen`, each (B, H,
        seen * K, E)."""
        if self.both is None or seen > self.both.size(3):
            self.reserve(newest, max(_FIRST_ROOM, 2 * (seen - 1)))
        assert self.both is not None
        self.both.index_copy_(3, position, newest.unsqueeze(3))
        keys, values = self.both[:, :, :, :seen].flatten(3, 4)
        return keys, values

    def fill(self, first: Tensor, beams: int) -> None:
        """The first positions (2, B, H, T, E), which all beams have in common."""
        count = first.size(3)
        if self.both is None or count >= self.both.size(3):
            self.reserve(
                first[:, :, :, :1].expand(-1, -1, -1, beams, -1), max(_FIRST_ROOM, 2 * count)
            )
        assert self.both is not None
        self.both[:, :, :, :count] = first.unsqueeze(4)

    def reserve(self, like: Tensor, room: int) -> None:
        """Room for so many positions; what was there stays. `like` is (2, B, H, K, E)."""
        old = self.both
        self.both = like.new_zeros(*like.shape[:3], room, *like.shape[3:])
        if old is not None:
            self.both[:, :, :, : old.size(3)] = old

    def keep(self, sentences: Tensor) -> None:
        """As DecoderState.keep."""
        self.both = None if self.both is None else self.both[:, sentences]


@dataclass
class DecoderState:
    """The memory of B sentences, one copy each, and what their K beams have said. Search
    reorders it and lets sentences go."""

    memory: list[
        KeysValues | None
    ]  # a layer: keys and values, each (B, H, S, E); None where there is no encoder
    memory_mask: (
        Tensor | None
    )  # (B, 1, 1, S), added to attention's scores: 0 where there is a token, else -inf
    layers: list[LayerCache]
    position: Tensor  # (1,) positions decoded so far, for the device
    length: int = 0  # and for us
    fixed: int = (
        0  # attend to room for so many positions, whatever the length; 0: to those that are there
    )
    ancestors: Tensor | None = (
        # (B, K, P, K), added to attention's scores: 0 where beam k continues that beam, else -inf
        None
    )
    watched: bool = False  # whether to keep what the newest position looked at
    looks: list[Tensor] | None = None  # a layer: (B, H, K, S)
    itself: Tensor | None = None  # (K, K), the same at the newest position

    def extend(self, beams: int, like: Tensor) -> tuple[int, Tensor | None]:
        """Makes ready for one more position: how many positions are to be seen, and the mask (B,
        1, K, seen * K) of them."""
        seen = self.fixed or self.length + 1
        if beams == 1 and not self.fixed:
            return seen, None
        if self.ancestors is None or self.ancestors.size(2) < seen:
            self.make_room(beams, like, max(seen, _FIRST_ROOM, 2 * self.length))
        assert self.ancestors is not None
        assert self.itself is not None
        self.ancestors.index_copy_(
            2, self.position, self.itself[:, None].expand(len(self.ancestors), -1, 1, -1)
        )
        return seen, self.ancestors[:, :, :seen].flatten(2)[:, None]

    def begin(self, count: int, beams: int, like: Tensor) -> None:
        """As if each beam had gone through the first `count` positions by itself, and through no
        more."""
        self.length = count
        self.position.fill_(count)
        if self.ancestors is None and beams > 1:
            self.make_room(beams, like, max(_FIRST_ROOM, 2 * count))
        if self.ancestors is not None and self.itself is not None:
            self.ancestors.fill_(-math.inf)[:, :, :count] = self.itself[:, None]

    def advance(self) -> None:
        """The position is done."""
        self.length += 1
        self.position += 1

    def reorder(self, beams: Tensor) -> None:
        """beams (B, K): which of its sentence's old beams each new beam continues."""
        if self.ancestors is not None:
            self.ancestors.copy_(
                self.ancestors.gather(1, beams[:, :, None, None].expand_as(self.ancestors))
            )

    def keep(self, sentences: Tensor) -> None:
        """sentences (B'): those that stay, in order."""
        self.memory = [both and (both[0][sentences], both[1][sentences]) for both in self.memory]
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask[sentences]
        if self.ancestors is not None:
            self.ancestors = self.ancestors[sentences]
        for layer in self.layers:
            layer.keep(sentences)

    def fix(self, room: int, newest: Tensor) -> None:
        """Room for so many positions, all in its place from now on; `newest` is like one
        position, (2, B, H, K, E)."""
        self.fixed = room
        self.make_room(newest.size(3), newest[0], room)
        for cache in self.layers:
            cache.reserve(newest, room)

    def make_room(self, beams: int, like: Tensor, room: int) -> None:
        """For so many positions; `like` has a row for each sentence."""
        self.itself = like.new_full((beams, beams), -math.inf).fill_diagonal_(0.0)
        grown = like.new_full((len(like), beams, room, beams), -math.inf)
        if self.ancestors is not None:
            grown[:, :, : self.length] = self.ancestors[:, :, : self.length]
        self.ancestors = grown
