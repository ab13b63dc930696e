"""The content of a .zst file by the zstandard package, which by itself takes a file that was cut
off for one that has ended. Knows frames; nothing of what is in them."""

from __future__ import annotations

import io
from typing import IO, Any

_BLOCK = 2**13  # compressed bytes at a time: what they become is held in memory


class ZstdFrames(io.RawIOBase):
    """Reads one frame after the other; a file that ends within a frame raises EOFError."""

    def __init__(self, file: IO[bytes], decompressor: Any) -> None:
        self._file = file
        self._decompressor = decompressor
        self._frame: Any = None  # the one that has begun
        self._left = b""  # compressed
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """It can be read."""
        return True

    def close(self) -> None:
        """Close the file as well."""
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, as io.BufferedReader asks."""
        while not self._ready:
            block = self._left or self._file.read(_BLOCK)
            if not block:
                if self._frame is not None:
                    raise EOFError("it ends within a compressed frame")
                return 0
            self._ready = memoryview(self._content(block))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _content(self, block: bytes) -> bytes:
        if self._frame is None:
            self._frame = self._decompressor.decompressobj()
        content: bytes = self._frame.decompress(block)
        self._left = b""
        if self._frame.eof:
            self._left = self._frame.unused_data
            self._frame = None
        return content
