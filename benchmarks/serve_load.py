"""Does the service hold? Many clients at once, every reply checked; and kills in the middle of
saving.

    python benchmarks/serve_load.py MODEL sentences.en --clients 64 --minutes 5
    python benchmarks/serve_load.py MODEL sentences.en --kills 20

Starts `dragoman serve` on a free port of this machine. Under load, each client sends one sentence
after another (to LibreTranslate's /translate, over a socket of its own) and compares the reply
with the sentence translated alone beforehand. In other company the last bits of a sentence's
numbers are others, which int8 rounds to others and a beam may then keep others: a reply that
differs must have a score, by the model itself, within 2 of the other's; the reply to another
sentence, told for comparison, lies far below. The throughput stands beside that of
`Translator.translate` on the same sentences in bulk, measured in the same run, before and after the
load; on a machine with other work the ratio of processor time is the one to read. With --kills the
server is killed by SIGKILL at random moments while corrections are saved, started anew, and at the
end every correction that was acknowledged must be there.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from dragoman import Translator


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument(
        "--count", type=int, default=512, help="sentences of the file that are used"
    )
    parser.add_argument("--kills", type=int, default=0)
    given = parser.parse_args()
    lines = [
        line for line in given.sentences.read_text(encoding="utf-8").splitlines() if line.strip()
    ][: given.count]
    asyncio.run(_kills(given, lines) if given.kills else _load(given, lines))


class Server:
    """`dragoman serve` as a process of its own."""

    def __init__(self, model: Path, corrections: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._model = model
        self._corrections = corrections

    async def start(self) -> None:
        words = [
            "serve",
            str(self._model),
            "--port",
            str(self.port),
            "--corrections",
            str(self._corrections),
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        async with httpx.AsyncClient() as client:
            for _ in range(600):
                try:
                    if (await client.get(f"{self.url}/health")).status_code == 200:
                        return
                except httpx.TransportError:
                    await asyncio.sleep(0.1)
        raise SystemExit("the server did not start within a minute")

    def memory(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return (
            next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
            / 1024
        )

    def processor(self) -> float:
        """Seconds of the processor that it has used."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8")
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def stop(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.wait(60)


async def _load(given: argparse.Namespace, lines: list[str]) -> None:
    translator = Translator.load(given.model)
    about = translator.description
    expected = {line: translator.translate([line])[0].text for line in lines}
    translator.translate(lines)
    bulks = [_in_bulk(translator, lines)]
    pair = {"source": about.source_language, "target": about.target_language}
    seen = Counter[str]()
    others = Counter[tuple[str, str]]()
    times = list[float]()
    with TemporaryDirectory() as place:
        server = Server(given.model, Path(place) / "corrections.sqlite")
        await server.start()
        memory = [server.memory()]
        end = time.monotonic() + given.minutes * 60

        async def client(number: int) -> None:
            draw = random.Random(number)
            (reader, writer) = await asyncio.open_connection("127.0.0.1", server.port)
            while time.monotonic() < end:
                line = draw.choice(lines)
                start = time.perf_counter()
                status, headers, body = await _post(reader, writer, {"q": line, **pair})
                if status == 503:
                    seen["503"] += 1
                    await asyncio.sleep(float(headers["retry-after"]))
                    continue
                times.append(time.perf_counter() - start)
                answer = body.get("translatedText") if status == 200 else None
                seen[
                    "as alone"
                    if answer == expected[line]
                    else "other"
                    if answer
                    else f"failed ({status})"
                ] += 1
                if answer and answer != expected[line]:
                    others[line, answer] += 1
            writer.close()

        async def watch() -> None:
            while time.monotonic() < end:
                await asyncio.sleep(10)
                memory.append(server.memory())

        began = time.perf_counter()
        used = server.processor()
        own_used = time.process_time()
        await asyncio.gather(watch(), *(client(number) for number in range(given.clients)))
        seconds = time.perf_counter() - began
        used = server.processor() - used
        own_used = time.process_time() - own_used
        server.stop(signal.SIGTERM)
    bulks.append(_in_bulk(translator, lines))
    bulk = 1 / statistics.mean(by_clock for by_clock, _ in bulks)
    bulk_used = statistics.mean(of_processor for _, of_processor in bulks)
    times.sort()
    served = (seen["as alone"] + seen["other"]) / seconds
    ties = {pair: _behind(translator, pair[0], expected[pair[0]], pair[1]) for pair in others}
    wrong = sum(count for pair, count in others.items() if not ties[pair] < 2)
    swapped = [
        _behind(translator, a, expected[a], expected[b]) for a, b in itertools.pairwise(lines[:17])
    ]
    print(f"{given.clients} clients, {seconds:.0f} s: {dict(seen)}")
    most = max(ties.values(), default=0.0)
    print(
        f"of the others, {others.total() - wrong} have a score near it "
        f"(at most {most:.3f} less), {wrong} are wrong"
    )
    print(f"the reply to another sentence would have a score at least {min(swapped):.3f} less")
    print(f"{served:.1f} sentences/s served, {bulk:.1f} in bulk, ratio {served / bulk:.2f}")
    count = seen["as alone"] + seen["other"]
    served_used = used / count
    print(
        f"processor: {served_used * 1000:.1f} ms a sentence served, "
        f"{bulk_used * 1000:.1f} in bulk, ratio {bulk_used / served_used:.2f}; "
        f"the clients took {own_used / count * 1000:.2f} ms more"
    )
    median = statistics.median(times)
    slow = times[int(0.99 * len(times))]
    print(f"latency: median {median * 1000:.0f} ms, p99 {slow * 1000:.0f} ms")
    later = ", ".join(f"{one:.0f}" for one in memory[1 :: max(1, len(memory) // 8)])
    print(f"memory in MiB: {memory[0]:.0f} at first, then {later}")


def _in_bulk(translator: Translator, lines: list[str]) -> tuple[float, float]:
    """Seconds of a sentence in bulk: by the clock, and of the processor."""
    began = time.perf_counter()
    used = time.process_time()
    for _ in range(4):
        translator.translate(lines)
    seconds = time.perf_counter() - began
    used = time.process_time() - used
    count = 4 * len(lines)
    return seconds / count, used / count


async def _post(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, values: dict[str, str]
) -> tuple[int, dict[str, str], dict[str, str]]:
    """Status, headers and JSON of the answer to a request on a connection that stays open. A
    client made for comfort would take as much of the processor as the server does."""
    body = json.dumps(values).encode()
    head = (
        "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in rest if line)
    }
    return (
        int(first.split()[1]),
        headers,
        json.loads(await reader.readexactly(int(headers["content-length"]))),
    )


def _behind(translator: Translator, line: str, best: str, other: str) -> float:
    """By how much the score of a translation lies below that of another."""
    said = [translator.translate([line], prefix=text)[0] for text in (best, other)]
    return said[0].score - said[1].score if said[1].text.startswith(other) else math.inf


async def _kills(given: argparse.Namespace, lines: list[str]) -> None:
    from dragoman.folder.description import load_description
    from dragoman.server.corrections import Corrections

    about, _ = load_description(given.model)
    pair = {"source": about.source_language, "target": about.target_language}
    saved: dict[str, str] = {}
    draw = random.Random(1)
    with TemporaryDirectory() as place:
        path = Path(place) / "corrections.sqlite"
        server = Server(given.model, path)
        for number in range(given.kills):
            await server.start()

            async def save(worker: int, number: int = number) -> None:
                async with httpx.AsyncClient(timeout=10) as http:
                    for count in range(100_000):
                        text = f"{lines[worker]} {number} {count}"
                        better = f"better {worker} {number} {count}"
                        try:
                            answer = await http.post(
                                f"{server.url}/v1/corrections",
                                json={"text": text, "correction": better, **pair},
                            )
                        except httpx.TransportError:
                            return
                        if answer.status_code == 200:
                            saved[text] = better

            workers = [asyncio.create_task(save(worker)) for worker in range(8)]
            await asyncio.sleep(draw.uniform(0.5, 2.0))
            server.stop(signal.SIGKILL)
            await asyncio.gather(*workers)
        store = Corrections(path)
        lost = [
            text
            for text, better in saved.items()
            if (found := store.exact(pair["source"], pair["target"], text)) is None
            or found.target != better
        ]
        store.close()
    print(f"{given.kills} kills: {len(saved):,} corrections acknowledged, {len(lost)} lost")


if __name__ == "__main__":
    main()
