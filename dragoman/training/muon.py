"""The Muon optimiser (Jordan et al. 2024): each weight matrix moves along its orthogonalised
momentum; all other weights are left to Adam. Knows tensors only.

The momentum of a matrix is replaced by a nearby matrix whose singular values are all about 1, so
that rare directions are learnt as fast as common ones. Five Newton-Schulz iterations do this with
matrix products alone, and all matrices of one shape go through them as one batch.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

# Jordan's coefficients: after five iterations the singular values lie between 0.7 and 1.2.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
# Times the square root of the longer side, an update has entries as large as those of Adam's, so
# that one learning rate serves both.
SCALE = 0.4


@dataclass(frozen=True)
class MuonSettings:
    """What stays the same for a whole run; the learning rate does not."""

    betas: tuple[float, float]  # of Adam, for the weights that are not matrices of layers
    epsilon: float  # of Adam
    momentum: float = 0.95
    weight_decay: float = 0.0


@dataclass(frozen=True)
class Matrix:
    """A weight matrix, and how many independent matrices are stacked in its rows: 2 where the
    projections of keys and values share one."""

    weight: nn.Parameter
    parts: int = 1


class Muon(torch.optim.Optimizer):
    """Muon for `matrices` and Adam for `others`, as one optimiser.

    `param_groups` has both, so that whoever sets the learning rate sets it for both, and `state`
    holds the momentum of the one and the moments of the other.
    """

    def __init__(
        self,
        matrices: Sequence[Matrix],
        others: Sequence[nn.Parameter],
        settings: MuonSettings,
    ) -> None:
        defaults = {
            "lr": 0.0,
            "momentum": settings.momentum,
            "weight_decay": settings.weight_decay,
        }
        super().__init__([{"params": [matrix.weight for matrix in matrices]}], defaults)
        self._matrices = list(matrices)
        self._adam = torch.optim.Adam(
            others, lr=0.0, betas=settings.betas, eps=settings.epsilon, fused=True
        )
        self.param_groups += self._adam.param_groups
        self._adam.state = self.state

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Moves every weight that has a gradient."""
        self._adam.step()
        matrices = [matrix for matrix in self._matrices if matrix.weight.grad is not None]
        if not matrices:
            return
        group = self.param_groups[0]
        directions = self._directions([matrix.weight for matrix in matrices], group["momentum"])
        if group["weight_decay"]:
            kept = 1 - group["lr"] * group["weight_decay"]
            torch._foreach_mul_([matrix.weight for matrix in matrices], kept)
        for longer_side, stack in _by_shape(matrices, directions).items():
            _move(stack, group["lr"] * SCALE * math.sqrt(longer_side[1]))

    def _directions(self, weights: Sequence[nn.Parameter], momentum: float) -> Sequence[Tensor]:
        """Updates the momentum of each weight and returns Nesterov's look-ahead of it."""
        for weight in weights:
            if "momentum" not in self.state[weight]:
                self.state[weight]["momentum"] = torch.zeros_like(weight)
        # Only weights with a gradient come here.
        gradients = cast(list[Tensor], [weight.grad for weight in weights])
        averages = [self.state[weight]["momentum"] for weight in weights]
        torch._foreach_lerp_(averages, gradients, 1 - momentum)
        return torch._foreach_lerp(gradients, averages, momentum)


@dataclass(frozen=True)
class _Part:
    """One matrix lying down (rows <= columns), and the direction in which it is to move."""

    weight: Tensor
    direction: Tensor


def _by_shape(
    matrices: Sequence[Matrix], directions: Sequence[Tensor]
) -> dict[tuple[int, int], list[_Part]]:
    """The parts of all matrices by (shorter side, longer side); tall ones are transposed."""
    stacks: dict[tuple[int, int], list[_Part]] = defaultdict(list)
    for matrix, direction in zip(matrices, directions, strict=True):
        weights = matrix.weight.chunk(matrix.parts)
        for weight, towards in zip(weights, direction.chunk(matrix.parts), strict=True):
            rows, columns = weight.shape
            if rows <= columns:
                stacks[rows, columns].append(_Part(weight, towards))
            else:
                stacks[columns, rows].append(_Part(weight.mT, towards.mT))
    return stacks


def _move(stack: Sequence[_Part], rate: float) -> None:
    """Moves matrices of one shape against their orthogonalised directions, in place."""
    updates = orthogonalised(torch.stack([part.direction for part in stack]))
    weights = [part.weight for part in stack]
    torch._foreach_add_(weights, list(updates.to(weights[0].dtype).unbind()), alpha=-rate)


def orthogonalised(matrices: Tensor) -> Tensor:
    """Brings the singular values of matrices (N, rows, columns) close to 1.

    On a GPU this is computed in bfloat16, which is exact enough.
    """
    is_tall = matrices.size(-2) > matrices.size(-1)
    x = matrices.mT if is_tall else matrices
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-12)
    if x.is_cuda:
        x = x.bfloat16()
    first, third, fifth = COEFFICIENTS
    for _ in range(ITERATIONS):
        square = x @ x.mT
        polynomial = torch.baddbmm(square, square, square, beta=third, alpha=fifth)
        x = torch.baddbmm(x, polynomial, x, beta=first)
    return x.mT if is_tall else x
