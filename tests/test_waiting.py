"""How OpenMP's threads wait: asleep, unless the user said otherwise, and settled before torch is
loaded."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in WAITING}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=True,
    )


SHOW = f"import os; print([os.environ.get(name) for name in {WAITING}])"


def test_threads_sleep_by_default() -> None:
    assert python(f"import dragoman; {SHOW}").stdout == "['passive', None, None, None]\n"


@pytest.mark.parametrize("name", WAITING)
def test_what_the_user_set_stays(name: str) -> None:
    before = python(SHOW, **{name: "1"}).stdout
    assert python(f"import dragoman; {SHOW}", **{name: "1"}).stdout == before


def test_too_late_changes_nothing() -> None:
    """torch has read its settings by then; other programs that this one starts need not."""
    assert python(f"import torch, dragoman; {SHOW}").stdout == "[None, None, None, None]\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the OpenMP of other systems prints otherwise")
@pytest.mark.parametrize("door", ["dragoman.cli.main", "dragoman.training.run"])
def test_torch_reads_it(door: str) -> None:
    """OpenMP prints what it has read when it is loaded: how often a thread looks before it
    sleeps."""
    said = python(f"import {door}, torch", OMP_DISPLAY_ENV="verbose").stderr
    if "GOMP_SPINCOUNT" not in said:
        pytest.skip("this torch has another OpenMP than GCC's")
    assert "GOMP_SPINCOUNT = '0'" in said
