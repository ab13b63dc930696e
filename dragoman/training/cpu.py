"""What training on a CPU asks of its process. Knows no model."""

from __future__ import annotations

import ctypes

# The names and numbers of glibc's malloc.h.
M_TRIM_THRESHOLD = -1
M_MMAP_MAX = -4


def prepare_process() -> None:
    """Lets the allocator keep the memory that a step frees, for the next step.

    glibc takes every large tensor from the kernel and gives it straight back, so that each step pays for all of its pages anew.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return
    mallopt(M_MMAP_MAX, 0)
    mallopt(M_TRIM_THRESHOLD, -1)
