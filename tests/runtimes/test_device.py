"""The allocator keeps what a step frees; bfloat16 is chosen where it is the faster one."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dragoman.runtimes import device

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


CPUINFO = """processor\t: 0
vendor_id\t: {vendor}
flags\t\t: fpu avx512f {flags}

processor\t: 1
vendor_id\t: {vendor}
flags\t\t: fpu avx512f {flags}
"""


@pytest.mark.parametrize(
    ("vendor", "flags", "is_faster"),
    [
        ("AuthenticAMD", "avx512_bf16 avx512_vnni", True),
        ("AuthenticAMD", "avx512_vnni", False),
        ("GenuineIntel", "avx512_bf16", False),
        ("GenuineIntel", "avx512_bf16 amx_bf16", True),
    ],
)
def test_bfloat16_is_for_cpus_that_gain(
    vendor: str, flags: str, is_faster: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Path, "read_text", lambda *_, **__: CPUINFO.format(vendor=vendor, flags=flags)
    )
    monkeypatch.setattr(device, "_cpu_flags", device._cpu_flags.__wrapped__)
    assert device.computes_bfloat16(torch.device("cpu")) == is_faster
    assert device.multiplies_bytes() == ("avx512_vnni" in flags)


def test_a_cpu_that_says_nothing_computes_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "")
    monkeypatch.setattr(device, "_cpu_flags", device._cpu_flags.__wrapped__)
    assert not device.computes_bfloat16(torch.device("cpu"))
