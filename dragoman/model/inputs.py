"""What an encoder reads in the place of tokens: the patches of an image (ViT, Dosovitskiy et al.
2020) or the spectrum of sound (Whisper, Radford et al. 2022). Knows numbers in a frame; how they
came from a file is not known here."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.model.model_config import ModelConfig
from dragoman.model.positions import Positions, sinusoids


class ImageInput(nn.Module):
    """Images (B, 3, H, W) in squares -> (B, 1 + squares, D).

    The first position is a class token, the same for all images.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.patch_size = config.patch_size
        self.project = nn.Linear(3 * config.patch_size**2, config.d_model)
        self.first = nn.Parameter(torch.zeros(config.d_model))
        side = config.input_size // config.patch_size
        squares = side**2
        self.positions = Positions(1 + squares, config.d_model, learned=True)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, images: Tensor) -> Tensor:
        squares = F.unfold(images, self.patch_size, stride=self.patch_size)
        x = self.project(squares.transpose(1, 2))  # (B, squares, D)
        first = self.first.to(x.dtype).expand(len(x), 1, -1)
        x = torch.cat((first, x), dim=1)
        return self.dropout(self.positions(x))


class SoundInput(nn.Module):
    """Spectra (B, bands, frames) through two convolutions -> (B, frames / 2, D).

    The second convolution takes every other frame. Positions are sines that are stored with the
    weights but not trained, as in Whisper.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.first = nn.Conv1d(config.input_size, config.d_model, kernel_size=3, padding=1)
        self.second = nn.Conv1d(config.d_model, config.d_model, kernel_size=3, stride=2, padding=1)
        self.positions = Positions(config.source_length, config.d_model, learned=True)
        table = self.positions.table.requires_grad_(False)
        if not table.is_meta:  # of a model whose weights are known, nothing is allocated
            table.copy_(sinusoids(config.source_length, config.d_model))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, spectra: Tensor) -> Tensor:
        x = F.gelu(self.first(spectra))
        x = F.gelu(self.second(x)).transpose(1, 2)
        return self.dropout(self.positions(x))
