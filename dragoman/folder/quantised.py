"""Weights as 8-bit integers: how a model's tensors become them and are had back. Knows tensors
only; runtimes/int8.py computes with them.

Each row of a weight matrix has one scale.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from dragoman.errors import ModelFolderError
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer

SCALE = ".scale"


def quantise(model: Transformer) -> dict[str, Tensor]:
    """The tensors that `runtimes.int8.build` takes: int8 matrices with a scale for each row, everything else
    in float32."""
    tensors = {}
    for name, parameter in model.named_parameters():
        tensor = parameter.detach()
        if tensor.dim() == 2:
            scale = tensor.float().abs().amax(1).clamp(min=1e-12) / 127
            tensors[name] = (tensor.float() / scale[:, None]).round().to(torch.int8)
            tensors[name + SCALE] = scale
        else:
            tensors[name] = tensor.float()
    return tensors


def dequantise(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The float weights that these stand for, for a GPU or a CPU without the kernels."""
    check(tensors)
    scales = {name: tensors[name + SCALE][:, None] for name in tensors if name + SCALE in tensors}
    return {
        name: tensors[name].float() * scales.get(name, 1.0)
        for name in tensors
        if not name.endswith(SCALE)
    }


def shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """What `runtimes.int8.build` expects to be given."""
    with torch.device("meta"):
        model = Transformer(config)
    known = {name: tuple(tensor.shape) for name, tensor in model.named_parameters()}
    return known | {name + SCALE: shape[:1] for name, shape in known.items() if len(shape) == 2}


def check(tensors: Mapping[str, Tensor]) -> None:
    """Refuses tensors of other types than `quantise` makes."""
    kinds = {name: torch.int8 if name + SCALE in tensors else torch.float32 for name in tensors}
    wrong = [name for name, kind in kinds.items() if tensors[name].dtype != kind]
    if wrong:
        raise ModelFolderError(
            f"{wrong[0]} among the int8 weights is {tensors[wrong[0]].dtype}; delete the file to have it made anew"
        )
