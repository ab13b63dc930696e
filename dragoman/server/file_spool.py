"""Files that wait to be fetched from any process of the service: each in a file of its own, under
the hash of its token. Knows bytes and names; nothing of documents and HTTP.

The process that put a file removes it in time; what one leaves that dies is removed by the next
that puts a file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from dataclasses import asdict, replace
from pathlib import Path

from dragoman.folder.files import read_bounded, write_file
from dragoman.server.stored_files import SECONDS, StoredFile

_MOST = 2**28  # bytes


class FileSpool:
    """A folder of stored files: a line of JSON each, and then the bytes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, token: str) -> bool:
        """Return whether there is a file of this token."""
        return self._path(token).exists()

    def get(self, token: str) -> StoredFile | None:
        """Return the file of a token; None if there is none, or none any more."""
        try:
            content = read_bounded(self._path(token), _MOST)
        except FileNotFoundError:
            return None
        head, _, data = content.partition(b"\n")
        values = json.loads(head)
        is_done = values.pop("is_done")
        if not is_done and not values["problem"] and not _is_alive(values["process"]):
            values["problem"] = "the server stopped while it translated this; send it again"
        return StoredFile(**values, data=data if is_done else None)

    def put(self, file: StoredFile) -> None:
        """Keep a file, or what has become of it."""
        values = asdict(replace(file, data=None))
        del values["data"]
        values["is_done"] = file.data is not None
        head = json.dumps(values).encode()
        self._sweep()
        write_file(self._path(file.token), head + b"\n" + (file.data or b""))

    def remove(self, token: str) -> None:
        """Forget a file."""
        self._path(token).unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove files that nobody can fetch any more."""
        oldest = time.time() - SECONDS
        for path in self._folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def _path(self, token: str) -> Path:
        # A token comes from outside: its hash is a name that leads nowhere else.
        return self._folder / hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _is_alive(process: int) -> bool:
    """Whether a process of this service runs. They all belong to one user: a number that is now
    another user's was that of one that has ended."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
