"""Where a token stands. Added to its embedding (§3.5: sines and cosines of geometrically growing
wavelengths, or learnt), or brought into attention: as a turn of queries and keys (rotary, Su et
al. 2021), or as a bias by distance (relative, T5)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoids(length: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same.

    The table is (length, d_model).
    """
    position = torch.arange(length, dtype=torch.float64)[:, None]
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    wavelength = 10000.0 ** (even / d_model)
    table = wavelength.new_empty(length, d_model, dtype=torch.float32)
    # Some rows at a time: in double precision the whole would take several times its memory.
    for positions, rows in zip(position.split(64), table.split(64), strict=True):
        angle = positions / wavelength  # (64, d_model / 2)
        rows[:, 0::2] = angle.sin()
        rows[:, 1::2] = angle.cos()
    return table


class Positions(nn.Module):
    """Adds the encoding of each position to x."""

    def __init__(self, max_length: int, d_model: int, learned: bool = False) -> None:
        super().__init__()
        self.table: Tensor
        self.learned = learned
        if learned:
            drawn = torch.randn(max_length, d_model)
            self.table = nn.Parameter(drawn * d_model**-0.5)
        else:  # not a weight: it is never stored, but computed whenever a model is loaded
            self.register_buffer("table", sinusoids(max_length, d_model), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, D), whose positions count from 0."""
        first = self.table[: x.size(1)]
        return x + first.to(x.dtype)

    def at(self, x: Tensor, position: Tensor) -> Tensor:
        """x (B, K, D), all at the one position (1,)."""
        return x + self.table.index_select(0, position)


class Rotary(nn.Module):
    """Turns pairs of dimensions of queries and keys by an angle that grows with the position.

    Their products then depend on distances alone. The frequencies are stored, since models that
    were stretched to longer text have their own.
    """

    def __init__(self, size: int, base: float = 10000.0) -> None:
        super().__init__()
        even = torch.arange(0, size, 2, dtype=torch.float32)
        frequencies = base ** -(even / size)
        self.frequencies = nn.Parameter(frequencies, requires_grad=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Rotary:
        """A model may become bfloat16; an angle of thousands of turns cannot."""
        exact = self.frequencies.data
        super()._apply(fn, recurse)
        self.frequencies.data = exact.to(self.frequencies.device)
        return self

    def forward(
        self, queries: Tensor, keys_values: Tensor, position: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Queries (B, H, T, E), and keys and values (2, B, H, T, E), the values as they are.

        Their positions count from 0, or all of them are at the one position (1,).
        """
        if position is None:
            position = torch.arange(queries.size(-2), device=queries.device)
        keys, values = keys_values
        turned = self._turned(keys, position)
        return self._turned(queries, position), torch.stack((turned, values))

    def _turned(self, x: Tensor, positions: Tensor) -> Tensor:
        angles = positions[:, None].float() * self.frequencies.float()  # (T, E / 2)
        cosine = angles.cos().to(x.dtype)
        sine = angles.sin().to(x.dtype)
        left, right = x.chunk(2, dim=-1)
        turned_left = left * cosine - right * sine
        turned_right = right * cosine + left * sine
        return torch.cat((turned_left, turned_right), dim=-1)


class RelativeBias(nn.Module):
    """A number for each head and distance, added to attention's scores.

    Short distances have one each, longer ones share it in growing steps, and those beyond the
    furthest share one.
    """

    def __init__(
        self,
        n_heads: int,
        both_ways: bool,
        buckets: int = 32,
        furthest: int = 128,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(buckets, n_heads))
        self.both_ways = both_ways
        self.furthest = furthest

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Positions (T) and (S) -> (1, H, T, S)."""
        distance = keys[None] - queries[:, None]
        count = self.weight.size(0)
        bucket = torch.zeros_like(distance)
        if self.both_ways:
            count //= 2
            bucket = (distance > 0) * count
            distance = distance.abs()
        else:
            distance = -distance.clamp(max=0)
        exact = count // 2
        beyond = distance.clamp(min=1).float() / exact
        ratio = torch.log(beyond) / math.log(self.furthest / exact)
        steps = (ratio * (count - exact)).long()
        coarse = (exact + steps).clamp(max=count - 1)
        bucket = bucket + torch.where(distance < exact, distance, coarse)
        bias = self.weight[bucket]  # (T, S, H)
        return bias.permute(2, 0, 1)[None]
