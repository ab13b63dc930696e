"""Graphs for tests on a CPU that behave as captured ones do on a GPU: the operations are recorded
once, with the memory on which they work, and a replay does them again there. What a Python number
was when it was recorded, it stays; and what would make a GPU wait for the host is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

ATEN = torch.ops.aten
# They return a number to the host, or a tensor whose size only the host can know.
WAITING = {
    ATEN._local_scalar_dense.default,
    ATEN.item.default,
    ATEN.equal.default,
    ATEN.nonzero.default,
    ATEN.masked_select.default,
    ATEN._unique2.default,
}
PICKING = {ATEN.index.Tensor, ATEN.index_put_.default, ATEN.index_put.default}
Operation = tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any], list[Tensor]]


class Recorded:
    """Work as it was done once; it is the first replay as well."""

    def __init__(self, work: Callable[[], None]) -> None:
        work()  # to warm up, as on a GPU
        self._operations: list[Operation] = []
        with _Recorder(self._operations):
            work()

    def replay(self) -> None:
        """Do the same operations on the same memory."""
        for operation, given, named, results in self._operations:
            again = _tensors(operation(*given, **named))
            for kept, new in zip(results, again, strict=True):
                if kept is not new:
                    kept.copy_(new)


class _Recorder(TorchDispatchMode):
    def __init__(self, operations: list[Operation]) -> None:
        super().__init__()
        self._operations = operations

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        named = kwargs or {}
        assert func not in WAITING, f"{func} cannot be captured: the host would have to wait"
        for index in _tensors(args[1:2]) if func in PICKING else ():
            assert index.dtype != torch.bool, "the size of what a mask picks is not known"
        result = func(*args, **named)
        places = {tensor.untyped_storage().data_ptr() for tensor in _tensors((args, named))}
        results = _tensors(result)
        is_view = all(one.untyped_storage().data_ptr() in places for one in results)
        changes = any(
            argument.alias_info and argument.alias_info.is_write
            for argument in func._schema.arguments
        )
        if changes or not is_view:
            self._operations.append((func, args, dict(named), results))
        return result


def _tensors(values: Any) -> list[Tensor]:
    return [one for one in tree_leaves(values) if isinstance(one, Tensor)]
