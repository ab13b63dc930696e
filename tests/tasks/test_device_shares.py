"""How many processes a device has, and how several of them come to compute on one GPU at once."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from dragoman.errors import OptionError
from dragoman.tasks import device_shares, shared_gpu
from dragoman.tasks.device_shares import free_memory, shares
from dragoman.tasks.shared_gpu import side_by_side


def test_a_cpu_has_a_process_for_each_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_shares, "cores", lambda: 5)
    monkeypatch.setattr(device_shares, "free_memory", lambda: 2**40)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert shares("cpu") == shares("auto") == ["cpu"] * 5
    assert shares("cpu", 2) == ["cpu", "cpu"]
    with pytest.raises(OptionError, match="processes is -1"):
        shares("cpu", -1)


def test_the_memory_of_this_machine() -> None:
    assert 2**20 < free_memory() < 2**45


def test_no_more_processes_than_there_is_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_shares, "cores", lambda: 64)
    monkeypatch.setattr(device_shares, "free_memory", lambda: 10 * 2**30)
    assert shares("cpu") == ["cpu"] * 10


@pytest.mark.parametrize(
    ("gigabytes", "cores", "expected"), [(139, 16, 6), (139, 8, 4), (40, 64, 2), (8, 64, 1)]
)
def test_a_gpu_has_as_many_as_it_has_cores_and_memory_for(
    monkeypatch: pytest.MonkeyPatch, gigabytes: int, cores: int, expected: int
) -> None:
    facts = SimpleNamespace(total_memory=gigabytes * 2**30)
    monkeypatch.setattr(device_shares, "cores", lambda: cores)
    monkeypatch.setattr(device_shares, "free_memory", lambda: 2**40)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: facts)
    assert shares("auto") == shares("cuda") == ["cuda:0", "cuda:1"] * expected
    assert shares("cuda:1") == ["cuda:1"] * min(6, cores, max(1, gigabytes // 16))
    assert shares("cuda:0,cpu", 1) == ["cuda:0", "cpu"]


@pytest.fixture
def control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that notes how it is called, in the place of NVIDIA's; the file of its notes."""
    notes = tmp_path / "notes"
    program = tmp_path / "bin" / "nvidia-cuda-mps-control"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "called $1 $CUDA_MPS_PIPE_DIRECTORY" >> {notes}\n'
        f'[ "$1" ] || cat >> {notes}\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    monkeypatch.setattr(shared_gpu, "_USUAL_PIPES", tmp_path / "none")
    monkeypatch.setattr(shared_gpu, "_TRIAL", "pass")
    return notes


def test_processes_of_one_gpu_share_it_while_they_run(control: Path) -> None:
    with side_by_side(["cuda:0", "cuda:0"]) as shared:
        assert shared
        folder = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
        assert Path(folder).is_dir()
    assert control.read_text(encoding="utf-8").splitlines() == [
        f"called -d {folder}",
        f"called  {folder}",
        "quit",
    ]
    assert "CUDA_MPS_PIPE_DIRECTORY" not in os.environ
    assert not Path(folder).exists()


def test_where_it_does_not_work_nothing_changes(
    control: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_gpu, "_TRIAL", "raise SystemExit(1)")
    with side_by_side(["cuda:0", "cuda:0"]) as shared:
        assert not shared
        assert "CUDA_MPS_PIPE_DIRECTORY" not in os.environ
    assert control.read_text(encoding="utf-8").splitlines()[-1] == "quit"


@pytest.mark.parametrize("devices", [["cpu", "cpu"], ["cuda:0"], ["cuda:0", "cuda:1"]])
def test_what_shares_no_gpu_needs_no_service(control: Path, devices: list[str]) -> None:
    with side_by_side(devices) as shared:
        assert not shared
    assert not control.exists()


def test_a_service_of_the_system_is_left_to_itself(
    control: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", "/somewhere")
    with side_by_side(["cuda:0", "cuda:0"]) as shared:
        assert shared
        assert os.environ["CUDA_MPS_PIPE_DIRECTORY"] == "/somewhere"
    assert os.environ["CUDA_MPS_PIPE_DIRECTORY"] == "/somewhere"
    assert not control.exists()
