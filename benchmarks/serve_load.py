"""Does the service hold? Many clients at once, every reply checked; and kills in the middle of saving.

    python benchmarks/serve_load.py MODEL sentences.en --clients 64 --minutes 5
    python benchmarks/serve_load.py MODEL sentences.en --kills 20

Starts `dragoman serve` on a free port of this machine. Under load, each client sends one sentence after another (to
LibreTranslate's /translate) and compares the reply with the sentence translated alone beforehand; the throughput stands beside
that of `Translator.translate` on the same sentences in bulk, measured in the same run. With --kills the server is killed by
SIGKILL at random moments while corrections are saved, started anew, and at the end every correction that was acknowledged
must be there.
"""

from __future__ import annotations

import argparse
import asyncio
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--count", type=int, default=512, help="sentences of the file that are used")
    parser.add_argument("--kills", type=int, default=0)
    given = parser.parse_args()
    lines = [line for line in given.sentences.read_text(encoding="utf-8").splitlines() if line.strip()][: given.count]
    asyncio.run(_kills(given, lines) if given.kills else _load(given, lines))


class Server:
    """`dragoman serve` as a process of its own."""

    def __init__(self, model: Path, corrections: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url, self._model, self._corrections = f"http://127.0.0.1:{self.port}", model, corrections

    async def start(self) -> None:
        words = ["serve", str(self._model), "--port", str(self.port), "--corrections", str(self._corrections)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
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
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024

    def stop(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.wait(60)


async def _load(given: argparse.Namespace, lines: list[str]) -> None:
    from dragoman import Translator

    translator = Translator.load(given.model)
    about = translator.description
    expected = {line: translator.translate([line])[0].text for line in lines}
    translator.translate(lines)
    began = time.perf_counter()
    translator.translate(lines)
    bulk = len(lines) / (time.perf_counter() - began)
    del translator
    pair = {"source": about.source_language, "target": about.target_language}
    seen: Counter[str] = Counter()
    times: list[float] = []
    with TemporaryDirectory() as place:
        server = Server(given.model, Path(place) / "corrections.sqlite")
        await server.start()
        memory, end = [server.memory()], time.monotonic() + given.minutes * 60

        async def client(number: int) -> None:
            draw = random.Random(number)
            async with httpx.AsyncClient(timeout=60) as http:
                while time.monotonic() < end:
                    line, start = draw.choice(lines), time.perf_counter()
                    answer = await http.post(f"{server.url}/translate", json={"q": line, **pair})
                    if answer.status_code == 503:
                        seen["503"] += 1
                        await asyncio.sleep(float(answer.headers["Retry-After"]))
                        continue
                    times.append(time.perf_counter() - start)
                    right = answer.status_code == 200 and answer.json()["translatedText"] == expected[line]
                    seen["right" if right else f"wrong ({answer.status_code})"] += 1

        async def watch() -> None:
            while time.monotonic() < end:
                await asyncio.sleep(10)
                memory.append(server.memory())

        began = time.perf_counter()
        await asyncio.gather(watch(), *(client(number) for number in range(given.clients)))
        seconds = time.perf_counter() - began
        server.stop(signal.SIGTERM)
    times.sort()
    served = seen["right"] / seconds
    print(f"{given.clients} clients, {seconds:.0f} s: {dict(seen)}")
    print(f"{served:.1f} sentences/s served, {bulk:.1f} in bulk, ratio {served / bulk:.2f}")
    print(f"latency: median {statistics.median(times) * 1000:.0f} ms, p99 {times[int(0.99 * len(times))] * 1000:.0f} ms")
    later = ", ".join(f"{one:.0f}" for one in memory[1 :: max(1, len(memory) // 8)])
    print(f"memory in MiB: {memory[0]:.0f} at first, then {later}")


async def _kills(given: argparse.Namespace, lines: list[str]) -> None:
    from dragoman.checkpoint import load_description
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
                        text, better = f"{lines[worker]} {number} {count}", f"better {worker} {number} {count}"
                        try:
                            answer = await http.post(
                                f"{server.url}/v1/corrections", json={"text": text, "correction": better, **pair}
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
            if (found := store.exact(pair["source"], pair["target"], text)) is None or found.target != better
        ]
        store.close()
    print(f"{given.kills} kills: {len(saved):,} corrections acknowledged, {len(lost)} lost")


if __name__ == "__main__":
    main()
