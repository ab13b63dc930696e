"""Captured CUDA graphs: work that is recorded once and then starts with one launch, and a cache of
what was captured for each shape. Knows no model.

A graph works on the same memory each time. What it reads is copied to where it was captured, and
what it writes is found there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar

import torch

Value = TypeVar("Value")
Work = Callable[[], None]


class Graph(Protocol):
    """Work that was recorded and can be done again."""

    def replay(self) -> None: ...


Capture = Callable[[Work], Graph]


class GpuCapture:
    """Records work on a GPU. Of its graphs one runs at a time, so all of them share their memory.

    `warm_up` does the work once before it is recorded, which makes the libraries ready.
    """

    def __init__(self, warm_up: bool = True) -> None:
        self._warm_up = warm_up
        self._pool: Any = None

    def __call__(self, work: Work) -> Graph:
        if self._warm_up:
            _run_aside(work)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            work()
        self._pool = graph.pool()
        return graph

    def forget(self) -> None:
        """Let the memory go with the last graph that uses it."""
        self._pool = None


class GraphCache(Generic[Value]):
    """What was captured, by its shape or another key.

    There are at most `most` values, and none is added while it is crowded: those that were used
    longest ago make way.
    """

    def __init__(self, most: int, crowded: Callable[[], bool] | None = None) -> None:
        self._most = most
        self._crowded = crowded
        self._values: OrderedDict[Hashable, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    @property
    def full(self) -> bool:
        """Whether another key would push a value out."""
        crowded = self._crowded is not None and self._crowded()
        return len(self) >= self._most or crowded

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of this key, made if it is not there."""
        if key not in self._values:
            while self._values and self.full:
                self._values.popitem(last=False)
            self._values[key] = make()
        self._values.move_to_end(key)
        return self._values[key]

    def clear(self) -> None:
        """Let all values go."""
        self._values.clear()


class MemoryLimit:
    """Is crowded once graphs take more than a share of the GPU's memory, counted from now."""

    def __init__(self, device: torch.device, share: float) -> None:
        self._device = device
        self._share = share
        self._before = self._allocated()

    def __call__(self) -> bool:
        if self._device.type != "cuda":
            return False
        whole = torch.cuda.get_device_properties(self._device).total_memory
        return self._allocated() - self._before > self._share * whole

    def _allocated(self) -> int:
        on_gpu = self._device.type == "cuda"
        return torch.cuda.memory_allocated(self._device) if on_gpu else 0


def _run_aside(work: Work) -> None:
    """On a stream of its own, as torch asks for before a capture."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()
    torch.cuda.current_stream().wait_stream(stream)
