"""Does a short request stay quick beside uploads and slow clients?

    python benchmarks/serve_beside.py MODEL sentences.en --clients 64 --minutes 5

Starts `dragoman serve MODEL` on a free port of this machine. The clients have so many minutes alone
and as many beside others, in --rounds turns, so that whatever else the machine does meets both.
Each client translates one short sentence after another, from an address of its own. The others are
of several kinds, each from one address: documents that are uploaded and translated, uploads that
stall, connections that send their head a byte at a time, connections that say nothing, and clients
that do not read. Prints what was answered, the 50th and 99th percentile of both, the ratio of the
two, and the memory. Ends with 1 where anything but 200, 429 and 503 with Retry-After came, or the
ratio is above 2.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from live_service import Client, Service, percentile
from surroundings import cpu_name

from dragoman.folder.description import load_description

_LONGEST = 60  # characters of a short sentence
_BOUNDARY = "----boundary"
_PAUSE = 5.0  # seconds until a slow client that was refused comes again
Slow = Callable[[int, str], Awaitable[None]]


@dataclass(frozen=True)
class Asked:
    """What clients ask for."""

    lines: list[str]
    pair: dict[str, str]


@dataclass
class Seen:
    """What clients got."""

    times: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)

    def count(self, status: int, headers: dict[str, str]) -> None:
        """Count an answer; one without advice when to come again is a fault of its own."""
        wants_advice = status in (429, 503)
        name = str(status)
        if wants_advice and "retry-after" not in headers:
            name += " without Retry-After"
        self.statuses[name] += 1

    @property
    def faults(self) -> int:
        """Return the answers that nobody should get."""
        good = ("200", "429", "503")
        return sum(count for name, count in self.statuses.items() if name not in good)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--set", action="append", default=[], help="as of dragoman serve")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    lines = given.sentences.read_text(encoding="utf-8").splitlines()
    short = [line for line in lines if 0 < len(line) <= _LONGEST][:512]
    words = [str(given.model)]
    for limit in given.set:
        words += ["--set", limit]
    description, _ = load_description(given.model)
    pair = {"source": description.source_language, "target": description.target_language}
    with Service(words) as service:
        sys.exit(asyncio.run(_measure(service, Asked(short, pair), given)))


async def _measure(service: Service, asked: Asked, given: argparse.Namespace) -> int:
    seconds = 60 * given.minutes / given.rounds
    alone = Seen()
    beside = Seen()
    documents = Seen()
    print(f"{cpu_name()}, memory {service.memory():.0f} MiB", flush=True)
    for _ in range(given.rounds):
        await _clients(service, asked, given.clients, seconds, alone)
        others = _others(service.port, asked, documents)
        tasks = [asyncio.ensure_future(other) for other in others]
        await _clients(service, asked, given.clients, seconds, beside)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        print(f"load {os.getloadavg()[0]:.1f}, memory {service.memory():.0f} MiB", flush=True)
    _tell("alone", alone, 60 * given.minutes)
    _tell("beside others", beside, 60 * given.minutes)
    print(f"documents: {dict(documents.statuses)}")
    ratio = percentile(beside.times, 0.99) / percentile(alone.times, 0.99)
    print(f"p99 beside others: {ratio:.2f} times that of the clients alone")
    faults = alone.faults + beside.faults + documents.faults
    print(f"{faults} answers that nobody should get")
    return int(faults > 0 or ratio > 2)


def _others(port: int, asked: Asked, documents: Seen) -> list[Coroutine[Any, Any, None]]:
    """Return those beside whom the clients ask."""
    return [
        *[_documents(port, "127.0.0.2", asked, documents) for _ in range(2)],
        *[_again(_stalled, port, "127.0.0.3") for _ in range(20)],
        *[_again(_dripping, port, "127.0.0.4") for _ in range(50)],
        *[_again(_silent, port, "127.0.0.5") for _ in range(50)],
        *[_again(_deaf, port, "127.0.0.6") for _ in range(5)],
    ]


def _tell(name: str, seen: Seen, seconds: float) -> None:
    median = 1000 * percentile(seen.times, 0.5)
    slow = 1000 * percentile(seen.times, 0.99)
    rate = len(seen.times) / seconds
    print(
        f"{name}: {dict(seen.statuses)}, {rate:.1f} sentences/s, median {median:.0f} ms, "
        f"p99 {slow:.0f} ms",
        flush=True,
    )


async def _clients(service: Service, asked: Asked, count: int, seconds: float, seen: Seen) -> None:
    """Note what short requests get, one after the other from each client."""
    end = time.monotonic() + seconds

    async def ask(number: int) -> None:
        draw = random.Random(number)
        client = Client(service.port, f"127.0.1.{number % 250 + 1}")
        while time.monotonic() < end:
            try:
                answer = await client.post(
                    "/translate", {"q": draw.choice(asked.lines), **asked.pair}
                )
            except (OSError, asyncio.IncompleteReadError) as error:
                seen.statuses[type(error).__name__] += 1
                client.close()
                continue
            seen.count(answer.status, answer.headers)
            if answer.status == 200:
                seen.times.append(answer.seconds)
            else:
                await asyncio.sleep(float(answer.headers.get("retry-after", "1")))
        client.close()

    await asyncio.gather(*(ask(number) for number in range(count)))


async def _documents(port: int, address: str, asked: Asked, seen: Seen) -> None:
    """Upload a text of 50 lines again and again."""
    draw = random.Random(address)
    while True:
        text = "\n\n".join(draw.choices(asked.lines, k=50))
        parts = [f'name="{name}"\r\n\r\n{value}' for name, value in asked.pair.items()]
        parts.append(f'name="file"; filename="a.txt"\r\n\r\n{text}')
        body = "".join(
            f"--{_BOUNDARY}\r\nContent-Disposition: form-data; {part}\r\n" for part in parts
        )
        content = f"{body}--{_BOUNDARY}--\r\n".encode()
        client = Client(port, address)
        kind = f"multipart/form-data; boundary={_BOUNDARY}"
        try:
            answer = await client.send("POST /v1/documents", kind, content)
            seen.count(answer.status, answer.headers)
            if answer.status != 200:
                await asyncio.sleep(1)
        except (OSError, asyncio.IncompleteReadError) as error:
            seen.statuses[type(error).__name__] += 1
            await asyncio.sleep(1)
        finally:
            client.close()


async def _again(slow: Slow, port: int, address: str) -> None:
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await slow(port, address)
        await asyncio.sleep(_PAUSE)


async def _stalled(port: int, address: str) -> None:
    """Send all of an upload but its end."""
    kind = f"multipart/form-data; boundary={_BOUNDARY}"
    head = f"Content-Type: {kind}\r\nContent-Length: 9000000\r\n\r\n"
    async with _connection(port, address) as (reader, writer):
        writer.write(f"POST /v1/documents HTTP/1.1\r\nHost: localhost\r\n{head}".encode())
        for _ in range(40):
            writer.write(b"x" * 200_000)
            await writer.drain()
        await reader.read()


async def _dripping(port: int, address: str) -> None:
    """Send a head a byte at a time."""
    async with _connection(port, address) as (_, writer):
        writer.write(b"GET /health HTTP/1.1\r\nX-Slow: ")
        while True:
            await asyncio.sleep(0.5)
            writer.write(b"x")
            await writer.drain()


async def _silent(port: int, address: str) -> None:
    async with _connection(port, address) as (reader, _):
        await reader.read()


async def _deaf(port: int, address: str) -> None:
    """Ask for much and read nothing."""
    async with _connection(port, address) as (_, writer):
        for _ in range(200):
            writer.write(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while not writer.is_closing():
            await asyncio.sleep(0.5)


@contextlib.asynccontextmanager
async def _connection(
    port: int, address: str
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    try:
        yield reader, writer
    finally:
        writer.close()


if __name__ == "__main__":
    main()
