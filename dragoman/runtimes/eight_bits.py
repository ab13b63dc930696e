"""A decoder whose weights have 8 bits, for a CPU that writes one text at a time. Reading the
weights is then most of the work, and there is a quarter to read. What they are multiplied with
stays in floating point, unlike in int8.py. Knows tensors only.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.kernels.joint_projection import join_projections
from dragoman.model.transformer import Transformer

_FEW = 64  # rows; for more of them it is faster to make floats of the weights first


def available() -> bool:
    """True on CPUs for which torch has the kernel in vector instructions."""
    return hasattr(torch, "_weight_int8pack_mm") and torch.backends.cpu.get_cpu_capability() in (
        "AVX2",
        "AVX512",
    )


class EightBits:
    """x W^T + b; each row of W has a scale of its own. It is no module, whose call takes a tenth
    of a small product."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._scale = (
            weight.abs().amax(1).clamp(min=1e-30) / 127
        ).bfloat16()  # first, so that its rounding costs nothing
        self._weight = (weight / self._scale[:, None]).round().clamp(-127, 127).to(torch.int8)
        self._bias = weight.new_zeros(len(weight)) if bias is None else bias.detach()

    def __call__(self, x: Tensor) -> Tensor:
        """(B, T, in) -> (B, T, out)."""
        rows, columns = x.size(0) * x.size(1), x.size(2)
        if (
            rows > _FEW or columns % 16
        ):  # the kernel takes sixteen numbers at a time, and would go past the end of the rest
            return F.linear(x, self._weight.float().mul_(self._scale[:, None]), self._bias)
        found = torch._weight_int8pack_mm(
            x.bfloat16().view(rows, columns), self._weight, self._scale
        )
        return (found + self._bias).view(x.size(0), x.size(1), -1)


def shrink(model: Transformer) -> EightBits:
    """Puts them into the decoder's layers, in place; the output layer comes back, and the
    embedding stays as it is."""
    join_projections(model)
    for layer in model.decoder.layers:
        layer.attention.query = layer.attention.key_value = nn.Identity()  # type: ignore[union-attr]
        for module in list(layer.modules()):
            for name, part in list(module.named_children()):
                if isinstance(part, nn.Linear):
                    delattr(module, name)
                    setattr(module, name, EightBits(part.weight.detach(), part.bias))
    return EightBits(model.output_weight.detach(), model.output_bias)
