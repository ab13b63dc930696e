"""A service to measure: `dragoman serve` as a process of its own on a free port of this machine,
and a client that takes little of the processor."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Service:
    """`dragoman serve` with some words after it."""

    words: list[str]
    log: Path | None = None  # where its standard error goes
    port: int = field(init=False, default=0)

    def __enter__(self) -> Service:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "dragoman", "serve", *self.words]
        command += ["--port", str(self.port)]
        if "--corrections" not in self.words:
            command.append("--no-corrections")  # those of a person are not for measuring
        with contextlib.ExitStack() as stack:
            errors: Any = subprocess.DEVNULL
            if self.log is not None:
                errors = stack.enter_context(self.log.open("wb"))
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        end = time.monotonic() + 300
        while not self._answers():
            if time.monotonic() > end or self._process.poll() is not None:
                self._process.kill()
                raise SystemExit(f"the server did not start: {' '.join(command)}")
            time.sleep(0.2)
        return self

    def __exit__(self, *error: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def memory(self) -> float:
        """Return the resident memory in MiB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        for line in status.splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        raise SystemExit("the server has ended")

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
                connection.settimeout(60)
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return connection.recv(100).startswith(b"HTTP/1.1 200")
        except OSError:
            return False


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes
    seconds: float


class Client:
    """A connection that stays open. Each address of 127.0.0.0/8 is a client of its own."""

    def __init__(self, port: int, address: str = "127.0.0.1") -> None:
        self._port = port
        self._address = address
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, values: Any) -> Answer:
        """Send values as JSON and return the answer; opens a connection where there is none."""
        body = json.dumps(values).encode()
        return await self.send(f"POST {path}", "application/json", body)

    async def send(self, line: str, kind: str, body: bytes, has_no_body: bool = False) -> Answer:
        """Send a request of any kind; the answer to a HEAD has no body."""
        start = time.perf_counter()
        head = (
            f"{line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        for attempt in (0, 1):
            reader, writer = await self._connection()
            try:
                writer.write(head.encode("latin-1", "replace") + body)
                status, headers, content = await _answer(reader, has_no_body)
                break
            except (ConnectionError, asyncio.IncompleteReadError):
                self.close()  # an idle connection is closed by the server
                if attempt:
                    raise
        if headers.get("connection") == "close":
            self.close()
        return Answer(status, headers, content, time.perf_counter() - start)

    async def leave(self, path: str, values: Any, seconds: float) -> None:
        """Send a request and go away after some seconds, whatever has come."""
        with contextlib.suppress(TimeoutError, ConnectionError, asyncio.IncompleteReadError):
            await asyncio.wait_for(self.post(path, values), seconds)
        self.close()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = None
        self._writer = None

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(
                "127.0.0.1", self._port, local_addr=(self._address, 0), limit=2**24
            )
        return self._reader, self._writer


async def _answer(
    reader: asyncio.StreamReader, has_no_body: bool
) -> tuple[int, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *rest = head.split("\r\n")
    headers = {}
    for line in rest:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    if has_no_body:
        return int(first.split()[1]), headers, b""
    if headers.get("transfer-encoding") == "chunked":
        return int(first.split()[1]), headers, await _chunks(reader)
    length = int(headers.get("content-length", "0"))
    return int(first.split()[1]), headers, await reader.readexactly(length)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while True:
        size = int((await reader.readline()).strip(), 16)
        body += await reader.readexactly(size)
        await reader.readline()
        if size == 0:
            return body


def percentile(values: list[float], share: float) -> float:
    """Return the value that a share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")
