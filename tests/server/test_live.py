"""A server that listens: LibreTranslate's own client, many clients at once, clients that go
away, and signals."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import tiny
from libretranslatepy import LibreTranslateAPI
from live_server import live
from patience import LONG, wait_for

from dragoman.cli.main import app
from dragoman.errors import OptionError
from dragoman.folder import shipped
from dragoman.server.app import create_app
from dragoman.server.corrections import Corrections
from dragoman.server.fleet import Fleet
from dragoman.server.guard import Guard, Limits, add_key
from dragoman.tasks.translate import Translator


@pytest.fixture
def fleet(fleet_of: Callable[..., Fleet]) -> Fleet:
    return fleet_of()


def test_the_client_of_libretranslate_works_unchanged(fleet: Fleet, tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys", "anna")
    with live(create_app(fleet, Guard(Limits(), tmp_path / "keys"))) as url:
        client = LibreTranslateAPI(url, key)
        assert client.translate("one two three", "en", "de") == "eins zwei drei"
        assert client.translate("four five", "auto", "de") == "vier fünf"
        assert [
            one["language"] for one in client.detect("This is a sentence in plain English.")
        ] == ["en"]
        assert [(one["code"], one["name"]) for one in client.languages()] == [
            ("de", "German"),
            ("en", "English"),
        ]
        with pytest.raises(Exception, match="403"):
            LibreTranslateAPI(url).translate("one", "en", "de")


def test_many_clients_at_once_get_their_own_answers(fleet: Fleet, translator: Translator) -> None:
    draw = random.Random(9)
    lines = [" ".join(draw.choices(tiny.ENGLISH, k=draw.randint(1, 12))) for _ in range(200)]
    alone = [translator.translate([line])[0].text for line in lines]
    with (
        live(create_app(fleet, Guard(Limits()))) as url,
        httpx.Client(base_url=url, timeout=LONG) as client,
    ):

        def ask(place: int) -> str:
            body = {"q": lines[place], "source": "en", "target": "de"}
            return client.post("/translate", json=body).json()["translatedText"]

        with ThreadPoolExecutor(32) as pool:
            assert list(pool.map(ask, range(len(lines)))) == alone


def test_a_client_that_goes_away_is_dropped_from_the_queue(fleet: Fleet) -> None:
    engine = fleet.engines["en", "de"]
    seen: list[str] = []
    real = engine.translator.translate_following

    def watched(texts: list[str], *rest: Any, **how: Any) -> Any:
        seen.extend(texts)
        return real(texts, *rest, **how)

    vars(engine.translator)["translate_following"] = watched
    go = threading.Event()
    with live(create_app(fleet, Guard(Limits()))) as url:
        held = engine.submit("", lambda translator: go.wait(LONG))
        body = json.dumps({"q": "one two", "source": "en", "target": "de"})
        head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as gone:
            gone.sendall((head + body).encode())
            wait_for(lambda: engine._characters)
        wait_for(lambda: not engine._characters)  # it is known that the client has left
        go.set()
        assert held.result(LONG)
        three = {"q": "three", "source": "en", "target": "de"}
        answer = httpx.post(f"{url}/translate", json=three, timeout=LONG).json()
    assert answer == {"translatedText": "drei"}
    assert seen == ["three"]


@pytest.fixture
def command(trained: Path, tmp_path: Path) -> Iterator[tuple[tiny.Command, str, Path]]:
    """`dragoman serve` as a process of its own, where it can be reached, and its model folder."""
    folder = tmp_path / "en-de"
    shutil.copytree(trained, folder, ignore=shutil.ignore_patterns("state"))
    words = [
        "serve",
        str(folder),
        "--port",
        "0",
        "--runtime",
        "torch",
        "--device",
        "cpu",
        "--set",
        "seconds=300",
        "--corrections",
        str(tmp_path / "corrections.sqlite"),
    ]
    process = tiny.Command(words, tmp_path)
    process.until(lambda: "open http" in process.errors)
    found = re.search(r"open (http://127\.0\.0\.1:\d+)", process.errors)
    assert found
    yield process, found[1], folder
    if process.process.is_alive():
        process.kill()


def test_signals(command: tuple[tiny.Command, str, Path]) -> None:
    """SIGHUP reads the models again while requests go on, and keeps the old where the new is
    broken; SIGTERM ends it after what was accepted."""
    process, url, folder = command
    body = {"q": ["one two three"] * 40, "source": "en", "target": "de"}
    expected = {"translatedText": ["eins zwei drei"] * 40}
    answers: list[Any] = []
    enough = threading.Event()
    sent = threading.Semaphore(0)

    def ask_again_and_again(client: httpx.Client) -> None:
        while not enough.is_set():
            answers.append(client.post("/translate", json=body).json())

    def told(event: str, _: Any) -> None:
        if event == "http11.send_request_body.complete":
            sent.release()

    with httpx.Client(base_url=url, timeout=LONG) as client, ThreadPoolExecutor(4) as pool:
        found = [pool.submit(ask_again_and_again, client) for _ in range(3)]
        wait_for(lambda: answers)
        process.kill(signal.SIGHUP)
        process.until(lambda: process.errors.count('"event": "reload"') == 1)
        (folder / "broken").write_bytes(b"broken")
        (folder / "broken").replace(folder / "model.safetensors")
        process.kill(signal.SIGHUP)
        process.until(lambda: process.errors.count('"event": "reload"') == 2)
        enough.set()
        for future in found:
            future.result()
        assert len(answers) >= 3
        assert all(answer == expected for answer in answers)
        reloads = [json.loads(line) for line in process.errors.splitlines() if '"reload"' in line]
        assert [len(one["problems"]) for one in reloads] == [0, 1]
        assert "the old model stays in use" in reloads[1]["problems"][0]
        trace = {"trace": told}
        late = [
            pool.submit(client.post, "/translate", json=body, extensions=trace) for _ in range(4)
        ]
        assert all(sent.acquire(timeout=LONG) for _ in late)
        # Who comes after them is answered, so that the server has read them.
        assert httpx.get(f"{url}/health", timeout=LONG).status_code == 200
        process.kill(signal.SIGTERM)
        assert [future.result().json() for future in late] == [expected] * 4
    assert process.wait() in (0, -signal.SIGTERM)
    assert "Traceback" not in process.errors
    assert "eins" not in process.errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_leaves_corrections_in_one_file(
    command: tuple[tiny.Command, str, Path], tmp_path: Path, number: int
) -> None:
    process, url, _ = command
    body = {"text": "one", "source": "en", "target": "de", "correction": "uno"}
    assert httpx.post(f"{url}/v1/corrections", json=body, timeout=LONG).json() == {"saved": True}
    process.kill(number)
    assert process.wait() in (0, -number)
    assert "Traceback" not in process.errors
    names = [path.name for path in tmp_path.iterdir() if "sqlite" in path.name]
    assert names == ["corrections.sqlite"]
    shutil.copy(tmp_path / "corrections.sqlite", tmp_path / "copy")
    copy = Corrections(tmp_path / "copy")
    assert [one.target for one in copy.all()] == ["uno"]
    copy.close()


def test_without_models_there_is_nothing_to_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "shipped_folders", lambda: [])
    with pytest.raises(
        OptionError, match="no model is named and none is bundled; name a model folder"
    ):
        app(["serve"], standalone_mode=False)


def test_a_key_by_command(tmp_path: Path) -> None:
    process = tiny.run(["add-key", str(tmp_path / "keys"), "anna", "--per-minute", "9"], tmp_path)
    assert process.wait() == 0
    key = process.output.strip()
    assert key not in (tmp_path / "keys").read_text()
    assert (tmp_path / "keys").read_text().startswith("anna ")
