"""How documents travel between a service and the process that reads them: frames of bytes, each
with its length before it, and JSON where there is more to say. Knows bytes; no document."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

MAX_FRAME = 2**28  # bytes


def send(stream: BinaryIO, content: bytes) -> None:
    """Write a frame."""
    stream.write(len(content).to_bytes(8, "little"))
    stream.write(content)


def receive(stream: BinaryIO) -> bytes:
    """Read a frame; raise an EOFError where the stream ends first."""
    length = int.from_bytes(_exactly(stream, 8), "little")
    if length > MAX_FRAME:
        raise EOFError("a frame is too long")
    return _exactly(stream, length)


def send_json(stream: BinaryIO, value: Any) -> None:
    """Write a frame of JSON."""
    send(stream, json.dumps(value, separators=(",", ":")).encode())


def receive_json(stream: BinaryIO) -> Any:
    """Read a frame of JSON."""
    return json.loads(receive(stream))


def _exactly(stream: BinaryIO, count: int) -> bytes:
    content = stream.read(count)
    if len(content) < count:
        raise EOFError("the stream has ended")
    return content
