"""How long does a short request take beside clients that ask for as much as the limits allow?

    python benchmarks/serve_neighbours.py MODEL --seconds 20

Starts `dragoman serve MODEL` on a free port of this machine. One client translates a short sentence
five times a second; beside it, one after the other: nobody; somebody who sends a word of 7,999
letters again and again and goes away after a second; somebody with 130 terms of a glossary in one
sentence, who goes away after 1.5 s; both, who stay; somebody who sends 500 lines; and all of them
from the client's own address. Prints the median, the 99th percentile and the longest time of the
short request. A neighbour that has left is there again at once, so the figures include what it
costs after it has left.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from live_service import Client, Service, percentile

from dragoman.folder.description import load_description

SHORT = "Good morning, how are you?"
_LINE = "The committee will discuss the report on water in the second week of May."
Neighbour = Callable[[int, str, dict[str, str]], Awaitable[None]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each case")
    parser.add_argument("--set", action="append", default=[], help="as of dragoman serve")
    given = parser.parse_args()
    words = [str(given.model)]
    for limit in given.set:
        words += ["--set", limit]
    description, _ = load_description(given.model)
    pair = {"source": description.source_language, "target": description.target_language}
    with Service(words) as service:
        asyncio.run(_measure(service, pair, given.seconds))


async def _measure(service: Service, pair: dict[str, str], seconds: float) -> None:
    cases: list[tuple[str, list[Neighbour], str]] = [
        ("nobody", [], "127.0.0.2"),
        ("a word of 7,999 letters, left after 1 s", [_long_word_left], "127.0.0.2"),
        ("130 terms, left after 1.5 s", [_terms_left], "127.0.0.2"),
        ("both, who stay", [_long_word, _terms], "127.0.0.2"),
        ("500 lines", [_lines], "127.0.0.2"),
        ("all of them, of one's own address", [_long_word, _terms, _lines], "127.0.0.1"),
    ]
    print(f"{'neighbours':45} {'asked':>6} {'median':>9} {'p99':>9} {'most':>9}  statuses")
    for name, neighbours, address in cases:
        client = Client(service.port)
        await client.post("/translate", {"q": SHORT, **pair})  # what was left over has ended
        times, statuses = await _beside(service, neighbours, address, pair, seconds)
        row = [percentile(times, 0.5), percentile(times, 0.99), max(times)]
        told = "  ".join(f"{1000 * value:6.0f} ms" for value in row)
        print(f"{name:45} {len(times):6} {told}  {dict(statuses)}", flush=True)


async def _beside(
    service: Service,
    neighbours: list[Neighbour],
    address: str,
    pair: dict[str, str],
    seconds: float,
) -> tuple[list[float], Counter[int]]:
    """Return how long short requests take beside some neighbours."""
    loops = [_again(neighbour, service.port, address, pair) for neighbour in neighbours]
    tasks = [asyncio.create_task(loop) for loop in loops]
    await asyncio.sleep(1.0 if neighbours else 0.0)
    client = Client(service.port)
    times = []
    statuses: Counter[int] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = await client.post("/translate", {"q": SHORT, **pair})
        times.append(answer.seconds)
        statuses[answer.status] += 1
        await asyncio.sleep(max(0.0, 0.2 - answer.seconds))
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    return times, statuses


async def _again(neighbour: Neighbour, port: int, address: str, pair: dict[str, str]) -> None:
    while True:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await neighbour(port, address, pair)
        await asyncio.sleep(0.05)


async def _long_word_left(port: int, address: str, pair: dict[str, str]) -> None:
    await Client(port, address).leave("/translate", {"q": _word(), **pair}, 1.0)


async def _long_word(port: int, address: str, pair: dict[str, str]) -> None:
    await Client(port, address).leave("/translate", {"q": _word(), **pair}, 600.0)


async def _terms_left(port: int, address: str, pair: dict[str, str]) -> None:
    await Client(port, address).leave("/v1/translate", _with_terms(pair), 1.5)


async def _terms(port: int, address: str, pair: dict[str, str]) -> None:
    await Client(port, address).leave("/v1/translate", _with_terms(pair), 600.0)


async def _lines(port: int, address: str, pair: dict[str, str]) -> None:
    lines = [f"{number}. {_LINE[:30]}" for number in range(500)]
    await Client(port, address).leave("/translate", {"q": lines, **pair}, 600.0)


def _word() -> str:
    return ("abcdefghijklmnop" * 500)[:7_999]


def _with_terms(pair: dict[str, str]) -> dict[str, Any]:
    names = [f"term{first}{second}" for first in "abcdefghijklm" for second in "abcdefghij"]
    glossary = [[name, f"{name[::-1]}wort"] for name in names]
    text = " and the ".join(names)
    return {"text": f"The {text} are here", **pair, "glossary": glossary}


if __name__ == "__main__":
    main()
