"""Which device to compute on, in which precision it is at its best, and what a CPU's process
needs."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import torch

from dragoman.errors import OptionError

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # of glibc's malloc.h


def pick_device(name: str) -> torch.device:
    """`auto` is the GPU where there is one, else the CPU."""
    try:
        device = torch.device(
            ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name
        )
    except RuntimeError:
        raise OptionError(f"device is '{name}'; it must be auto, cpu, cuda or cuda:N") from None
    if device.type not in ("cpu", "cuda"):
        raise OptionError(f"device is '{name}'; it must be auto, cpu, cuda or cuda:N")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise OptionError(
            f"device is '{name}', and this machine has no GPU that torch can use; name cpu or auto"
        )
    # cuDNN's attention plans anew for each shape, which takes longer than a step; the other kernels
    # do not.
    torch.backends.cuda.enable_cudnn_sdp(False)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise OptionError(
            f"device is '{name}', "
            f"and this machine has {torch.cuda.device_count()} GPUs, counted from 0"
        )
    return device


def computes_bfloat16(device: torch.device) -> bool:
    """True where bfloat16 has instructions of its own; elsewhere it is emulated, and slower than
    float32."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    return bool({"avx512_bf16", "amx_bf16"} & _cpu_flags())


def keep_memory() -> None:
    """Lets the allocator keep the memory that a step on the CPU frees, for the next step.

    glibc takes every large tensor from the kernel and gives it straight back, so that each step
    pays for all of its pages anew.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return
    mallopt(_M_MMAP_MAX, 0)
    mallopt(_M_TRIM_THRESHOLD, -1)


@cache
def _cpu_flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line for line in lines if line.startswith("flags")), "").split())
