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
from dragoman.folder.file_lock import taken
from dragoman.training.continued import keep_start

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
    # A run that cannot begin removes its folder, and the lock with it.
    descriptor = taken(folder / layout.LOCK, ModelFolderError(busy))
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


def _names(folder: Path) -> set[str]:
    """The names in a folder; that of an unfinished write is the name of what was to be written."""
    return {files.partial_of(path) or path.name for path in folder.iterdir()}
