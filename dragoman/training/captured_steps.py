"""Forward and backward pass of a packed batch as one launch: a CUDA graph for each shape. Knows no
optimiser and no text.

A step of a base model is a thousand kernels; issuing them one by one takes a CPU longer than
computing them takes a GPU. A graph leaves its gradients where it was captured to, so that a part
which is a whole batch needs none of them added or cleared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dragoman.data.batches import PackedBatch
from dragoman.kernels.graphs import GpuCapture, Graph, GraphCache

MOST = 32  # graphs; shapes that come after them are computed kernel by kernel


@dataclass(frozen=True)
class _Captured:
    graph: Graph
    batch: PackedBatch  # what the graph reads
    sums: Tensor  # what it writes
    gradients: list[Tensor]


class Graphs:
    """Calls the module and its backward pass; gradients are added to those that are there."""

    def __init__(
        self,
        module: nn.Module,
        device: torch.device,
        autocast: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._module = module
        self._device = device
        self._autocast = autocast
        self._seen: set[tuple[int, ...]] = set()
        self._captured: GraphCache[_Captured] = GraphCache(MOST)
        self._capture = GpuCapture(warm_up=False)  # the first batch of a shape does that
        self._scale = torch.ones((), device=device)
        self._parameters = list(module.parameters())

    def __call__(self, part: PackedBatch, scale: float, alone: bool) -> Tensor:
        """Adds the gradients of `scale` times the loss of a part.

        If it is `alone`, it is the whole of a batch. Returns the sums of its smoothed and its plain
        loss, (2,).
        """
        self._scale.fill_(scale)
        shape = (*(len(tensor) for tensor in part.tensors()), part.longest)
        if not self._may_capture(shape):
            self._seen.add(shape)
            return self._work(part.to(self._device))
        captured = self._captured.get(shape, lambda: self._record(part.to(self._device)))
        for memory, tensor in zip(captured.batch.tensors(), part.tensors(), strict=True):
            memory.copy_(tensor.pin_memory(), non_blocking=True)
        captured.graph.replay()
        self._hand_over(captured.gradients, alone)
        return captured.sums

    def forget(self) -> None:
        """Gives the graphs' memory back."""
        self._captured.clear()
        self._capture.forget()

    def _may_capture(self, shape: tuple[int, ...]) -> bool:
        if shape in self._captured:
            return True
        # The first time compiles and plans, which cannot be captured.
        return shape in self._seen and not self._captured.full

    def _record(self, batch: PackedBatch) -> _Captured:
        before = [parameter.grad for parameter in self._parameters]
        self._put(None for _ in before)
        sums: list[Tensor] = []
        graph = self._capture(lambda: sums.append(self._work(batch)))
        gradients = [parameter.grad for parameter in self._parameters]
        self._put(before)
        return _Captured(graph, batch, sums[0], gradients)  # type: ignore[arg-type]

    def _hand_over(self, gradients: list[Tensor], alone: bool) -> None:
        if self._parameters[0].grad is not None:
            sums = [parameter.grad for parameter in self._parameters]
            torch._foreach_add_(sums, gradients)  # type: ignore[arg-type]
        else:  # the next part would write over what this one has found
            self._put(gradients if alone else [gradient.clone() for gradient in gradients])

    def _put(self, gradients: Iterable[Tensor | None]) -> None:
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient

    def _work(self, batch: PackedBatch) -> Tensor:
        with self._autocast():
            smoothed, plain = self._module(batch)
            (smoothed * self._scale).backward()
        return torch.stack((smoothed.detach(), plain))
