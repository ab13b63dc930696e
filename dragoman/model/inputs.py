"""What an encoder reads in the place of tokens: the patches of an image (ViT, Dosovitskiy et al.
2020) or the spectrum of sound (Whisper, Radford et al. 2022). Knows numbers in a frame; how they
came from a file is not known here."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.kernels.packed_attention import Segments
from dragoman.model.dropout import Dropout
from dragoman.model.model_config import ModelConfig
from dragoman.model.positions import Positions


class ImageInput(nn.Module):
    """Images (B, 3, H, W), cut into squares -> (B, 1 + squares, D); the first position is a
    class token, the same for all."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.patch_size = config.patch_size
        self.project = nn.Linear(3 * config.patch_size**2, config.d_model)
        self.first = nn.Parameter(torch.zeros(config.d_model))
        squares = (config.input_size // config.patch_size) ** 2
        self.positions = Positions(1 + squares, config.d_model, learned=True)
        self.dropout = Dropout(config.dropout)

    def forward(self, images: Tensor, segments: Segments | None = None) -> Tensor:
        squares = F.unfold(images, self.patch_size, stride=self.patch_size).transpose(
            1, 2
        )  # (B, squares, 3 * patch_size^2)
        x = self.project(squares)
        return self.dropout(
            self.positions(torch.cat((self.first.to(x.dtype).expand(len(x), 1, -1), x), dim=1))
        )


class SoundInput(nn.Module):
    """Spectra (B, bands, frames) through two convolutions, the second taking every other frame
    -> (B, frames / 2, D)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.first = nn.Conv1d(config.input_size, config.d_model, kernel_size=3, padding=1)
        self.second = nn.Conv1d(config.d_model, config.d_model, kernel_size=3, stride=2, padding=1)
        self.positions = Positions(config.source_length, config.d_model, learned=True)
        self.dropout = Dropout(config.dropout)

    def forward(self, spectra: Tensor, segments: Segments | None = None) -> Tensor:
        x = F.gelu(self.second(F.gelu(self.first(spectra)))).transpose(1, 2)
        return self.dropout(self.positions(x))
