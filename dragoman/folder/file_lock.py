"""A lock that one process of all machines that share a disk can hold, and that the system releases
however the process ends. Knows a file; nothing of what is locked."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no such lock
    fcntl = None  # type: ignore[assignment]

_CANNOT = (errno.ENOSYS, errno.ENOTSUP)  # of a network's disk without locks: everybody may go on


@contextmanager
def held(path: Path, busy: Exception) -> Iterator[None]:
    """Hold a lock whose file is there only meanwhile; `busy` is raised where another holds it."""
    descriptor = taken(path, busy)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # first: whoever gets it after this sees that it is gone
        os.close(descriptor)


def taken(path: Path, busy: Exception) -> int:
    """Return the descriptor of a locked file, to be closed by the caller. Who held it before may
    have removed it: whoever then holds a lock that is no longer there tries again."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
            _lock(descriptor, busy)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    return descriptor
            os.close(descriptor)


def _lock(descriptor: int, busy: Exception) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise busy from None
    except OSError as error:
        if error.errno not in _CANNOT:
            os.close(descriptor)
            raise
