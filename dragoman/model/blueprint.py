"""A model that has shapes and no numbers, to be filled with weights that are known. Knows torch's
meta device."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_DRAWS = frozenset(["normal_", "uniform_", "zero_", "fill_"])


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
