"""The grammar of trees: labelled brackets around a given number of leaves. Knows numbers only.

A tree is one bracket; a bracket holds leaves and brackets, at least one of them; what opens with a
label closes with the same. Each output has exactly as many leaves as its sentence has words, and
always room to close whatever is open.

Shapes: B sentences, K beams, V vocabulary, D depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.decoding.step import Problem, S

DEEPEST = 100  # brackets
LONGEST_CHAIN = 12  # brackets that open one after the other without a leaf
AROUND = 3  # tokens of the shortest output besides its leaves: a bracket and the end
NO_LABEL = -1
_NOTHING_OPEN = -2


@dataclass(frozen=True)
class TreeTokens:
    """What each token of the vocabulary is. A token that is none of these is never said."""

    leaves: Sequence[bool]
    opens: Sequence[int]  # the number of the label whose bracket it opens, or NO_LABEL
    closes: Sequence[int]


class TreeAutomaton:
    """Where each beam stands in its tree."""

    def __init__(
        self,
        tokens: TreeTokens,
        leaves: Sequence[int],
        problem: Problem[S],
        beams: int,
    ) -> None:
        """`leaves` are those of each sentence; each output must have room for them and `AROUND`."""
        device = problem.max_lengths.device
        shape = (len(leaves), beams)
        counts = torch.tensor(leaves, device=device)
        self._end = problem.end
        self._is_leaf = torch.tensor(tokens.leaves, device=device)  # (V,)
        self._opens = torch.tensor(tokens.opens, device=device)
        self._closes = torch.tensor(tokens.closes, device=device)
        self._max_lengths = problem.max_lengths[:, None]  # (B, 1)
        self._left = counts[:, None].expand(shape)  # leaves still to be said
        self._depth = torch.zeros(shape, dtype=torch.long, device=device)
        self._chain = torch.zeros_like(self._depth)  # brackets opened since the last other token
        # (B, K, D + 1): of each open bracket, with room above the deepest.
        self._labels = torch.full((*shape, DEEPEST + 1), _NOTHING_OPEN, device=device)

    def allowed(self, length: int) -> Tensor:
        """Return (B, K, V), True for each token that may come after `length` others."""
        is_inside = self._depth > 0
        has_leaves = self._left > 0
        room = self._max_lengths - (length + 1)
        needed = self._left + self._depth + 2  # to close another bracket as well, and the end
        may_open = has_leaves & (room >= needed) & (self._chain < LONGEST_CHAIN)
        may_open &= self._depth < DEEPEST
        if length:
            may_open &= is_inside
        may_be_leaf = has_leaves & is_inside
        is_filled = self._chain == 0
        may_close = is_inside & is_filled & ((self._depth > 1) | ~has_leaves)
        is_match = self._closes == self._innermost()[..., None]
        allowed = may_open[..., None] & (self._opens != NO_LABEL)
        allowed |= may_be_leaf[..., None] & self._is_leaf
        allowed |= may_close[..., None] & is_match
        if length:
            allowed[..., self._end] = ~is_inside
        return allowed

    def follow(self, tokens: Tensor, beams: Tensor) -> None:
        """Take the tokens (B, K) that were chosen and the beams they continue."""
        opened = self._opens[tokens]
        is_open = opened != NO_LABEL
        is_close = self._closes[tokens] != NO_LABEL
        depth = self._depth.gather(1, beams)
        chain = self._chain.gather(1, beams)
        left = self._left.gather(1, beams)
        continued = beams[..., None].expand(-1, -1, DEEPEST + 1)
        labels = self._labels.gather(1, continued)
        # Where nothing opens, what is written above the innermost bracket is never read.
        self._labels = labels.scatter(2, depth[..., None], opened[..., None])
        moved = depth + is_open.long() - is_close.long()
        self._depth = moved.clamp(0, DEEPEST)
        self._chain = torch.where(is_open, chain + 1, 0)
        self._left = (left - self._is_leaf[tokens].long()).clamp(min=0)

    def keep(self, sentences: Tensor) -> None:
        """Drop finished sentences, as `State.keep` does."""
        self._max_lengths = self._max_lengths[sentences]
        self._left = self._left[sentences]
        self._depth = self._depth[sentences]
        self._chain = self._chain[sentences]
        self._labels = self._labels[sentences]

    def _innermost(self) -> Tensor:
        """(B, K) the label of the bracket that was opened last."""
        place = (self._depth - 1).clamp(min=0)[..., None]
        return self._labels.gather(2, place)[..., 0]
