"""How many processes work on each device. Knows what this machine has; nothing of what is computed.

Python prepares and joins text in one thread, which takes a fast GPU longer than the search itself:
several processes share a GPU, so that it computes for one while others prepare. A CPU has one
process for each core, since a search on one core waits for nobody.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from dragoman.errors import OptionError

PROCESSES_PER_GPU = 6
_GPU_BYTES = 16 * 2**30  # what a process takes of a GPU: its model, its caches and its graphs
_BYTES = 2**30  # what a process takes of a machine's memory


def shares(device: str, processes: int = 0) -> list[str]:
    """The device of each process; the first ones are spread over all devices.

    `device` is auto (all GPUs, else the CPU), cpu, cuda, cuda:N, or several with commas;
    `processes` is how many to start for each of them, 0 for as many as suit it.
    """
    if processes < 0:
        raise OptionError(f"processes is {processes}; it must be 0 (automatic) or more")
    devices = _devices(device)
    counts = [processes or _suitable(one, devices) for one in devices]
    rows = [[one] * count for one, count in zip(devices, counts, strict=True)]
    return [one for turn in zip_longest(*rows) for one in turn if one is not None]


def is_gpu(device: str) -> bool:
    """Whether the name is that of a GPU."""
    return device.startswith("cuda")


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def free_memory() -> int:
    """The bytes of memory that processes can still take; a lot where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return 2**50
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return 1024 * int(found[0]) if found else 2**50


def _devices(device: str) -> list[str]:
    if device not in ("auto", "cuda"):
        return device.split(",")
    import torch

    gpus = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    return gpus or ["cpu" if device == "auto" else device]


def _suitable(device: str, devices: Sequence[str]) -> int:
    """So many processes that each has a core and its memory, and on a GPU its share of that."""
    affordable = min(cores(), free_memory() // _BYTES) // len(devices)
    if is_gpu(device):
        affordable = min(PROCESSES_PER_GPU, affordable, _memory(device) // _GPU_BYTES)
    return max(1, affordable)


def _memory(device: str) -> int:
    """The bytes of a GPU; 0 where there is none of this name, which its process will say."""
    import torch

    number = int(device.partition(":")[2] or 0) if device.partition(":")[2].isdigit() else 0
    if number >= torch.cuda.device_count():
        return 0
    return int(torch.cuda.get_device_properties(number).total_memory)
