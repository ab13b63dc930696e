"""What SECURITY.md promises to whoever puts the service on a network: each promise by a server that
listens and clients that do not keep to any rule."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi.testclient import TestClient
from patience import LONG, wait_for

from dragoman.errors import OptionError
from dragoman.server import connections
from dragoman.server.app import create_app
from dragoman.server.bodies import FREE, Bodies
from dragoman.server.connections import Bounds
from dragoman.server.corrections import Corrections
from dragoman.server.fleet import Fleet
from dragoman.server.guard import Guard, Limits, Sender, add_key
from dragoman.server.hosts import Hosts
from dragoman.server.listening import configuration

PAIR = {"source": "en", "target": "de"}
ANSWER = {"translatedText": "eins"}


class Live:
    """A server in a thread, as `dragoman serve` runs it."""

    def __init__(self, fleet: Fleet, guard: Guard, proxies: tuple[str, ...] = ()) -> None:
        self.bounds = Bounds(guard.limits, proxies)
        self._server = uvicorn.Server(configuration(create_app(fleet, guard), self.bounds))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],))

    def start(self) -> None:
        self._thread.start()
        wait_for(lambda: self._server.started)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(LONG)
        assert not self._thread.is_alive()

    def ask(self, path: str = "/translate", **more: Any) -> httpx.Response:
        """Translate a word."""
        address = more.pop("address", "127.0.0.1")
        body = more.pop("json", {"q": "one", **PAIR})
        transport = httpx.HTTPTransport(local_address=address)
        with httpx.Client(transport=transport, timeout=LONG) as client:
            return client.post(f"http://127.0.0.1:{self.port}{path}", json=body, **more)

    def connect(self, sent: bytes = b"", address: str = "127.0.0.1") -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), LONG, (address, 0))
        made.sendall(sent)
        return made

    def connections(self) -> int:
        return self.bounds._open.total()


def head(length: int, path: str = "/translate", more: str = "") -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {length}",
    ]
    return ("\r\n".join(lines) + "\r\n" + more + "\r\n").encode()


def received(connection: socket.socket) -> bytes:
    """Everything up to the end of the connection."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while more := connection.recv(65_536):
            found += more
    return found


@pytest.fixture
def live_of(fleet_of: Callable[..., Fleet]) -> Iterator[Callable[..., Live]]:
    with contextlib.ExitStack() as stack:

        def make(
            keys: Path | None = None,
            hosts: Hosts | None = None,
            proxies: tuple[str, ...] = (),
            corrections: Any = None,
            **limits: Any,
        ) -> Live:
            guard = Guard(Limits(**limits), keys, hosts)
            live = Live(fleet_of(corrections=corrections), guard, proxies)
            live.start()
            stack.callback(live.stop)
            return live

        yield make


# Connections


