"""The allocator keeps what a step frees."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

CODE = """
import resource, torch
from dragoman.runtimes.device import keep_memory
keep_memory()
def step():
    return [torch.ones(2**20) for _ in range(8)]  # 4 MiB each: 8,192 pages of 4 KiB in all
for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="another C library has another allocator"
)
def test_later_steps_ask_the_kernel_for_no_pages() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True
    )
    assert int(answer.stdout) < 1000  # without it, most of 81,920
