"""What both models before the Transformer have: a look at the source, and a state that a search can
reorder. Knows no layers.

Shapes: B sentences, K beams, S source and T target tokens, D width of the embeddings.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


def attend(queries: Tensor, keys: Tensor, values: Tensor, seen: Tensor) -> Tensor:
    """(B, T, D), (B, S, D), (B, S, E), (B, 1, S) -> (B, T, E): the values, weighted by how well
    their keys answer each query.

    Bahdanau et al. 2015, equations 5 and 6; Luong et al. 2015, equation 7. `seen` is false where
    the source is padding.
    """
    scores = queries @ keys.transpose(1, 2)  # (B, T, S)
    return scores.masked_fill(~seen, -torch.inf).softmax(-1).to(values.dtype) @ values


def real(source: Tensor, lengths: Tensor | None) -> Tensor:
    """(B, S), true where there is a token."""
    if lengths is None:
        return torch.ones_like(source, dtype=torch.bool)
    return torch.arange(source.size(1), device=source.device) < lengths[:, None]


@dataclass
class State:
    """What decoding remembers; see dragoman/decoding/seam.py. The K beams of a sentence share
    its memory."""

    memory: list[Tensor]  # of a sentence, each (B, …)
    past: list[Tensor]  # of a beam, each (B, K, …); K is 1 before the first step
    position: int = 0

    def widen(self, beams: int) -> None:
        """The first step shows how many beams there are; all start alike."""
        if self.past[0].size(1) != beams:
            self.past = [part.expand(-1, beams, *part.shape[2:]) for part in self.past]

    def reorder(self, beams: Tensor) -> None:
        rows = torch.arange(len(beams), device=beams.device)[:, None]
        self.past = [part[rows, beams] for part in self.past]

    def keep(self, sentences: Tensor) -> None:
        self.memory = [part[sentences] for part in self.memory]
        self.past = [part[sentences] for part in self.past]
