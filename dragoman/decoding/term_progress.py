"""How far each hypothesis is with the terms that it must say. Knows numbers; nothing of the choice.

Shapes: B sentences, K beams, C terms, O occurrences, L tokens of the longest form; see
term_tree.py.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.decoding.term_tree import Tree

NOTHING = -3  # in place of a token of a form: nothing was said


class Progress(NamedTuple):
    """How far each hypothesis is."""

    # (B, K) the log-probabilities of all but the first tokens of its forms, which do not count when
    # the beam is shared out
    lent: Tensor
    met: Tensor  # (B, K, C) how often it has said the term
    node: Tensor  # (B, K) that it is bound to; 0 where it is free
    fresh: Tensor  # (B, K) the node of the form that it has just completed, or -1
    said: Tensor  # (B, K, L - 1) its last tokens, newest first, since it was bound to a form
    served: Tensor  # (B, K, O) whether it has translated the occurrence
    begun: Tensor  # (B, K, O) how much it looked at the occurrence when it last began a form


def beginning(tree: Tree, shape: tuple[int, int], n_occurrences: int) -> Progress:
    """Return hypotheses (B, K) that have said nothing."""
    device = tree.counts.device
    n_terms = tree.counts.size(1)
    n_said = tree.head.size(2)
    by_occurrence = (*shape, n_occurrences)
    return Progress(
        lent=torch.zeros(shape, device=device),
        met=torch.zeros(*shape, n_terms, dtype=torch.long, device=device),
        node=torch.zeros(shape, dtype=torch.long, device=device),
        fresh=torch.full(shape, -1, device=device),
        said=torch.full((*shape, n_said), NOTHING, device=device),
        served=torch.zeros(by_occurrence, dtype=torch.bool, device=device),
        begun=torch.zeros(by_occurrence, device=device),
    )
