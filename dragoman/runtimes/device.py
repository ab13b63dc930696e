"""Which device to compute on, in which precision, and what a CPU's process needs."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import torch

from dragoman.errors import OptionError

_AMD = "AuthenticAMD"
# Of glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4


def pick_device(name: str) -> torch.device:
    """Return the device of this name; `auto` is the GPU where there is one, else the CPU."""
    try:
        device = torch.device(_best_device() if name == "auto" else name)
    except RuntimeError:
        raise OptionError(f"device is '{name}'; it must be auto, cpu, cuda or cuda:N") from None
    if device.type not in ("cpu", "cuda"):
        raise OptionError(f"device is '{name}'; it must be auto, cpu, cuda or cuda:N")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise OptionError(
            f"device is '{name}', and this machine has no GPU that torch can use; use cpu or auto"
        )
    # cuDNN's attention makes a plan for each shape, which takes longer than a step; the other
    # kernels do not.
    torch.backends.cuda.enable_cudnn_sdp(False)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise OptionError(
            f"device is '{name}', and this machine has {torch.cuda.device_count()} GPUs, "
            "counted from 0"
        )
    return device


def _best_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def computes_bfloat16(device: torch.device) -> bool:
    """Return whether bfloat16 is faster than float32.

    Of CPUs it is on those with AMX. With AVX-512's instructions for bfloat16 alone, training is
    faster on AMD's, and was half as fast on Intel's (docs/performance.md).
    """
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    flags = _cpu_flags()
    return "amx_bf16" in flags or flags >= {"avx512_bf16", _AMD}


def multiplies_bytes() -> bool:
    """Return whether the CPU has instructions for products of 8-bit integers."""
    return bool({"avx512_vnni", "avx_vnni", "amx_int8"} & _cpu_flags())


def keep_memory() -> None:
    """Let the allocator keep the memory that a step on the CPU frees, for the next step.

    glibc takes every large tensor from the kernel and gives it straight back, so that each step
    would pay for all of its pages again.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return
    mallopt(_M_MMAP_MAX, 0)
    mallopt(_M_TRIM_THRESHOLD, -1)


@cache
def _cpu_flags() -> frozenset[str]:
    """The instructions that the CPU has, and who made it, in Linux's words."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    told: dict[str, list[str]] = {}
    for line in lines:
        name, _, value = line.partition(":")
        told.setdefault(name.strip(), value.split())
    return frozenset(told.get("flags", []) + told.get("vendor_id", []))
