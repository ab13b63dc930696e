"""Weights as 8-bit integers: how a model's tensors become them, and how they become floats again.
Knows tensors only; runtimes/int8.py computes with them.

Each row of a weight matrix has one scale.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from dragoman.errors import ModelFolderError
from dragoman.folder import weights
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer

SCALE = ".scale"


def quantise(model: Transformer) -> dict[str, Tensor]:
    """Return the tensors that `runtimes.int8.build` takes: int8 matrices with a scale for each row,
    and everything else in float32."""
    tensors = {}
    for name, parameter in model.named_parameters():
        tensor = parameter.detach().float()
        if tensor.dim() == 2:
            scale = tensor.abs().amax(1).clamp(min=1e-12) / 127
            tensors[name] = (tensor / scale[:, None]).round().to(torch.int8)
            tensors[name + SCALE] = scale
        else:
            tensors[name] = tensor
    return tensors


def dequantise(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the float weights that int8 weights stand for, for a GPU or a CPU without the
    kernels."""
    check(tensors)
    floats = {}
    for name, tensor in tensors.items():
        if name.endswith(SCALE):
            continue
        scale = tensors.get(name + SCALE)
        floats[name] = tensor.float() if scale is None else tensor.float() * scale[:, None]
    return floats


def shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of each tensor that `quantise` makes of a model of this shape."""
    with torch.device("meta"):
        model = Transformer(config)
    matrices = weights.shapes(model)
    scales = {}
    for name, shape in matrices.items():
        if len(shape) == 2:
            scales[name + SCALE] = shape[:1]
    return matrices | scales


def check(tensors: Mapping[str, Tensor]) -> None:
    """Refuse tensors of other types than `quantise` makes."""
    for name, tensor in tensors.items():
        expected = torch.int8 if name + SCALE in tensors else torch.float32
        if tensor.dtype != expected:
            raise ModelFolderError(
                f"{name} among the int8 weights is {tensor.dtype}; "
                "delete the file, and it will be made again"
            )
