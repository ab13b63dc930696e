"""Translated files that wait to be fetched: in memory, under names that nobody guesses, for a
while. Knows bytes, clients and the clock; nothing of documents and HTTP. Where a service has
several processes, a folder beside has the files for all of them.

There are bounds on their number and their bytes. A client that has more than half of either loses
its own oldest files first, so that none can drive out those of the others.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from dataclasses import dataclass, field
from typing import Protocol

SECONDS = 1_200.0  # that a file waits
_FILES = 200
_BYTES = 50_000_000


@dataclass(eq=False)
class StoredFile:
    """A file that can be fetched, or will be able to once it is translated."""

    client: str  # whose it is: the name of a key, or an address
    name: str
    data: bytes | None = None  # None until it is translated
    problem: str = ""  # why it will never be
    via: str = ""  # the language between, where there is one
    characters: int = 0
    held: int = 0  # bytes that are held until it is translated
    key: str = ""  # what one needs to have besides its token, where that is not all
    token: str = ""  # under which it can be fetched
    process: int = field(default_factory=os.getpid)  # that has it translated
    until: float = field(default_factory=lambda: time.monotonic() + SECONDS)

    @property
    def size(self) -> int:
        """The bytes that it takes."""
        return self.held if self.data is None else len(self.data)


class SharedFiles(Protocol):
    """Files that other processes see as well."""

    def has(self, token: str) -> bool:
        """Return whether there is a file of this token."""

    def get(self, token: str) -> StoredFile | None:
        """Return the file of a token."""

    def put(self, file: StoredFile) -> None:
        """Keep a file, or what has become of it."""

    def remove(self, token: str) -> None:
        """Forget a file."""


class StoredFiles:
    """The files of one service, by their tokens."""

    def __init__(
        self, files: int = _FILES, size: int = _BYTES, folder: SharedFiles | None = None
    ) -> None:
        self._folder = folder
        self._most_files = files
        self._most_bytes = size
        self._files: dict[str, StoredFile] = {}

    def put(self, file: StoredFile, ending: str = "") -> str:
        """Keep a file and return its token, which has the given ending."""
        token = secrets.token_urlsafe(24) + ending
        file.token = token
        self._files[token] = file
        self.make_room(file)
        self.publish(file)
        asyncio.get_running_loop().call_later(SECONDS, self._forget, token)
        return token

    def get(self, token: str) -> StoredFile | None:
        """Return the file of a token; None if there is none, or none any more."""
        file = self._files.get(token)
        if self._folder is not None and (file is None or not self._folder.has(token)):
            file = self._folder.get(token)
        if file is None or file.until < time.monotonic():
            return None
        return file

    def publish(self, file: StoredFile) -> None:
        """Let the other processes of the service see a file as it is now."""
        if self._folder is not None and file.token in self._files:
            self._folder.put(file)

    def remove(self, token: str) -> None:
        """Forget a file."""
        self._forget(token)

    def make_room(self, file: StoredFile) -> None:
        """Forget the oldest of the other files until all are within the bounds: first those of the
        file's own client beyond its half, then any."""
        own = [token for token, one in self._files.items() if one.client == file.client]
        self._shorten(own, self._most_files // 2, self._most_bytes // 2, file)
        self._shorten(list(self._files), self._most_files, self._most_bytes, file)

    def clear(self) -> None:
        """Forget all files."""
        for token in list(self._files):
            self._forget(token)

    def _shorten(self, tokens: list[str], count: int, size: int, kept: StoredFile) -> None:
        files = [self._files[token] for token in tokens]
        total = sum(file.size for file in files)
        number = len(files)
        for token, file in zip(tokens, files, strict=True):
            if number <= count and total <= size:
                return
            if file is not kept:
                self._forget(token)
                number -= 1
                total -= file.size

    def _forget(self, token: str) -> None:
        self._files.pop(token, None)
        if self._folder is not None:
            self._folder.remove(token)
