"""The folder of a run on machines that do not see it: the main process sends them what they read.
Knows processes and files; knows no training.

A machine that mounts the folder reads it there. On any other, one process receives the prepared
text, the tokeniser and the latest checkpoint into a temporary folder, which is removed at the end,
also where the process is killed. Only the main process writes to the folder itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

from dragoman.folder import layout
from dragoman.folder.files import space_for
from dragoman.folder.training_state import needed_by_all
from dragoman.training.distributed import World

_CHUNK = 2**24  # bytes that travel at a time
# Removes a folder when whoever holds the other end of its input has ended, in whatever way.
_REMOVER = "import shutil, sys; sys.stdin.read(); shutil.rmtree(sys.argv[1], ignore_errors=True)"


@dataclass(frozen=True)
class _Blind:
    """The processes that do not see the folder: for each of them, the one of its machine that
    receives it."""

    receiver_of: dict[int, int]

    @property
    def receivers(self) -> list[int]:
        return sorted(set(self.receiver_of.values()))


@contextlib.contextmanager
def seen_by_all(folder: Path, world: World, say: Callable[[str], None]) -> Iterator[Path]:
    """The folder, or a copy of what training reads of it where this machine does not see it."""
    if world.size == 1:
        yield folder
        return
    blind = _find_blind(folder, world)
    if not blind.receivers:
        yield folder
        return
    with contextlib.ExitStack() as kept:
        own = ""
        if world.rank in blind.receivers:
            own = kept.enter_context(temporary_folder())
        places = world.each(own)
        sent = _send(folder, Path(own), world, blind.receivers)
        if world.main:
            machines = (
                "1 machine" if len(blind.receivers) == 1 else f"{len(blind.receivers)} machines"
            )
            say(f"sent {sent / 1e6:,.1f} MB to {machines} without access to {folder}")
        world.wait()
        receiver = blind.receiver_of.get(world.rank)
        yield folder if receiver is None else Path(places[receiver])
        world.wait()  # nobody removes what another still reads


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder of this process. Another one removes it at the end, since a process that is killed
    removes nothing."""
    own = tempfile.mkdtemp(prefix="dragoman-")
    remover = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _REMOVER, own],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # signals to the group of this process are not for it
    )
    try:
        yield own
    finally:
        remover.communicate()


def _find_blind(folder: Path, world: World) -> _Blind:
    """Who does not see a file that the main process has just made: a new name is known to no
    cache, and cannot be in a folder that happens to be called the same."""
    made = ""
    if world.main:
        descriptor, made = tempfile.mkstemp(prefix=".seen-", dir=folder / layout.STATE)
        os.close(descriptor)
    try:
        name = Path(world.each(Path(made).name)[0])
        sees = (folder / layout.STATE / name).exists()
        machine = os.environ.get("GROUP_RANK", "0")
        answers = world.each(f"{int(sees)} {machine}")
    finally:
        if made:
            os.unlink(made)
    return _Blind(_receivers(answers))


def _receivers(answers: list[str]) -> dict[int, int]:
    """For each process that sees nothing, the first such process of its machine."""
    first: dict[str, int] = {}
    receivers = {}
    for rank, answer in enumerate(answers):
        sees, machine = answer.split()
        if sees == "0":
            receivers[rank] = first.setdefault(machine, rank)
    return receivers


def _send(folder: Path, own: Path, world: World, receivers: list[int]) -> int:
    """Send the files from the main process to the receivers; return how many bytes they have."""
    group = dist.new_group([0, *receivers])
    if world.rank not in (0, *receivers):
        return 0
    line = _Line(world, group)
    names = [str(path) for path in needed_by_all(folder)] if world.main else []
    names = json.loads(line.text(json.dumps(names)))
    if world.main:
        return sum(line.send(folder / name) for name in names)
    with space_for(own):
        return sum(line.receive(own / name) for name in names)


class _Line:
    """What connects the main process with those that receive."""

    def __init__(self, world: World, group: dist.ProcessGroup | None) -> None:
        self._world = world
        self._group = group

    def text(self, text: str) -> str:
        """The text of the main process, in all."""
        content = text.encode()
        size = self._number(len(content))
        return self._bytes(content, size).decode()

    def send(self, path: Path) -> int:
        """Send a file; return its size."""
        size = self._number(path.stat().st_size)
        with open(path, "rb") as file:
            for start in range(0, size, _CHUNK):
                length = min(_CHUNK, size - start)
                self._bytes(file.read(length), length)
        return size

    def receive(self, path: Path) -> int:
        """Write a file that comes; return its size."""
        path.parent.mkdir(parents=True, exist_ok=True)
        size = self._number(0)
        with open(path, "wb") as file:
            for start in range(0, size, _CHUNK):
                file.write(self._bytes(b"", min(_CHUNK, size - start)))
        return size

    def _number(self, value: int) -> int:
        box = torch.tensor([value], device=self._world.device)
        dist.broadcast(box, 0, self._group)
        return int(box.item())

    def _bytes(self, content: bytes, size: int) -> bytes:
        if self._world.main:
            box = torch.frombuffer(bytearray(content), dtype=torch.uint8).to(self._world.device)
        else:
            box = torch.empty(size, dtype=torch.uint8, device=self._world.device)
        dist.broadcast(box, 0, self._group)
        return box.cpu().numpy().tobytes()
