"""What a second server process gives: the same clients at a service of one process with one thread,
of one with two threads, and of two with one thread each.

    python benchmarks/server_processes.py MODEL sentences.en --clients 32 --seconds 20

Starts `dragoman serve` on a free port of this machine, warms it up, and lets each client send one
sentence after another over a connection of its own. Prints one JSON object. The clients share the
cores with the service, and take a hundredth of what it takes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from live_service import Client

_KINDS = {"one": (1, 1), "one_with_two_threads": (1, 2), "two": (2, 1)}
_WARM = 3.0  # seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    lines = given.sentences.read_text(encoding="utf-8").splitlines()
    texts = [line for line in lines if line.strip()][:1000]
    found: dict[str, Any] = {"clients": given.clients, "seconds": given.seconds}
    for name, (processes, threads) in _KINDS.items():
        service, url = started(given.model, processes, threads)
        try:
            figures = asyncio.run(load(int(url.rsplit(":", 1)[1]), texts, given))
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(60)
        found |= {f"{name}_{key}": value for key, value in figures.items()}
    found["two_over_one"] = round(found["two_a_second"] / found["one_a_second"], 2)
    threaded = found["one_with_two_threads_a_second"]
    found["two_over_two_threads"] = round(found["two_a_second"] / threaded, 2)
    print(json.dumps(found, indent=1))


def started(model: Path, processes: int, threads: int) -> tuple[subprocess.Popen[str], str]:
    """A service, and where it is."""
    words = ["serve", str(model), "--port", "0", "--no-corrections"]
    service = subprocess.Popen(
        [sys.executable, "-m", "dragoman", *words, "--processes", str(processes)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
    )
    assert service.stderr is not None
    for line in service.stderr:
        address = re.search(r"http://\S+", line)
        if address:
            # It logs every request, and would wait for ever for somebody to read that.
            threading.Thread(target=deque, args=(service.stderr, 0), daemon=True).start()
            return service, address[0]
    raise SystemExit("the service did not start")


async def load(port: int, texts: list[str], given: argparse.Namespace) -> dict[str, float]:
    """Let all clients ask until the time is over."""
    times: list[float] = []
    warm = time.monotonic() + _WARM
    end = warm + given.seconds

    async def client(number: int) -> None:
        draw = random.Random(number)
        connection = Client(port)
        while time.monotonic() < end:
            begin = time.monotonic()
            answer = await connection.post("/translate", {"q": draw.choice(texts), **languages})
            assert answer.status == 200, answer.body
            if begin >= warm:
                times.append(answer.seconds)
        connection.close()

    listed = await Client(port).send("GET /languages", "application/json", b"")
    known = json.loads(listed.body)
    first = next(one for one in known if set(one["targets"]) - {one["code"]})
    target = next(code for code in first["targets"] if code != first["code"])
    languages = {"source": first["code"], "target": target}
    await asyncio.gather(*(client(number) for number in range(given.clients)))
    ordered = sorted(times)
    return {
        "a_second": round(len(times) / given.seconds, 1),
        "median_milliseconds": round(1000 * statistics.median(ordered), 1),
        "p99_milliseconds": round(1000 * ordered[int(0.99 * len(ordered))], 1),
    }


if __name__ == "__main__":
    main()
