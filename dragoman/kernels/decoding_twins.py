"""What is exchanged in a model that decodes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dragoman.kernels import add_norm, decoding_attention
from dragoman.kernels.exchange import Twin, exchange
from dragoman.kernels.jit import has_triton
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.model_config import ModelConfig
from dragoman.model.norm import Residual
from dragoman.model.transformer import Transformer


def accelerate_decoding(model: Transformer, device: torch.device) -> None:
    """Make a model fast to decode with on this device; it is not trained afterwards."""
    exchange(model, [twin for twin in DECODING if twin.fits(device, model.config)])


def _drop_nothing(dropout: nn.Dropout, x: Tensor) -> Tensor:
    """Without asking torch, which takes a while to find out that there is nothing to do."""
    return x


def _anywhere(device: torch.device, config: ModelConfig) -> bool:
    return True


def _without_encoder(device: torch.device, config: ModelConfig) -> bool:
    return not config.encoder_layers


def _triton_attends(device: torch.device, config: ModelConfig) -> bool:
    return has_triton(device) and decoding_attention.fits(config)


def _triton_norms(device: torch.device, config: ModelConfig) -> bool:
    return has_triton(device) and add_norm.fits(config)


# Of several that fit, the last is taken.
DECODING = (
    Twin(nn.Dropout, "forward", _drop_nothing, _anywhere),
    Twin(MultiHeadAttention, "look", decoding_attention.look_by_products, _anywhere),
    Twin(MultiHeadAttention, "look", decoding_attention.look_along_text, _without_encoder),
    Twin(MultiHeadAttention, "look", decoding_attention.look_by_triton, _triton_attends),
    Twin(Residual, "forward", add_norm.residual_by_triton, _triton_norms),
)
