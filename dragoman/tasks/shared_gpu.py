"""Lets several processes compute on one NVIDIA GPU at the same time, where the system allows it.

Without NVIDIA's Multi-Process Service (MPS) the kernels of several processes take turns on a GPU.
A service of our own is started for the processes of one command, with pipes in a folder of our own,
and ended with them. Whether it works is tried first: where it does not, as in many containers,
everything runs as before, in turns.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from dragoman.runtimes.runtime import Runtime
from dragoman.tasks.device_shares import is_gpu

_CONTROL = "nvidia-cuda-mps-control"
_PIPES = "CUDA_MPS_PIPE_DIRECTORY"
_LOGS = "CUDA_MPS_LOG_DIRECTORY"
_USUAL_PIPES = Path("/tmp/nvidia-mps")  # where a service of the system itself has them
_TRIAL = "import torch; print(torch.ones(2, device='cuda').sum().item())"
_PATIENCE = 60  # seconds


@contextmanager
def side_by_side(devices: Sequence[str]) -> Iterator[bool]:
    """Let processes that are started inside this block share their GPUs, if any device is named
    more than once; yields whether they do. Outside nothing is changed."""
    gpus = Counter(device for device in devices if is_gpu(device))
    is_wanted = any(count > 1 for count in gpus.values())
    is_there = _PIPES in os.environ or _USUAL_PIPES.exists()
    control = shutil.which(_CONTROL)
    if not is_wanted or is_there or control is None:
        yield is_there
        return
    with TemporaryDirectory(prefix="dragoman-mps-") as folder:
        places = {_PIPES: folder, _LOGS: folder}
        environment = {**os.environ, **places}
        try:
            works = _started(control, environment)
            if works:
                os.environ.update(places)
            yield works
        finally:
            for name in places:
                os.environ.pop(name, None)
            _stop(control, environment)


def take_smaller_batches(runtime: Runtime) -> None:
    """Let a runtime leave room on its GPU for other processes; with half of what it would take
    alone, six of them took 89 GB."""
    from dragoman.runtimes.torch_runtime import TorchRuntime

    if isinstance(runtime, TorchRuntime):
        runtime.batch_tokens //= 2


def _started(control: str, environment: dict[str, str]) -> bool:
    """Start the service; whether another process can compute with it."""
    for words in ([control, "-d"], [sys.executable, "-c", _TRIAL]):
        try:
            subprocess.run(
                words, env=environment, capture_output=True, timeout=_PATIENCE, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return False
    return True


def _stop(control: str, environment: dict[str, str]) -> None:
    try:
        subprocess.run(
            [control], env=environment, input=b"quit\n", capture_output=True, timeout=_PATIENCE
        )
    except (OSError, subprocess.SubprocessError):
        return
