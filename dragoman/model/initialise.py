"""The numbers that a model begins with. Before training: Glorot's uniform distribution for each
matrix of the paper, zero biases, embeddings of variance 1 / d_model. Where weights are known: none,
only shapes to be filled (`blueprint`, on torch's meta device)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from dragoman.model.attention import MultiHeadAttention

_DRAWS = frozenset(["normal_", "uniform_", "zero_", "fill_"])


def initialise(module: nn.Module) -> None:
    """For `nn.Module.apply`, which calls it for the parts of a model before the whole."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, MultiHeadAttention):
        for matrix in module.key_value.weight.chunk(2):  # W^K and W^V lie in one, but are two
            nn.init.xavier_uniform_(matrix)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)


@contextlib.contextmanager
def blueprint() -> Iterator[None]:
    """Make what is built inside without numbers: no weight is allocated or drawn."""
    with torch.device("meta"), _Undrawn():
        yield


class _Undrawn(TorchFunctionMode):
    """Leaves tensors as they are where they would be initialised. On the meta device that would
    change nothing, and make torch load its compiler first, which takes longer than the model."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call the function, unless it only initialises its first argument."""
        values = kwargs or {}
        if getattr(func, "__module__", "") == "torch.nn.init":
            return args[0] if args else values["tensor"]
        if getattr(func, "__name__", "") in _DRAWS:
            return args[0]
        if func is torch.arange:  # of a table that is computed, not stored
            values = {"device": "cpu", **values}
        return func(*args, **values)