def test_silent_and_half_silent_connections_are_closed(live_of: Callable[..., Live]) -> None:
    live = live_of(idle=0.3)
    silent = live.connect()
    half = live.connect(b"GET /health HTTP/1.1\r\nHost: lo")
    assert received(silent) == b""
    assert received(half).startswith(b"HTTP/1.1 408 ")
    used = live.connect(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b'{"status":"ok"}' in received(used)  # and closed when no other request has come
    dripping = live.connect(b"GET /health HTTP/1.1\r\nX-Slow: ")
    with contextlib.suppress(OSError):
        for _ in range(100):
            dripping.sendall(b"x")
            time.sleep(0.02)
    wait_for(lambda: live.connections() == 0)
    assert live.ask().json() == ANSWER


def test_a_head_has_a_size(live_of: Callable[..., Live]) -> None:
    live = live_of(head=20_000)
    fits = live.connect(head(0, more="X-Long: " + "x" * 15_000 + "\r\n"))
    assert fits.recv(100).startswith(b"HTTP/1.1 400 ")
    fits.close()
    starts = {
        "a header": b"GET / HTTP/1.1\r\nX-Long: ",
        "many headers": b"GET / HTTP/1.1\r\n" + b"X-Short: x\r\n" * 3_000,
        "a path": b"GET /",
        "blank lines": b"\r\n" * 20_000,
        "trailers": b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nX-Long: ",
        "a chunk's extension": b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n1;x=",
    }
    for start in starts.values():
        long = live.connect(start)
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 3_000_000:
                long.sendall(b"x" * 10_000)
                sent += 10_000
        assert sent < 3_000_000  # nobody took all that
        long.close()
    wait_for(lambda: live.connections() == 0)
    assert live.ask().json() == ANSWER


def test_connections_have_a_number(live_of: Callable[..., Live]) -> None:
    live = live_of(client_connections=5, connections=8, idle=20.0)
    many = [live.connect(address="127.0.0.2") for _ in range(5)]
    wait_for(lambda: live.connections() == 5)
    refused = received(live.connect(address="127.0.0.2"))
    assert refused.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1\r\n" in refused
    assert b"too many connections" in refused
    assert live.ask().json() == ANSWER  # of another address
    wait_for(lambda: live.connections() == 5)
    many += [live.connect(address=f"127.0.0.{number}") for number in (3, 4, 5)]
    wait_for(lambda: live.connections() == 8)
    assert received(live.connect()).startswith(b"HTTP/1.1 503 ")
    for connection in many:
        connection.close()
    wait_for(lambda: live.connections() == 0)
    assert live.ask().json() == ANSWER


def test_a_proxy_may_have_all_connections() -> None:
    bounds = Bounds(Limits(client_connections=2, connections=6), ("10.0.0.0/24", "::1"))
    assert [bounds.enter("10.0.0.7") for _ in range(4)] == [True] * 4
    assert [bounds.enter("10.0.1.7") for _ in range(4)] == [True] * 2 + [False] * 2
    with pytest.raises(OptionError, match="the proxy is 'nginx'; name an address"):
        Bounds(Limits(), ["nginx"])


def test_connections_leave_files_for_the_rest() -> None:
    bounds = Bounds(Limits(connections=6))
    bounds.fit_files(4)
    assert [bounds.enter(f"10.0.0.{number}") for number in range(6)] == [True] * 4 + [False] * 2


def test_a_client_that_does_not_read_is_dropped(live_of: Callable[..., Live]) -> None:
    live = live_of(reading=0.5)
    deaf = live.connect()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with contextlib.suppress(OSError):
        deaf.settimeout(2)
        deaf.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 400)
    wait_for(lambda: live.connections() == 0)
    assert live.ask().json() == ANSWER


# Bodies


def test_stalled_uploads_lock_nobody_out(live_of: Callable[..., Live]) -> None:
    live = live_of(body=1_000_000, client_bodies=2_000_000, bodies=5_000_000, reading=20.0)
    stalled = []
    for _ in range(6):  # more than an address may hold
        upload = live.connect(head(1_000_000), "127.0.0.2")
        upload.sendall(b"x" * 999_000)
        stalled.append(upload)
    long = {"q": ["one"], "padding": "x" * 900_000, **PAIR}
    assert live.ask(json=long).json() == {"translatedText": ["eins"]}
    assert live.ask(address="127.0.0.2").json() == ANSWER  # what is short always gets through
    busy = live.ask(json=long, address="127.0.0.2")
    assert (busy.status_code, busy.headers["retry-after"]) == (503, "1")
    for upload in stalled:
        upload.close()
    wait_for(lambda: live.connections() == 0)
    assert live.ask(json=long, address="127.0.0.2").status_code == 200


