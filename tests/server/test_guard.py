"""Keys, rates, sizes, times, headers and logs, around an app that translates nothing."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from dragoman.errors import InputError, OptionError
from dragoman.server import rates as module
from dragoman.server.bodies import FREE
from dragoman.server.gate import Gate
from dragoman.server.guard import Guard, Limits, add_key, read_keys


def asked(host: str = "10.0.0.1", /, **headers: str) -> Request:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "headers": raw, "client": (host, 1), "state": {}})


def status(guard: Guard, request: Request, *arguments: Any) -> int:
    try:
        guard.admit(request, *arguments)
    except HTTPException as error:
        return error.status_code
    return 200


def test_a_key_is_told_once_and_kept_as_a_hash(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    key = add_key(path, "anna", 30)
    other = add_key(path, "ben")
    assert len({key, other}) == 2
    assert len(key) >= 43  # 256 bits
    digests = [hashlib.sha256(one.encode()).hexdigest() for one in (key, other)]
    assert path.read_text() == f"anna {digests[0]} 30\nben {digests[1]} 0\n"
    assert [(name, number) for name, _, number in read_keys(path)] == [("anna", 30), ("ben", 0)]
    for name in ("anna", "two words", ""):
        with pytest.raises(OptionError, match="name"):
            add_key(path, name)
    path.write_text("alone\n")
    with pytest.raises(InputError, match="not 'name hash"):
        Guard(Limits(), path)


def test_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    key = add_key(path, "anna")
    guard = Guard(Limits(), path)
    assert status(guard, asked()) == 403
    assert status(guard, asked(), "wrong") == 403
    assert status(guard, asked(), "kö\ud800") == 403
    assert status(guard, asked(), key) == 200
    request = asked(authorization=f"Bearer {key}")
    assert status(guard, request) == 200
    assert request.state.key == "anna"
    path.write_text("")  # no keys is not the same as no file: nobody comes in
    guard.reload()
    assert status(guard, asked(), key) == 403
    assert status(Guard(Limits()), asked()) == 200


def test_who_may_reload(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    keys = {name: add_key(path, name) for name in ("anna", "admin")}
    guard = Guard(Limits(), path)
    assert [
        status(guard, asked("127.0.0.1"), key, True) for key in (None, keys["anna"], keys["admin"])
    ] == [403, 403, 200]
    free = Guard(Limits())
    assert [status(free, asked(host), None, True) for host in ("10.0.0.1", "127.0.0.1", "::1")] == [
        403,
        200,
        200,
    ]
    # Through a proxy that says so, it is somebody else who asks.
    passed_on = asked("127.0.0.1", **{"x-forwarded-for": "10.0.0.1"})
    assert status(free, passed_on, None, True) == 403


def test_rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three a minute for an address, five for a key; a third of a minute gives one back."""
    now = 100.0
    monkeypatch.setattr("dragoman.server.rates.time.monotonic", lambda: now)
    path = tmp_path / "keys"
    key = add_key(path, "anna", 5)
    plain = add_key(path, "ben")
    guard = Guard(Limits(per_minute=3), path)
    assert [status(guard, asked("10.0.0.2"), key) for _ in range(7)] == [200] * 5 + [429] * 2
    assert [status(guard, asked("10.0.0.2"), plain) for _ in range(4)] == [200] * 3 + [429]
    assert [status(guard, asked("10.0.0.3"), "guess") for _ in range(4)] == [403] * 3 + [
        429
    ]  # guessing is slowed down too
    assert status(guard, asked("10.0.0.4"), "guess") == 403
    with pytest.raises(HTTPException) as told:
        guard.admit(asked(), plain)
    assert told.value.headers == {"Retry-After": "20"}
    now += 20.0
    assert [status(guard, asked(), plain) for _ in range(2)] == [200, 429]
    now += 1e6
    assert [status(guard, asked(), plain) for _ in range(4)] == [200] * 3 + [429]


def test_addresses_take_a_bounded_memory() -> None:
    guard = Guard(Limits(per_minute=1))
    for number in range(module._CLIENTS + 500):
        status(guard, asked(f"10.{number}"))
    assert len(guard.rates._buckets) == module._CLIENTS


@pytest.mark.parametrize(
    "wrong", [{"characters": 0}, {"seconds": -1.0}, {"per_minute": -1}, {"queue": 10}]
)
def test_limits_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(wrong))):
        Limits(**wrong)


def gated(limits: Limits, log_text: bool = False) -> TestClient:
    async def echo(request: Request) -> Response:
        request.state.characters = 4
        request.state.key = "anna"
        request.state.text = ["geheim"]
        return PlainTextResponse(await request.body())

    async def slow(request: Request) -> Response:
        await asyncio.sleep(30)
        return PlainTextResponse("late")

    async def broken(request: Request) -> Response:
        raise ValueError("geheim")

    routes = [Route(f"/{one.__name__}", one, methods=["POST"]) for one in (echo, slow, broken)]
    app = Starlette(routes=routes)
    app.add_middleware(Gate, guard=Guard(limits), log_text=log_text)
    return TestClient(app)


def test_what_is_too_large_is_refused_while_it_is_read() -> None:
    client = gated(Limits(body=1000))
    assert client.post("/echo", content=b"x" * 1000).text == "x" * 1000
    sent = []

    def chunks() -> Any:
        for number in range(1000):
            sent.append(number)
            yield b"x" * 100

    answer = client.post("/echo", content=b"x" * 1001)
    assert (answer.status_code, answer.json()) == (
        413,
        {"error": "the request has over 1,000 bytes; send less at a time"},
    )
    assert client.post("/echo", content=chunks()).status_code == 413


def test_all_requests_together_have_a_bound() -> None:
    client = gated(Limits(bodies=500))
    for _ in range(3):  # what has been answered is not counted any more
        assert client.post("/echo", content=b"x" * (FREE + 400)).status_code == 200
        assert client.post("/echo", content=b"x" * (FREE + 600)).status_code == 503


def test_what_takes_too_long_is_ended() -> None:
    answer = gated(Limits(seconds=0.1)).post("/slow")
    assert answer.status_code == 504
    assert answer.json() == {"error": "not done within 0.1 seconds; send less at a time"}


def test_an_error_of_ours_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    answer = gated(Limits()).post("/broken")
    assert (answer.status_code, answer.json()) == (
        500,
        {"error": "internal server error; the log has more"},
    )
    said = json.loads(capsys.readouterr().err)
    assert said["error"] == "ValueError"
    assert said["place"].startswith("test_guard.py:")


def test_logs_hold_no_text_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    gated(Limits()).post("/echo?api_key=geheim", content=b"geheim")
    gated(Limits()).post("/geheim", content=b"geheim")
    gated(Limits()).post("/broken", content=b"geheim")
    said = capsys.readouterr().err
    assert "geheim" not in said
    first = json.loads(said.splitlines()[0])
    assert set(first) == {"time", "route", "status", "milliseconds", "characters", "key"}
    assert (first["status"], first["characters"], first["key"]) == (200, 4, "anna")
    gated(Limits(), log_text=True).post("/echo")
    assert json.loads(capsys.readouterr().err)["text"] == ["geheim"]


def test_headers() -> None:
    headers = gated(Limits()).post("/echo").headers
    policy = dict(
        part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"  # neither inline nor from elsewhere
    assert policy["frame-ancestors"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
