"""Weights as 8-bit integers: how a model's tensors become them, and how they become floats again.
Knows tensors only; runtimes/int8.py computes with them.

Each row of a weight matrix has one scale.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from dragoman.errors import ModelFolderError
from dragoman.folder import weights
from dragoman.model.initialise import blueprint
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer

SCALE = ".scale"


def quantise(model: Transformer) -> dict[str, Tensor]:
    """Return the tensors that `runtimes.int8.build` takes: the matrices of linear layers and
    token embeddings in int8 with a scale for each row, and everything else in float32."""
    matrices = _matrices(model)
    tensors = {}
    for name, parameter in model.named_parameters():
        tensor = parameter.detach().float()
        if name in matrices:
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
    with blueprint():
        model = Transformer(config)
    known = weights.shapes(model)
    return known | {name + SCALE: known[name][:1] for name in _matrices(model)}


def check(tensors: Mapping[str, Tensor]) -> None:
    """Refuse tensors of other types than `quantise` makes, and those that are not numbers."""
    for name, tensor in tensors.items():
        expected = torch.int8 if name + SCALE in tensors else torch.float32
        if tensor.dtype != expected:
            raise ModelFolderError(
                f"{name} among the int8 weights is {tensor.dtype}; "
                "delete the file, and it will be made again"
            )
        if expected == torch.float32:
            weights.check_numbers(f"{name} among the int8 weights", tensor)


def _matrices(model: Transformer) -> set[str]:
    """The names of the weights that become integers."""
    return {
        f"{name}.weight"
        for name, module in model.named_modules()
        if isinstance(module, (nn.Linear, nn.Embedding))
    }
