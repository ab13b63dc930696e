"""How long /health takes while hostile documents are uploaded to a server of the bundled models,
and beside twenty requests of 20,000 characters that are sent at once.

python benchmarks/document_health.py [--texts FILE] [--rounds N]

With --texts, the requests are made of the lines of a file, else of a few sentences.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

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
COUNT = 20  # requests at once
CHARACTERS = 20_000  # of each, as many as a request may have
SECONDS = 6.0  # after which their clients leave
SENTENCES = "The committee met on Monday. Water rose by 3.5 metres! Who said that? Nobody knows.\n"


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


def requests_of(lines: str) -> dict[str, list[bytes]]:
    """Return requests of every kind, `COUNT` of each."""
    text = lines * (COUNT * CHARACTERS // len(lines) + 1)
    texts = [text[start : start + CHARACTERS] for start in range(0, COUNT * CHARACTERS, CHARACTERS)]
    unknown = {"source": "auto", "target": "de"}
    parts = [[one[at : at + 40] for at in range(0, CHARACTERS, 40)] for one in texts]
    return {
        "/translate": [_post("/translate", {"q": one, **PAIR}) for one in texts],
        "/translate, auto": [_post("/translate", {"q": one, **unknown}) for one in texts],
        "/translate, lists": [_post("/translate", {"q": one, **PAIR}) for one in parts],
        "/translate, html": [
            _post("/translate", {"q": one, "format": "html", **PAIR}) for one in texts
        ],
        "/v1/translate": [_post("/v1/translate", {"text": one, **PAIR}) for one in texts],
        "/detect": [_post("/detect", {"q": one}) for one in texts],
    }


def _post(path: str, values: object) -> bytes:
    body = json.dumps(values).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def ask(port: int, request: bytes) -> None:
    """Send a request that was made before, and leave after some seconds: whoever measures beside it
    must not wait for this process."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(SECONDS)
        connection.sendall(request)
        try:
            while connection.recv(2**16):
                pass
        except TimeoutError:
            return


def measure_at_once(url: str, name: str, requests: list[bytes]) -> None:
    """Print how long /health took beside requests that were sent at once."""
    port = int(url.rsplit(":", 1)[1])
    done = threading.Event()
    askers = [threading.Thread(target=ask, args=(port, request)) for request in requests]

    def send() -> None:
        time.sleep(0.5)  # of which nobody has asked for anything
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        done.set()

    sender = threading.Thread(target=send)
    sender.start()
    slowest = slowest_health(url, done)
    sender.join()
    print(f"{len(requests)} of {name:18}  /health at most {1000 * slowest:.0f} ms", flush=True)


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=Path, help="a file whose lines the requests are made of")
    parser.add_argument("--rounds", type=int, default=1, help="times that each kind is sent")
    given = parser.parse_args()
    lines = SENTENCES if given.texts is None else given.texts.read_text(encoding="utf-8")
    requests = requests_of(lines)
    port = free_port()
    command = [sys.executable, "-m", "dragoman", "serve", "--port", str(port), "--no-corrections"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(url)
        for _ in range(given.rounds):
            for name, made in requests.items():
                measure_at_once(url, name, made)
        for name in DOCUMENTS:
            measure(url, name)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
