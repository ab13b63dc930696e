"""How the model becomes fast. model/ says what is computed; here methods of its modules are
exchanged for twins that compute the same in another way, when a trainer or a runtime is made.

What is exchanged is listed in decoding_twins.py and training_twins.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, NamedTuple

import torch
from torch import nn

from dragoman.model.model_config import ModelConfig


class Twin(NamedTuple):
    """A function that takes the place of a method where it fits; its first argument is `self`."""

    owner: type[nn.Module]
    method: str
    function: Callable[..., Any]
    fits: Callable[[torch.device, ModelConfig], bool]


def exchange(model: nn.Module, twins: Sequence[Twin]) -> None:
    """Put the twins in the place of methods, in all modules that have them.

    Of several twins of one method the last is taken.
    """
    for module in model.modules():
        for twin in twins:
            if isinstance(module, twin.owner):
                setattr(module, twin.method, MethodType(twin.function, module))