def test_a_request_is_sent_within_its_time(
    live_of: Callable[..., Live], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_DRAINING", 1.0)
    live = live_of(reading=0.3, idle=0.3)
    start = time.monotonic()
    slow = live.connect(head(1000) + b"{")
    answer = slow.recv(1000)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"not sent within 0.3 seconds" in answer
    with contextlib.suppress(OSError):  # it may finish, but not for ever
        while time.monotonic() - start < 11:
            slow.sendall(b"x")
            time.sleep(0.05)
    assert time.monotonic() - start < 8
    wait_for(lambda: live.connections() == 0)


def test_memory_for_bodies_is_shared_out() -> None:
    bodies = Bodies(Limits(client_bodies=100, bodies=1000))
    anna = Sender("anna", True)
    assert bodies.hold(anna, FREE, FREE)  # what is short takes none
    assert bodies.hold(anna, FREE + 100, 100)
    assert not bodies.hold(anna, FREE + 101, 1)
    bodies.release(anna, FREE + 101)
    for number in range(5):  # those without a key leave half of it to others
        assert bodies.hold(Sender(f"{number}", False), FREE + 100, 100)
    assert not bodies.hold(Sender("6", False), FREE + 100, 100)
    bodies.release(Sender("6", False), FREE + 100)
    assert bodies.hold(anna, FREE + 100, 100)
    for number in range(5):
        bodies.release(Sender(f"{number}", False), FREE + 100)
    bodies.release(anna, FREE + 100)
    assert not bodies._held


def test_a_wrong_key_is_refused_before_the_body(
    live_of: Callable[..., Live], tmp_path: Path
) -> None:
    key = add_key(tmp_path / "keys", "anna")
    live = live_of(keys=tmp_path / "keys", per_minute=20)
    wrong = live.connect(head(1_000_000, more="Authorization: Bearer wrong\r\n"))
    assert wrong.recv(1000).startswith(b"HTTP/1.1 403 ")
    # Our own routes have the key in the head alone.
    assert live.connect(head(1_000_000, "/v1/translate")).recv(1000).startswith(b"HTTP/1.1 403 ")
    assert live.ask(json={"q": "one", **PAIR, "api_key": key}).json() == ANSWER
    assert live.ask(headers={"Authorization": f"Bearer {key}"}).json() == ANSWER
    assert live.ask().status_code == 403
    guesses = [live.ask(headers={"Authorization": "Bearer x"}).status_code for _ in range(30)]
    assert 429 in guesses


# Hosts and origins


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:5000", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:5000", 200),
        ("app.localhost", 200),
        ("translate.example.org", 200),
        ("Translate.Example.org.:443", 200),
        ("evil.example", 400),
        ("127.0.0.1.evil.example", 400),
        ("localhost.evil.example", 400),
        ("evil@127.0.0.1", 400),
        ("192.0.2.7", 400),
        ("", 400),
    ],
)
def test_only_its_own_names_are_answered_to(host: str, status: int) -> None:
    guard = Guard(Limits(), hosts=Hosts(["translate.example.org"]))
    scope = {
        "type": "http",
        "path": "/",
        "headers": [(b"host", host.encode())],
        "server": ("10.1.2.3", 5000),
    }
    if status == 200:
        guard.identify(scope)
        return
    with pytest.raises(Exception, match="this server does not answer to the name"):
        guard.identify(scope)


