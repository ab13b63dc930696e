"""How long /health takes while hostile documents are uploaded to a server of the bundled model.

python benchmarks/document_health.py
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time

import httpx

PAIR = {"source": "en", "target": "de"}
MB = 2**20
CUE = "1\n00:00:00,000 --> 00:00:01,000\n"
DOCUMENTS = {
    "attribute.html": "<p>hi <a " + "a" * (9 * MB) + ">x</a></p>",
    "tags.html": "<b>x" * (2 * MB),
    "quotations.html": 'x <a "' * MB,
    "list.md": "- x\n" * (2 * MB),
    "brackets.md": "x " + "[" * MB,
    "underscores.md": "x" + "_" * MB + "y",
    "newlines.srt": f"{CUE}x\n1" + "\n" * (9 * MB),
    "letters.txt": "a\n" * (4 * MB),
    "words.txt": "one two three. " * 20_000,
}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def upload(url: str, name: str, seconds: float) -> str:
    """Send a document; return the status, and give up after so many seconds."""
    try:
        files = {"file": (name, DOCUMENTS[name].encode())}
        answer = httpx.post(f"{url}/v1/documents", files=files, data=PAIR, timeout=seconds)
    except httpx.TimeoutException:
        return "left"
    return str(answer.status_code)


def slowest_health(url: str, done: threading.Event) -> float:
    """Return the longest that /health took until something is done."""
    slowest = 0.0
    with httpx.Client(timeout=60) as client:
        while not done.is_set():
            start = time.perf_counter()
            client.get(f"{url}/health")
            slowest = max(slowest, time.perf_counter() - start)
            time.sleep(0.01)
    return slowest


def wait_for(url: str) -> None:
    while True:
        try:
            httpx.get(f"{url}/health")
            return
        except httpx.TransportError:
            time.sleep(0.1)


def measure(url: str, name: str) -> None:
    """Print what became of a document, and how long /health took meanwhile."""
    statuses: list[str] = []
    done = threading.Event()

    def send() -> None:
        statuses.append(upload(url, name, 40.0))
        done.set()

    sender = threading.Thread(target=send)
    start = time.perf_counter()
    sender.start()
    slowest = slowest_health(url, done)
    sender.join()
    seconds = time.perf_counter() - start
    size = len(DOCUMENTS[name].encode()) / MB
    print(f"{name:16} {size:5.1f} MB  {statuses[0]:4} after {seconds:5.1f} s", end="  ")
    print(f"/health at most {1000 * slowest:.0f} ms", flush=True)


def main() -> None:
    port = free_port()
    command = [sys.executable, "-m", "dragoman", "serve", "--port", str(port), "--no-corrections"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(url)
        for name in DOCUMENTS:
            measure(url, name)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
