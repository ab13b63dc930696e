"""Positional encoding (§3.5): sines and cosines of geometrically growing wavelengths, computed once."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dragoman.packing import Segments


def sinusoids(length: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same; (length, d_model)."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    wavelength = 10000.0 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = position / wavelength  # (length, d_model / 2)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).float()


class Positions(nn.Module):
    """Adds the encoding of each position to x."""

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.table: Tensor  # not a weight: it is never stored, and computed anew when a model is loaded
        self.register_buffer("table", sinusoids(max_length, d_model), persistent=False)

    def forward(self, x: Tensor, segments: Segments | None = None) -> Tensor:
        """x (B, T, D), or (T, D) where sentences lie end to end."""
        rows = self.table[: x.size(1)] if segments is None else self.table[segments.places(x.size(0))]
        return x + rows.to(x.dtype)
