"""What the processes of one service have in common, in a folder that only they see. Knows names of
files, and makes and removes the folder; what is in the files is known to their owners."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

METRICS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # by which prometheus-client knows the folder


@dataclass(frozen=True)
class SharedFolder:
    """The folder of a service with several processes."""

    path: Path

    @property
    def counts(self) -> Path:
        """How much each client has asked for."""
        return self.path / "counts.sqlite"

    @property
    def files(self) -> Path:
        """Translated files that wait to be fetched."""
        return self.path / "files"

    @property
    def glossaries(self) -> Path:
        """The glossaries of clients, where no file is named for them."""
        return self.path / "glossaries.json"

    @property
    def figures(self) -> Path:
        """The figures of each process, for Prometheus."""
        return self.path / "figures"


@contextmanager
def shared_folder() -> Iterator[SharedFolder]:
    """Make a folder that only this user can read, and remove it at the end."""
    path = Path(tempfile.mkdtemp(prefix="dragoman-serve-"))
    try:
        shared = SharedFolder(path)
        shared.files.mkdir()
        shared.figures.mkdir()
        os.environ[METRICS_VARIABLE] = str(shared.figures)
        yield shared
    finally:
        os.environ.pop(METRICS_VARIABLE, None)
        shutil.rmtree(path, ignore_errors=True)
