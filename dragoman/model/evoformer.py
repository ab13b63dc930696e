"""The attention of AlphaFold 2's Evoformer (Jumper et al. 2021, supplementary algorithms 6 to 15)
as plain blocks: the paper's attention along the rows and columns of a table of aligned sequences,
and over pairs of positions, which a bias and an outer product let talk to each other. Knows tensors
only; nothing here knows what a protein is, and there are no trained weights.

S sequences, R positions (residues), M and Z widths of the two tables, H heads, C width of a head.
A table of sequences is (…, S, R, M), one of pairs (…, R, R, Z).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class GatedAttention(nn.Module):
    """Attention among the last rows but one of x (…, T, D), with a gate for each head; a bias
    (…, H, T, T) is added to the scores. Algorithms 7, 8, 13 and 14 without their norms."""

    def __init__(self, width: int, n_heads: int, size: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        inside = n_heads * size
        self.query = nn.Linear(width, inside, bias=False)
        self.key = nn.Linear(width, inside, bias=False)
        self.value = nn.Linear(width, inside, bias=False)
        self.gate = nn.Linear(width, inside)
        self.out = nn.Linear(inside, width)

    def forward(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        query = self._heads(self.query(x))  # (…, H, T, C)
        key = self._heads(self.key(x))
        value = self._heads(self.value(x))
        scale = math.sqrt(query.size(-1))
        scores = query @ key.transpose(-2, -1) / scale
        if bias is not None:
            scores = scores + bias
        weights = scores.softmax(-1)
        found = weights @ value
        joined = found.transpose(-3, -2).flatten(-2)
        gate = torch.sigmoid(self.gate(x))
        return self.out(gate * joined)

    def _heads(self, x: Tensor) -> Tensor:
        heads = x.unflatten(-1, (self.n_heads, -1))  # (…, T, H, C)
        return heads.transpose(-3, -2)


class RowAttention(nn.Module):
    """Algorithm 7: along each sequence, with a bias from the pairs."""

    def __init__(self, width: int, pair_width: int, n_heads: int, size: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.pair_norm = nn.LayerNorm(pair_width)
        self.bias = nn.Linear(pair_width, n_heads, bias=False)
        self.attention = GatedAttention(width, n_heads, size)

    def forward(self, sequences: Tensor, pairs: Tensor) -> Tensor:
        normed_pairs = self.pair_norm(pairs)
        bias = self.bias(normed_pairs)  # (…, R, R, H)
        of_heads = bias.movedim(-1, -3)
        for_all = of_heads.unsqueeze(-4)  # the same for every sequence
        return self.attention(self.norm(sequences), for_all)


class ColumnAttention(nn.Module):
    """Algorithm 8: among the sequences at each position."""

    def __init__(self, width: int, n_heads: int, size: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = GatedAttention(width, n_heads, size)

    def forward(self, sequences: Tensor) -> Tensor:
        x = self.norm(sequences)
        columns = x.transpose(-3, -2)
        found = self.attention(columns)
        return found.transpose(-3, -2)


class Transition(nn.Module):
    """Algorithms 9 and 15: the feed-forward network of §3.3 behind a norm."""

    def __init__(self, width: int, factor: int = 4) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, factor * width)
        self.outer = nn.Linear(factor * width, width)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.inner(self.norm(x))
        return self.outer(F.relu(inner))


class OuterProductMean(nn.Module):
    """Algorithm 10: what two positions have in common, over all sequences, for their pair."""

    def __init__(self, width: int, pair_width: int, inside: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.left = nn.Linear(width, inside)
        self.right = nn.Linear(width, inside)
        self.out = nn.Linear(inside * inside, pair_width)

    def forward(self, sequences: Tensor) -> Tensor:
        x = self.norm(sequences)
        left = self.left(x)
        right = self.right(x)
        products = torch.einsum("...sic,...sjd->...ijcd", left, right)
        mean = products / sequences.size(-3)
        return self.out(mean.flatten(-2))


class TriangleProduct(nn.Module):
    """Algorithms 11 and 12: a pair from the two other sides of each triangle that it is part of, by
    its outgoing or its incoming edges."""

    def __init__(self, width: int, inside: int, outgoing: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.left = nn.Linear(width, inside)
        self.left_gate = nn.Linear(width, inside)
        self.right = nn.Linear(width, inside)
        self.right_gate = nn.Linear(width, inside)
        self.gate = nn.Linear(width, width)
        self.inner_norm = nn.LayerNorm(inside)
        self.out = nn.Linear(inside, width)
        self.edges = "...ikc,...jkc->...ijc" if outgoing else "...kic,...kjc->...ijc"

    def forward(self, pairs: Tensor) -> Tensor:
        x = self.norm(pairs)
        left_gate = torch.sigmoid(self.left_gate(x))
        right_gate = torch.sigmoid(self.right_gate(x))
        left = left_gate * self.left(x)
        right = right_gate * self.right(x)
        summed = torch.einsum(self.edges, left, right)
        gate = torch.sigmoid(self.gate(x))
        normed = self.inner_norm(summed)
        return gate * self.out(normed)


class TriangleAttention(nn.Module):
    """Algorithms 13 and 14: a pair attends to those that share its first position, or its second,
    with a bias from the third side of the triangle."""

    def __init__(self, width: int, n_heads: int, size: int, starting: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.bias = nn.Linear(width, n_heads, bias=False)
        self.attention = GatedAttention(width, n_heads, size)
        self.starting = starting

    def forward(self, pairs: Tensor) -> Tensor:
        # Around the ending node everything is as around the starting node, the pairs turned over.
        turned = pairs if self.starting else pairs.transpose(-3, -2)
        x = self.norm(turned)
        bias = self.bias(x)  # (…, R, R, H)
        of_heads = bias.movedim(-1, -3)
        found = self.attention(x, of_heads.unsqueeze(-4))
        return found if self.starting else found.transpose(-3, -2)


class EvoformerBlock(nn.Module):
    """One round of algorithm 6, without its dropout."""

    def __init__(self, width: int, pair_width: int, n_heads: int, size: int) -> None:
        super().__init__()
        self.rows = RowAttention(width, pair_width, n_heads, size)
        self.columns = ColumnAttention(width, n_heads, size)
        self.transition = Transition(width)
        self.products = OuterProductMean(width, pair_width, size)
        self.outgoing = TriangleProduct(pair_width, pair_width, outgoing=True)
        self.incoming = TriangleProduct(pair_width, pair_width, outgoing=False)
        self.starting = TriangleAttention(pair_width, n_heads, size, starting=True)
        self.ending = TriangleAttention(pair_width, n_heads, size, starting=False)
        self.pair_transition = Transition(pair_width)

    def forward(self, sequences: Tensor, pairs: Tensor) -> tuple[Tensor, Tensor]:
        sequences = sequences + self.rows(sequences, pairs)
        sequences = sequences + self.columns(sequences)
        sequences = sequences + self.transition(sequences)
        pairs = pairs + self.products(sequences)
        pairs = pairs + self.outgoing(pairs)
        pairs = pairs + self.incoming(pairs)
        pairs = pairs + self.starting(pairs)
        pairs = pairs + self.ending(pairs)
        pairs = pairs + self.pair_transition(pairs)
        return sequences, pairs
