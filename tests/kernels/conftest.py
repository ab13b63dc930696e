"""Where kernels run: on a GPU, or on a CPU through Triton's interpreter."""

from __future__ import annotations

import pytest
import torch

from dragoman.kernels.jit import HAS_TRITON, INTERPRETED


@pytest.fixture
def device() -> torch.device:
    """The device on which a test launches kernels."""
    if torch.cuda.is_available() and HAS_TRITON:
        return torch.device("cuda")
    if not INTERPRETED:
        pytest.skip("needs a GPU with Triton, or TRITON_INTERPRET=1, which `make test` sets")
    if not HAS_TRITON:
        pytest.skip("Triton is not installed; there is a wheel of it for Linux on x86-64 alone")
    return torch.device("cpu")


@pytest.fixture(params=["single", "half"])
def dtype(request: pytest.FixtureRequest, device: torch.device) -> torch.dtype:
    """float32, and bfloat16; in its place float16 where `tl.dot` is interpreted, which takes
    bfloat16 for integers."""
    if request.param == "single":
        return torch.float32
    return torch.bfloat16 if device.type == "cuda" else torch.float16
