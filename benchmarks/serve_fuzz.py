"""Does anything that a client may send break the service?

    python benchmarks/serve_fuzz.py MODEL --requests 20000

Starts `dragoman serve MODEL` with corrections on a free port of this machine and sends requests
that follow from their number alone: JSON of every shape, near misses of what the routes accept,
options at and beyond their limits, hostile text, bytes, forms, uploads, methods and paths. An
answer must come within two minutes, be no 5xx except 503, and have one sentence where it refuses;
the memory must not grow by more than 300 MiB from the first tenth of the run to its end. Prints how
often each status came; ends with 1 where something was wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from live_service import Client, Service

ROUTES = [
    "/translate",
    "/detect",
    "/translate_file",
    "/v1/translate",
    "/v1/stream",
    "/v1/inspect",
    "/v1/alternatives",
    "/v1/corrections",
    "/v1/documents",
    "/suggest",
    "/v1/chat/completions",
    "/v2/translate",
    "/v2/document",
    "/v2/glossaries",
    "/v3/glossaries",
]
_OTHER_PATHS = ["/", "/languages", "/health", "/metrics", "/docs", "/openapi.json", "/nothing"]
_OTHER_PATHS += ["/static/../app.py", "/static/%2e%2e/app.py", "/download_file/x", "/v1/admin/x"]
_METHODS = ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"]
_KINDS = [
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "multipart/form-data",
    "text/plain",
    "\u00ff;=",
]
_WORDS = ["one", "Haus", "{name}", "%s", "<b>", "&amp;", "https://a.b/c?d=e", "1,000.5", "ﬁ", "é"]
_SIGNS = ["\u202e", "\u200d", "\ufeff", "\u0000", "\u0301", "\U0001f600", "字", "ا", "\r\n", "\t"]
_OPTIONS = ["beam", "nbest", "alpha", "min_length", "max_length", "no_repeat_ngram", "coverage"]
_OPTIONS += ["temperature", "top_k", "top_p", "seed", "sample", "align", "careful", "split"]
_NAMES = ["q", "text", "source", "target", "format", "alternatives", "api_key", "prefix", "count"]
_NAMES += ["glossary", "correction", "protect", "nonsense", *_OPTIONS]
_NAMES += [
    "s",
    "target_lang",
    "tag_handling",
    "ignore_tags",
    "formality",
    "glossary_id",
    "messages",
]
_NAMES += ["stream", "n", "tools", "dictionaries", "document_key"]
LONGEST = 120.0  # seconds that an answer may take
_GROWTH = 300  # MiB


@dataclass(frozen=True)
class Sent:
    """A request."""

    line: str  # method and path
    kind: str  # of its content
    body: bytes


def request(number: int) -> Sent:
    """Return the request of a number, always the same."""
    draw = random.Random(number)
    makers: list[Callable[[random.Random], Sent]] = [_near, _near, _options, _any_json, _bytes]
    makers += [_form, _upload, _path]
    return draw.choice(makers)(draw)


def wrong(status: int, body: bytes) -> str | None:
    """Return what is wrong with an answer."""
    if status >= 500 and status != 503:
        return f"status {status}"
    if status < 400 or status in (404, 405):
        return None
    try:
        said = _sentence(json.loads(body))
    except (ValueError, KeyError, TypeError):
        return "no sentence"
    is_code = any(code in said for code in ("function-", "lambda", "Traceback", "<class", " at 0x"))
    return f"code in its sentence: {said}" if is_code else None


def _sentence(body: Any) -> str:
    """Return what a refusal says, wherever its API has it."""
    error = body["message"] if "message" in body else body["error"]
    said: str = error["message"] if isinstance(error, dict) else error
    return said


def _near(draw: random.Random) -> Sent:
    """What a route accepts, or nearly."""
    route = draw.choice(ROUTES)
    values: dict[str, Any] = {"source": "en", "target": "de"}
    values["text" if route.startswith("/v1/") else "q"] = _texts(draw)
    if route.startswith(("/v2/", "/v3/")):
        values = {"text": _texts(draw), "source_lang": "EN", "target_lang": "DE", "name": "x"}
        values["entries"] = f"{_text(draw, 3)}\t{_text(draw, 3)}"
    elif "chat" in route:
        content = _texts(draw)
        values = {"model": "en-de", "messages": [{"role": "user", "content": content}]}
    for _ in range(draw.choice([0, 0, 1, 2])):
        values[draw.choice(_NAMES)] = _value(draw, 2)
    return _json(route, values)


def _options(draw: random.Random) -> Sent:
    """Options at and beyond their limits."""
    values: dict[str, Any] = {"text": _text(draw, 10), "source": "en", "target": "de"}
    limits = [1, 1, 2, 4, 16] if draw.random() < 0.7 else [0, -1, 17, 500, 501, 0.5, 1e9, True]
    for name in draw.sample(_OPTIONS, draw.randrange(1, 4)):
        values[name] = draw.choice(limits)
    if draw.random() < 0.3:
        rows = range(draw.randrange(40))
        values["glossary"] = [[_text(draw, 8), _text(draw, 8)] for _ in rows]
    if draw.random() < 0.2:
        values["prefix"] = _text(draw, 20)
    return _json(draw.choice(ROUTES[3:7]), values)


def _any_json(draw: random.Random) -> Sent:
    return _json(draw.choice(ROUTES), _value(draw, 4))


def _bytes(draw: random.Random) -> Sent:
    """Bytes, nested brackets and halves of JSON."""
    depth = draw.choice([10, 1_000, 50_000])
    body = draw.choice(
        [
            draw.randbytes(draw.randrange(200)),
            b"[" * depth,
            b'{"q":' * depth,
            b'{"q": "\\ud800", "target": "de"}',
            b'{"q": [' + b"1," * depth + b"1]}",
            b'{"q": NaN, "target": 1e999}',
            b"\xff\xfe{\x00",
            b"",
        ]
    )
    return Sent(f"POST {draw.choice(ROUTES)}", draw.choice(_KINDS), body)


def _form(draw: random.Random) -> Sent:
    fields = [f"{draw.choice(_NAMES)}={_text(draw, 12)}" for _ in range(draw.randrange(6))]
    fields += ["source=en", "target=de"] * draw.randrange(2)
    body = draw.choice(["&", "&&", ";"]).join(fields).encode("utf-8", "surrogatepass")
    return Sent(f"POST {draw.choice(ROUTES)}", _KINDS[1], body)


def _upload(draw: random.Random) -> Sent:
    """A document, or what is meant to look like one."""
    name = draw.choice(["a.txt", "a.md", "a.html", "a.srt", "a.docx", "a.exe", "", '"', "../a.txt"])
    text = _text(draw, 60).encode("utf-8", "surrogatepass")
    content = draw.choice([text, draw.randbytes(100), b"PK\x03\x04" + draw.randbytes(50), b""])
    lines = []
    for field_name, value in (("source", b"en"), ("target", b"de"), ("file", content)):
        if draw.random() < 0.95:
            more = f'; filename="{name}"' if field_name == "file" else ""
            head = f'Content-Disposition: form-data; name="{field_name}"{more}'
            lines.append(b"--x\r\n" + head.encode() + b"\r\n\r\n" + value + b"\r\n")
    body = b"".join(lines) + draw.choice([b"--x--\r\n", b"--x", b""])
    route = draw.choice(["/v1/documents", "/translate_file"])
    return Sent(f"POST {route}", _KINDS[2], body)


def _path(draw: random.Random) -> Sent:
    path = draw.choice(ROUTES + _OTHER_PATHS)
    if draw.random() < 0.2:
        path += f"?{draw.choice(_NAMES)}={draw.randrange(10)}"
    return Sent(f"{draw.choice(_METHODS)} {path}", draw.choice(_KINDS), b"{}")


def _json(route: str, values: Any) -> Sent:
    return Sent(f"POST {route}", "application/json", json.dumps(values).encode())


def _texts(draw: random.Random) -> Any:
    if draw.random() < 0.6:
        return _text(draw, 12)
    return [_text(draw, 5) for _ in range(draw.randrange(4))]


def _text(draw: random.Random, words: int) -> str:
    chosen = []
    for _ in range(draw.randrange(words)):
        pool = _SIGNS if draw.random() < 0.15 else _WORDS
        chosen.append(draw.choice(pool) * (20 if draw.random() < 0.03 else 1))
    return draw.choice([" ", " ", ". ", ""]).join(chosen)


def _value(draw: random.Random, depth: int) -> Any:
    simple = [None, True, 0, -1, 2**70, 0.5, "", "en", "auto", "html", _text(draw, 5), "\ud800"]
    if depth == 0 or draw.random() < 0.5:
        return draw.choice(simple)
    inner = [_value(draw, depth - 1) for _ in range(draw.randrange(4))]
    if draw.random() < 0.5:
        return inner
    return {draw.choice(_NAMES): value for value in inner}


@dataclass
class Run:
    """What came of all requests."""

    statuses: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, 0)  # seconds, and the number of the request
    memory: list[float] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first request")
    parser.add_argument("--clients", type=int, default=8)
    given = parser.parse_args()
    start = time.monotonic()
    with TemporaryDirectory() as place:
        words = [str(given.model), "--corrections", str(Path(place) / "corrections.sqlite")]
        with Service(words) as service:
            run = asyncio.run(_fuzz(service, given))
    seconds = time.monotonic() - start
    print(f"{run.statuses.total():,} requests in {seconds:.0f} s: {dict(run.statuses)}")
    print(f"slowest answer {run.slowest[0]:.1f} s, to request {run.slowest[1]}")
    print("memory in MiB: " + ", ".join(f"{one:.0f}" for one in run.memory))
    if run.memory[-1] - run.memory[1] > _GROWTH:
        run.faults.append("memory grows")
    for fault in run.faults[:20]:
        print(fault)
    print(f"{len(run.faults)} faults")
    sys.exit(bool(run.faults))


async def _fuzz(service: Service, given: argparse.Namespace) -> Run:
    run = Run(memory=[service.memory()])
    numbers = iter(range(given.first, given.first + given.requests))
    tenth = max(1, given.requests // 10)

    async def client() -> None:
        connection = Client(service.port)
        for number in numbers:
            await _ask(connection, number, run)
            if run.statuses.total() % tenth == 0:
                run.memory.append(service.memory())
                print(f"{run.statuses.total():,} done, {len(run.faults)} faults", flush=True)
        connection.close()

    await asyncio.gather(*(client() for _ in range(given.clients)))
    run.memory.append(service.memory())
    return run


async def _ask(connection: Client, number: int, run: Run) -> None:
    sent = request(number)
    is_head = sent.line.startswith("HEAD")
    try:
        work = connection.send(sent.line, sent.kind, sent.body, is_head)
        answer = await asyncio.wait_for(work, LONGEST)
    except (OSError, ValueError, asyncio.IncompleteReadError, TimeoutError) as error:
        connection.close()
        run.faults.append(f"request {number}: {type(error).__name__} {error}")
        run.statuses[0] += 1
        return
    run.statuses[answer.status] += 1
    run.slowest = max(run.slowest, (answer.seconds, number))
    fault = None if is_head else wrong(answer.status, answer.body)
    if fault is not None:
        run.faults.append(f"request {number}: {fault}")


if __name__ == "__main__":
    main()
