"""A trained model with more layers that says what it said before. Knows weights by their names;
knows no folders.

Each new layer is a copy of the one below it whose output projections are zero, so that at first it
passes on what it gets; the training then finds a use for it. Gong et al. (2019) stack copies too,
but whole ones, which start from a worse loss. It takes the norm first: after a sum, the norm of a
new layer would change what passes.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from dragoman.model.model_config import ModelConfig

LAYERS = ("encoder_layers", "decoder_layers")
_OUTPUTS = ("out", "outer")  # the projections that end attention and feed-forward


def can_grow(old: ModelConfig, wanted: Mapping[str, object]) -> bool:
    """Return whether a model can become one with the `wanted` numbers of layers."""
    if not old.norm_first:
        return False
    for name in LAYERS:
        before = getattr(old, name)
        after = wanted.get(name, before)
        if not isinstance(after, int) or after < before or (after and not before):
            return False
    return True


def grow(weights: dict[str, Tensor], old: ModelConfig, new: ModelConfig) -> dict[str, Tensor]:
    """Return the weights of `old` for a model that has the layers of `new`."""
    grown: dict[str, Tensor] = {}
    for stack in ("encoder", "decoder"):
        before = getattr(old, f"{stack}_layers")
        after = getattr(new, f"{stack}_layers")
        layers = _by_layer(weights, f"{stack}.layers.")
        for number, origin in enumerate(_origins(before, after)):
            repeated = number > 0 and origin == _origins(before, after)[number - 1]
            for rest, weight in layers[origin].items():
                empty = repeated and rest.split(".")[-2] in _OUTPUTS
                value = torch.zeros_like(weight) if empty else weight.clone()
                grown[f"{stack}.layers.{number}.{rest}"] = value
    others = {name: weight for name, weight in weights.items() if ".layers." not in name}
    return grown | others


def _origins(before: int, after: int) -> list[int]:
    """Which old layer each new one comes from: in their order, each as often as another."""
    return [number * before // after for number in range(after)]


def _by_layer(weights: Mapping[str, Tensor], head: str) -> dict[int, dict[str, Tensor]]:
    layers: dict[int, dict[str, Tensor]] = {}
    for name, weight in weights.items():
        if name.startswith(head):
            number, rest = name[len(head) :].split(".", 1)
            layers.setdefault(int(number), {})[rest] = weight
    return layers
