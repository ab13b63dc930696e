"""Files of tables, on a disk or behind an address that fsspec knows (s3://, gs://, memory://):
found, read and written aside. Knows bytes and names; nothing of rows.

A file appears under its name at once and whole. What killed processes leave is hidden, and is
removed when the job is finished.
"""

from __future__ import annotations

import glob
import os
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any

from dragoman.errors import InputError, MissingDependencyError, OptionError
from dragoman.folder.file_lock import held
from dragoman.folder.files import aside, check_regular, partial_of, remove_unfinished

_ADDRESS = "://"
_LOCK = ".lock"
_UNFINISHED = ".unfinished"  # behind an address: what is not renamed yet
# What stores call that which changes with a file, the most certain first.
_STAMPS = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "updated")


def is_address(place: str) -> bool:
    """Whether a place is not on this machine's disks."""
    return _ADDRESS in place


def found(patterns: Sequence[str]) -> list[str]:
    """The files that names and patterns stand for, each once, in order."""
    files: dict[str, None] = {}
    for pattern in patterns:
        matches = _matches(pattern)
        if not matches:
            raise InputError(f"there is no file {pattern}; name files, or a pattern such as in/*")
        files.update(dict.fromkeys(matches))
    return list(files)


def opened(file: str) -> IO[bytes]:
    """A file to read from."""
    if is_address(file):
        filesystem, path = _filesystem(file)
        stream: IO[bytes] = filesystem.open(path, "rb")
        return stream
    check_regular(Path(file))
    return open(file, "rb")


def state_of(file: str) -> list[Any]:
    """The bytes of a file, and what else changes if the file does."""
    if not is_address(file):
        known = Path(file).stat()
        return [known.st_size, str(known.st_mtime_ns)]
    filesystem, path = _filesystem(file)
    facts = filesystem.info(path)
    stamps = [str(facts[name]) for name in _STAMPS if facts.get(name)]
    return [int(filesystem.size(path) or 0), *stamps[:1]]


class OutFolder:
    """The folder into which a job writes."""

    def __init__(self, place: str) -> None:
        self.place = place.rstrip("/")
        self._filesystem: Any = None
        self._root = self.place
        if is_address(place):
            self._filesystem, self._root = _filesystem(self.place)

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Keep other jobs of these machines out of the folder; behind an address there is no such
        lock. A folder that is made here and remains empty is removed."""
        if self._filesystem is not None:
            yield
            return
        folder = Path(self._root)
        existed = folder.is_dir()
        folder.mkdir(parents=True, exist_ok=True)
        busy = f"another command is writing to {self.place}; wait for it, or name another folder"
        try:
            with held(folder / _LOCK, OptionError(busy)):
                yield
        finally:
            if not existed:
                with suppress(OSError):  # it is not empty
                    folder.rmdir()

    def names(self) -> set[str]:
        """The files that stand in it, whole."""
        found = self._all_names() - {_LOCK, _UNFINISHED}
        return {name for name in found if not partial_of(Path(name))}

    def remove_unfinished(self, names: Collection[str]) -> None:
        """Remove what killed processes have left of the files with these names."""
        if self._filesystem is not None:
            if self._filesystem.exists(f"{self._root}/{_UNFINISHED}"):
                self._filesystem.rm(f"{self._root}/{_UNFINISHED}", recursive=True)
            return
        remove_unfinished(Path(self._root), names)

    def read(self, name: str, most: int) -> bytes:
        """The content of a file that this job has written."""
        with opened(f"{self.place}/{name}") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise InputError(f"{self.place}/{name} has over {most:,} bytes; name another folder")
        return content

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """A file that appears under its name when the block ends, and never if it raises."""
        if self._filesystem is None:
            with aside(Path(self._root) / name) as new, open(new, "wb") as file:
                yield file
            return
        temporary = f"{self._root}/{_UNFINISHED}/{uuid.uuid4().hex}"
        self._filesystem.makedirs(f"{self._root}/{_UNFINISHED}", exist_ok=True)
        with self._filesystem.open(temporary, "wb") as file:
            yield file
        self._filesystem.mv(temporary, f"{self._root}/{name}")

    def write(self, name: str, content: bytes) -> None:
        """Write a small file at once."""
        with self.writing(name) as file:
            file.write(content)

    def _all_names(self) -> set[str]:
        if self._filesystem is None:
            folder = Path(self._root)
            return {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        self._filesystem.invalidate_cache()  # others have written since
        if not self._filesystem.isdir(self._root):
            return set()
        return {PurePosixPath(one).name for one in self._filesystem.ls(self._root, detail=False)}


def _matches(pattern: str) -> list[str]:
    if is_address(pattern):
        filesystem, path = _filesystem(pattern)
        return sorted(filesystem.unstrip_protocol(one) for one in filesystem.glob(path))
    if Path(pattern).is_dir():
        raise InputError(f"{pattern} is a folder; name its files, such as {pattern}/*.parquet")
    if os.path.exists(pattern):
        return [pattern]
    return sorted(one for one in glob.glob(pattern) if os.path.isfile(one))


def _filesystem(place: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingDependencyError.for_extra(f"reading {place}", "tables") from None
    try:
        filesystem, path = url_to_fs(place)
    except (ValueError, ImportError) as error:
        raise OptionError(f"{place} is no address that can be read: {error}") from None
    return filesystem, str(path)
