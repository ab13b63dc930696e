"""A run's claim to its folder: one run trains in a folder at a time, and a new one never overwrites
an old one. Knows the lock and the files with which a run begins; knows no training.

The lock is taken before anything else is written, so that of two runs started at the same moment
one trains and the other is told so.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dragoman.errors import ModelFolderError
from dragoman.folder import files, layout
from dragoman.training.continued import keep_start

try:
    import fcntl
except ImportError:  # Windows has no such lock
    fcntl = None  # type: ignore[assignment]

# What a run leaves in state/ that was killed while it claimed the folder.
_BEGUN = {Path(name).name for name in (layout.LOCK, layout.START, layout.GIVEN)}
# What a run keeps in state/start of the model that it continues.
_START = {
    layout.CONFIG,
    layout.WEIGHTS,
    layout.TOKENIZER,
    layout.SOURCE_TOKENIZER,
    layout.TARGET_TOKENIZER,
    layout.FOREIGN_TOKENIZER,
    layout.GENERATION,
}


@contextmanager
def locked(folder: Path, busy: str = "") -> Iterator[None]:
    """Hold the lock of a folder; the system releases it however a run ends. `busy` is what is said
    where another holds it."""
    busy = busy or f"another run is training in {folder}; wait for it or name another --out"
    descriptor = _take(folder / layout.LOCK, busy)
    try:
        yield
    finally:
        os.close(descriptor)


def claim(folder: Path, given: Mapping[str, Any], continued: Path | None) -> None:
    """Write what a new run begins with. The caller holds the lock."""
    refuse_used(folder)
    if continued is not None:
        given = {**given, "continued": str(continued)}
        keep_start(folder, continued)
    files.write_file(folder / layout.GIVEN, json.dumps(given, indent=1).encode())


def refuse_used(folder: Path) -> None:
    """Refuse a folder that holds a run, or anything else."""
    if (folder / layout.GIVEN).exists():
        raise ModelFolderError(
            f"{folder} already holds a run; continue it with --resume {folder}, "
            "or name another --out"
        )
    if not folder.exists():
        return
    if folder.is_dir():
        state = folder / layout.STATE
        others = _names(folder) - {layout.STATE}
        start = folder / layout.START
        if state.is_dir():
            others |= _names(state) - _BEGUN
        if start.is_dir():
            others |= _names(start) - _START
        if not others:
            return
    raise ModelFolderError(f"{folder} exists and is not empty; name another --out")


def disclaim(folder: Path, existed: bool) -> None:
    """Remove what a run has written that cannot begin, so that the corrected command can be given.
    The caller holds the lock and made all of it."""
    shutil.rmtree(folder / layout.STATE)
    if not existed:
        with suppress(OSError):  # somebody may have put something there since
            folder.rmdir()


def _take(path: Path, busy: str) -> int:
    """The descriptor of the locked file. A run that cannot begin removes its folder, and the lock
    with it: whoever then holds a lock that is no longer there tries again."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
            _lock(descriptor, busy)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    return descriptor
            os.close(descriptor)


def _lock(descriptor: int, busy: str) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise ModelFolderError(busy) from None


def _names(folder: Path) -> set[str]:
    """The names in a folder; that of an unfinished write is the name of what was to be written."""
    return {files.partial_of(path) or path.name for path in folder.iterdir()}