def test_dns_rebinding_gets_nowhere(live_of: Callable[..., Live], tmp_path: Path) -> None:
    store = Corrections(tmp_path / "corrections.sqlite")
    live = live_of(corrections=store, hosts=Hosts(["translate.example.org"]))
    correction = {"text": "one", **PAIR, "correction": "planted"}

    def save(host: str, origin: str | None) -> int:
        headers = {"Host": host} | ({} if origin is None else {"Origin": origin})
        return live.ask("/v1/corrections", json=correction, headers=headers).status_code

    assert save("evil.example", "http://evil.example") == 400
    assert save("localhost", "http://evil.example") == 403
    assert save("localhost", "null") == 403
    assert list(store.all()) == []
    assert save("localhost", None) == 200
    assert save("localhost:5000", "http://localhost:5000") == 200
    # A proxy may have put its own name into Host.
    assert save("127.0.0.1", "https://translate.example.org") == 200
    for host, origin, status in (
        ("evil.example", "http://evil.example", 400),
        ("localhost", "http://evil.example", 403),
        ("localhost", "http://localhost", 200),
    ):
        headers = {"Host": host, "Origin": origin}
        assert live.ask("/v1/admin/reload", headers=headers).status_code == status
    twice = live.connect(b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
    assert twice.recv(100).startswith(b"HTTP/1.1 400 ")


def test_every_route_that_changes_something_asks_where_a_page_is_from(
    client_of: Callable[..., Any], tmp_path: Path
) -> None:
    """A new route is either listed here as one that only translates, or it refuses."""
    client = client_of(corrections=Corrections(tmp_path / "corrections.sqlite"))
    only_translate = {"/translate", "/detect", "/translate_file"}
    only_translate |= {f"/v1/{name}" for name in ("translate", "stream", "inspect", "documents")}
    only_translate |= {
        "/v1/documents/stream",
        "/v1/alternatives",
        "/v1/chat/completions",
        "/v2/translate",
    }
    only_translate |= {"/v2/document", "/v2/document/{document_id}"}
    only_translate |= {"/v2/document/{document_id}/result", "/nmt/translate"}
    bodies = {
        "/v1/corrections": {"text": "one", "correction": "eins", **PAIR},
        "/v1/corrections/reviewed": {"pairs": [["one", "eins"]], **PAIR},
        "/suggest": {"q": "one", "s": "eins", **PAIR},
    }
    paths = client.get("/openapi.json").json()["paths"]
    changing = set()
    for path, methods in paths.items():
        for method in set(methods) - {"get"}:
            if path in only_translate:
                continue
            changing.add(path)
            headers = {"Origin": "http://evil.example"}
            body = bodies.get(path, {})
            answer = client.request(method, path, json=body, headers=headers)
            assert answer.status_code == 403, path
    assert changing == {
        "/v1/corrections",
        "/v1/corrections/reviewed",
        "/v1/admin/reload",
        "/suggest",
        "/v2/glossaries",
        "/v2/glossaries/{glossary_id}",
        "/v3/glossaries",
        "/v3/glossaries/{glossary_id}",
        "/v3/glossaries/{glossary_id}/dictionaries",
    }


def test_no_route_answers_a_stranger_where_keys_are_in_use(
    client_of: Callable[..., Any], tmp_path: Path
) -> None:
    """Each route refuses before it reads a body, or is listed here as one for everybody."""
    add_key(tmp_path / "keys", "anna")
    client = client_of(keys=tmp_path / "keys")
    for_all = {"/languages", "/frontend/settings", "/spec", "/health", "/download_file/{token}"}
    for_all.add("/nmt/health")
    in_body = {"/translate", "/detect", "/suggest", "/translate_file", "/v1/documents"}
    paths = client.get("/openapi.json").json()["paths"]
    for path, methods in paths.items():
        if path in for_all | in_body:
            continue
        for method in methods:
            refused = 401 if "/chat/" in path or "/models" in path else 403
            answer = client.request(method, path, content=b"{" * 1000)
            assert answer.status_code == refused, path
            wrong = {"Authorization": "DeepL-Auth-Key wrong"}
            answer = client.request(method, path, content=b"{" * 1000, headers=wrong)
            assert answer.status_code == refused, path


# Who is who


def test_x_forwarded_for_is_believed_of_proxies_alone(live_of: Callable[..., Live]) -> None:
    def asked(live: Live) -> list[int]:
        codes = []
        for number in range(5):
            headers = {"X-Forwarded-For": f"10.0.0.{number}"}
            codes.append(live.ask(headers=headers).status_code)
        return codes

    assert asked(live_of(per_minute=3)) == [200, 200, 200, 429, 429]
    assert asked(live_of(per_minute=3, proxies=("127.0.0.1",))) == [200] * 5
    assert asked(live_of(per_minute=3, proxies=("127.0.0.9",))) == [200, 200, 200, 429, 429]


def test_figures_need_a_key_where_keys_are_in_use(
    client_of: Callable[..., Any], tmp_path: Path
) -> None:
    assert client_of().get("/metrics").status_code == 200
    key = add_key(tmp_path / "keys", "anna")
    client = client_of(keys=tmp_path / "keys")
    assert client.get("/metrics").status_code == 403
    assert client.get("/metrics", headers={"Authorization": f"Bearer {key}"}).status_code == 200
    # What a client needs to know before it has a key, and the page, are for everybody.
    for path in ("/", "/docs", "/health", "/languages", "/frontend/settings", "/openapi.json"):
        assert client.get(path).status_code == 200, path


def test_a_million_errors_are_one(client_of: Callable[..., Any]) -> None:
    """A list of numbers where texts are expected: each was an error of its own, and 10 MB of them
    took 47 s and 5 GB while nobody else was answered."""
    client = client_of()
    start = time.process_time()
    numbers = "1," * 500_000 + "1"
    fields = ",".join(f'"a{number}": 1' for number in range(80_000))
    for path, body in (
        ("/translate", f'{{"q": [{numbers}], "target": "de"}}'),
        ("/v1/translate", f'{{"text": [{numbers}], "target": "de"}}'),
        ("/v1/translate", f'{{"text": "one", "target": "de", "glossary": [{numbers}]}}'),
        ("/v1/translate", f'{{"text": "one", "target": "de", {fields}}}'),
    ):
        headers = {"content-type": "application/json"}
        answer = client.post(path, content=body, headers=headers)
        assert answer.status_code == (400 if path == "/translate" else 422)
        assert len(answer.json()["error"]) < 200
    assert time.process_time() - start < 5
    long = client.post("/translate", json={"q": "x" * 1_300_000, **PAIR})
    assert long.status_code == 413


def test_errors_are_sentences(client_of: Callable[..., Any]) -> None:
    client = client_of()
    cases: list[tuple[str, Any]] = [
        ("/translate", {"q": 5, **PAIR}),
        ("/translate", {"q": [1, 2], **PAIR}),
        ("/translate", {"q": "a\ud800", **PAIR}),
        ("/translate", {"q": "one", "format": "pdf", **PAIR}),
        ("/translate", {}),
        ("/v1/translate", {"text": {"a": 1}, **PAIR}),
        ("/v1/translate", {"text": ["\udfff"], **PAIR}),
        ("/v1/translate", {"text": "one", **PAIR, "glossary": [["a"]]}),
        ("/v1/translate", {"text": "one", **PAIR, "glossary": [["a", 1]]}),
        ("/v1/translate", {"text": "one", **PAIR, "beam": "x"}),
        ("/v1/translate", {"text": "one", **PAIR, "nonsense": 1}),
        ("/v1/translate", [1]),
        ("/v1/documents", {"file": "text"}),
    ]
    for path, body in cases:
        for kind in ("application/json", "application/x-www-form-urlencoded"):
            answer = client.post(path, content=json.dumps(body), headers={"content-type": kind})
            assert answer.status_code == (400 if path == "/translate" else 422)
            said = answer.json()["error"]
            for code in ("[", "<", "lambda", "function", "Error", "()", "\\u", "codec", "literal"):
                assert code not in said, (path, body, said)
    form = client.post("/v1/documents", data={"file": "text", **PAIR})
    assert form.json()["error"].startswith("file: must be a file")
    many = client.post("/translate", json={"q": 5, **PAIR}).json()["error"]
    assert many == "q: must be a text or a list of texts; /docs shows what is expected"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"text": "a\x00b"}', "the body: not JSON (Invalid control character at)"),
        (b"[" * 100_000, "the body: cannot be read as JSON"),
        (b"[1]", "the body: must be a JSON object"),
        (b'{"text": "a"}', "target: is missing"),
        (b'{"text": "a", "target": "de", "beem": 3}', "beem: is no field of this route"),
        (b'{"text": ' + b"9" * 5_000 + b"}", "the body: cannot be read as JSON"),
        (b'{"text": "a", "target": "de", "glossary": "a"}', "glossary: must be a list"),
        (b'{"text": "a", "target": "de", "glossary": ["a"]}', "glossary.0: must be a list"),
        (b'{"text": "a", "target": "de", "glossary": [["a", 1]]}', "glossary.0.1: must be a text"),
    ],
)
def test_what_is_wrong_with_a_body_is_named(
    client_of: Callable[..., TestClient], content: bytes, told: str
) -> None:
    kind = {"content-type": "application/json"}
    answer = client_of().post("/v1/translate", content=content, headers=kind)
    assert answer.status_code in (400, 422)
    assert answer.json()["error"] == f"{told}; /docs shows what is expected"


def test_a_document_of_200_megabytes_is_refused_before_it_is_there(
    live_of: Callable[..., Live], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_DRAINING", 1.0)
    live = live_of(body=100_000)
    with live.connect(head(200 * 2**20, "/v1/documents") + b"x" * 100_001) as connection:
        answer = received(connection)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert answer.count(b'"error"') == 1


def test_a_long_form_arrives_whole(client_of: Callable[..., Any]) -> None:
    """It is read in slices, between which others have their turn."""
    client = client_of()
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    body = "&" * 200_000 + "q=" + "%41" * 30_000 + "&source=en&target=de"
    answer = client.post("/translate", content=body, headers=form)
    assert answer.status_code in (400, 413)
    assert "the request has 30,000 characters" in answer.json()["error"]
