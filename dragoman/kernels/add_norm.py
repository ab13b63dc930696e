"""LayerNorm(x + y) in one kernel: a twin of `Residual.forward` for decoding. Knows tensors only.

D d_model.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from dragoman.kernels.jit import jit, next_power_of_2, tl
from dragoman.model.model_config import ModelConfig
from dragoman.model.norm import Residual

_WIDEST = 8192  # numbers that the registers of one program hold


def residual_by_triton(
    residual: Residual, x: Tensor, sublayer: Callable[[Tensor], Tensor]
) -> Tensor:
    """`Residual.forward` where nothing is dropped and the norm comes last."""
    if torch.is_grad_enabled():
        return Residual.forward(residual, x, sublayer)
    assert isinstance(residual.norm, nn.LayerNorm)
    return add_norm(x, sublayer(x), residual.norm)


def fits(config: ModelConfig) -> bool:
    """Whether the model's residuals are those of the paper."""
    return not config.norm_first and config.norm == "layer" and config.d_model <= _WIDEST


def add_norm(x: Tensor, y: Tensor, norm: nn.LayerNorm) -> Tensor:
    """norm(x + y), both (…, D), by Triton."""
    x = x.contiguous()
    y = y.contiguous()
    out = torch.empty_like(x)
    width = x.size(-1)
    _add_norm[(x.numel() // width,)](
        x, y, norm.weight, norm.bias, out, width, norm.eps, BLOCK=next_power_of_2(width)
    )
    return out


@jit
def _add_norm(x, y, weight, bias, out, width, epsilon, BLOCK: tl.constexpr):
    """One program for a row, all of which it holds."""
    d = tl.arange(0, BLOCK)
    inside = d < width
    row = tl.program_id(0).to(tl.int64)
    address = row * width + d
    left = tl.load(x + address, inside, 0.0).to(tl.float32)
    right = tl.load(y + address, inside, 0.0).to(tl.float32)
    added = left + right
    mean = tl.sum(added, 0) / width
    centred = tl.where(inside, added - mean, 0.0)
    variance = tl.sum(centred * centred, 0) / width
    spread = tl.rsqrt(variance + epsilon)
    scale = tl.load(weight + d, inside, 0.0)
    shift = tl.load(bias + d, inside, 0.0)
    result = centred * spread * scale + shift
    tl.store(out + address, result.to(out.dtype.element_ty), inside)
