"""What an attention may see: of whole sequences, and in one step over a cache. Each is handed down
from the stack through its layers. Knows tensors only.

B sentences, T queries, S keys, K beams, H heads, E width of a head, D d_model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

KeysValues = tuple[Tensor, Tensor]  # each (B, H, S, E); as one tensor, (2, B, H, S, E)
Mask = Tensor | None  # true where a key is seen, or added to the scores; None: all are seen
Record = list[Tensor] | None  # receives the weights (B, H, T, S)
Keep = Callable[[Tensor], None]  # receives keys and values (2, B, H, S, E)
Cache = Callable[[Tensor], KeysValues]  # receives the newest (2, B, H, K, E), returns all of them


class Sight(NamedTuple):
    """What whole sequences see; a mask takes the place of a causal one."""

    memory: Tensor | None = None  # (B, S, D); None: they see themselves
    mask: Mask = None
    record: Record = None
    keep: Keep | None = None


class Past(NamedTuple):
    """What the newest position of K beams sees."""

    seen: KeysValues | Cache  # of a memory, or a cache, which the newest position joins first
    mask: Mask  # (B, 1, K or 1, S), added to the scores
    position: Tensor  # (1,), the number of the newest position
    record: Record = None


@dataclass
class AttentionWeights:
    """The weights of every layer, each (B, H, queries, keys)."""

    encoder: list[Tensor] = field(default_factory=list)
    decoder: list[Tensor] = field(default_factory=list)
    cross: list[Tensor] = field(default_factory=list)


def padding_mask(tokens: Tensor | None, lengths: Tensor | None) -> Mask:
    """(B, 1, 1, S), true where there is a token. No lengths: every row is full."""
    if tokens is None or lengths is None:
        return None
    there = torch.arange(tokens.size(1), device=tokens.device) < lengths[:, None]
    return there[:, None, None]
