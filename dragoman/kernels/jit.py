"""Triton, where kernels can run. It comes with torch for GPUs; everywhere else the plain twin of
each kernel does the work, and Triton is not even imported. Knows no kernel.

With TRITON_INTERPRET=1 in the environment, Triton runs kernels on a CPU, one operation at a time.
That is how the tests compare them with their twins where there is no GPU.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"

try:
    if not (INTERPRETED or torch.version.cuda or torch.version.hip):
        raise ImportError
    import triton
    import triton.language as tl
except ImportError:
    triton = None
    tl = None

HAS_TRITON = triton is not None
__all__ = ["HAS_TRITON", "INTERPRETED", "has_triton", "jit", "next_power_of_2", "precision", "tl"]


def jit(function: Any) -> Any:
    """`triton.jit`; without Triton a kernel stays as it is, and nobody launches it."""
    return triton.jit(function) if HAS_TRITON else function


def has_triton(device: torch.device) -> bool:
    """Whether kernels can be launched for tensors on this device."""
    return HAS_TRITON and device.type == "cuda"


def next_power_of_2(number: int) -> int:
    """The smallest power of two that is at least `number`."""
    return 1 << (number - 1).bit_length()


def precision(x: Tensor) -> str:
    """How `tl.dot` multiplies numbers like these: float32 exactly, others as fast as it can."""
    return "ieee" if x.dtype == torch.float32 else "tf32"
