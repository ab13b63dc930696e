"""Several processes behind one port, as a user starts them. Every request has a connection of its
own, so that any process may get it."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import httpx
import pytest
from patience import LONG, wait_for

from dragoman.errors import OptionError
from dragoman.server import shared_counts
from dragoman.server.correction_users import user_of
from dragoman.server.file_spool import FileSpool
from dragoman.server.glossary_store import GlossaryStore, NoGlossaryError
from dragoman.server.processes import reserve
from dragoman.server.shared_counts import SharedQuota, SharedRates
from dragoman.server.stored_files import SECONDS, StoredFile

pytestmark = pytest.mark.skipif(
    not hasattr(socket, "SO_REUSEPORT"), reason="this system does not share ports"
)
TRIES = 12  # requests of which one process alone would answer all once in 2048 times


@dataclass
class Running:
    """A service that runs."""

    process: subprocess.Popen[str]
    url: str
    said: list[str]

    def ask(self, method: str, path: str, **sent: object) -> httpx.Response:
        """One request by a connection of its own."""
        with httpx.Client(base_url=self.url, timeout=LONG) as client:
            return client.request(method, path, **sent)  # type: ignore[arg-type]

    def children(self) -> list[int]:
        """The processes that serve."""
        own = self.process.pid
        listed = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return [int(one) for one in listed if b"spawn_main" in _command(int(one))]

    def until(self, pattern: str, count: int = 1) -> None:
        """Wait until so many lines like this have been said."""
        wait_for(lambda: sum(bool(re.search(pattern, line)) for line in self.said) >= count)


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


@contextmanager
def serving(model: Path, *words: str) -> Iterator[Running]:
    command = [sys.executable, "-m", "dragoman", "serve", str(model), "--port", "0", *words]
    package = str(Path(__file__).parents[2])
    path = os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    stream = process.stderr
    said: list[str] = []
    threading.Thread(target=lambda: said.extend(iter(stream.readline, "")), daemon=True).start()
    running = Running(process, "", said)
    try:
        running.until("open http|error")
        found = re.search(r"http://\S+", "".join(said))
        assert found, said
        running.url = found[0]
        yield running
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(LONG)


@pytest.fixture(scope="module")
def service(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("processes")
    words = ["--processes", "2", "--corrections", str(folder / "corrections.sqlite")]
    with serving(trained, *words) as running:
        yield running
        children = running.children()
        running.process.terminate()
        # A stop finishes what was begun, and nobody is left behind.
        assert running.process.wait(LONG) == 0
        assert not any(Path(f"/proc/{child}").exists() for child in children)


def test_what_one_process_is_told_all_know(service: Running) -> None:
    assert len(service.children()) == 2
    sent = {"q": "one two", "source": "en", "target": "de"}
    plain = {service.ask("POST", "/translate", json=sent).text for _ in range(TRIES)}
    assert len(plain) == 1
    own = {"q": "one two", "s": "unus duo", "source": "en", "target": "de"}
    assert service.ask("POST", "/suggest", json=own).status_code == 200
    answers = [service.ask("POST", "/translate", json=sent) for _ in range(TRIES)]
    assert {answer.json()["translatedText"] for answer in answers} == {"unus duo"}
    counted = service.ask("GET", "/metrics").text
    lines = [
        line for line in counted.splitlines() if "seconds_count" in line and "/translate" in line
    ]
    assert sum(float(line.split()[-1]) for line in lines) == 2 * TRIES


def test_a_document_is_fetched_from_any_process(service: Running) -> None:
    sent = {"q": "one two", "source": "en", "target": "de"}  # whatever was suggested for it
    expected = service.ask("POST", "/translate", json=sent).json()["translatedText"]
    for _ in range(4):
        upload = service.ask(
            "POST",
            "/v2/document",
            files={"file": ("a.txt", b"one two\n")},
            data={"source_lang": "EN", "target_lang": "DE"},
        )
        handle = upload.json()
        key = {"document_key": handle["document_key"]}
        place = f"/v2/document/{handle['document_id']}"
        while service.ask("POST", place, json=key).json()["status"] != "done":
            time.sleep(0.01)
        assert service.ask("POST", f"{place}/result", json={"document_key": "x"}).status_code == 404
        fetched = service.ask("POST", f"{place}/result", json=key)
        assert fetched.text == f"{expected}\n"
        gone = [service.ask("POST", f"{place}/result", json=key).status_code for _ in range(6)]
        assert gone == [404] * 6


def test_a_glossary_is_known_to_all(service: Running) -> None:
    made = service.ask(
        "POST",
        "/v2/glossaries",
        json={
            "name": "mine",
            "source_lang": "en",
            "target_lang": "de",
            "entries": "nine\tIX",
            "entries_format": "tsv",
        },
    )
    number = made.json()["glossary_id"]
    found = [service.ask("GET", f"/v2/glossaries/{number}").status_code for _ in range(TRIES)]
    assert found == [200] * TRIES
    assert service.ask("DELETE", f"/v2/glossaries/{number}").status_code == 204
    found = [service.ask("GET", f"/v2/glossaries/{number}").status_code for _ in range(TRIES)]
    assert found == [404] * TRIES


def test_a_reload_reaches_all(service: Running) -> None:
    service.process.send_signal(signal.SIGHUP)
    service.until('"event": "reload"', 2)
    assert service.ask("POST", "/v1/admin/reload").json() == {"reloaded": True, "problems": []}
    service.until('"event": "reload"', 5)  # the one that was asked, and then both


def test_a_process_that_dies_is_replaced(service: Running) -> None:
    before = set(service.children())
    os.kill(min(before), signal.SIGKILL)
    wait_for(lambda: len(service.children()) >= 2 and set(service.children()) != before)
    statuses = set()
    for _ in range(TRIES):
        statuses.add(service.ask("GET", "/health").status_code)
    assert statuses == {200}


def test_limits_hold_for_all_together_and_where_the_first_dies_the_others_leave(
    trained: Path,
) -> None:
    words = ["--processes", "2", "--no-corrections", "--set", "per_minute=5"]
    with serving(trained, *words) as running:
        sent = {"q": "one two", "source": "en", "target": "de"}
        statuses = [running.ask("POST", "/translate", json=sent).status_code for _ in range(8)]
        assert statuses == [200] * 5 + [429] * 3
        children = running.children()
        assert len(children) == 2
        running.process.kill()
        wait_for(lambda: not any(b"spawn_main" in _command(child) for child in children))


def test_a_mistake_is_said_once(tmp_path: Path) -> None:
    words = ["serve", str(tmp_path / "nothing"), "--port", "0", "--processes", "2"]
    package = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", *words, "--no-corrections"],
        capture_output=True,
        text=True,
        timeout=LONG,
        env={**os.environ, "PYTHONPATH": package},
    )
    assert done.returncode == 2
    assert done.stderr.count("error:") == 1


def test_a_port_of_another_program_is_not_shared() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(OSError, match="in use"):
        reserve(other.getsockname()[:2], socket.AF_INET)
    with reserve(("127.0.0.1", 0), socket.AF_INET) as first:
        port = first.getsockname()[1]
        first.listen()
        with pytest.raises(OSError, match="in use"):
            reserve(("127.0.0.1", port), socket.AF_INET)


def test_no_shared_ports_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "SO_REUSEPORT")
    with pytest.raises(OptionError, match="--processes needs SO_REUSEPORT"):
        reserve(("127.0.0.1", 0), socket.AF_INET)


def test_counts_are_those_of_all(tmp_path: Path) -> None:
    first = SharedQuota(tmp_path / "counts", 100)
    second = SharedQuota(tmp_path / "counts", 100)
    assert first.take("anna", 60)
    assert not second.take("anna", 50)
    assert second.take("anna", 40)
    assert first.used("anna") == 100
    assert second.take("ben", 100)
    one = SharedRates(tmp_path / "counts")
    other = SharedRates(tmp_path / "counts")
    waits = [rates.take("anna", 2) for rates in (one, other, one)]
    assert waits[:2] == [0, 0]
    assert 25 < waits[2] <= 30


def test_the_clients_of_a_day_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_counts, "_CLIENTS", 3)
    quota = SharedQuota(tmp_path / "counts", 100)
    rates = SharedRates(tmp_path / "counts")
    for number in range(5):
        assert quota.take(f"client {number}", 10 + number)
        assert rates.take(f"client {number}", 1) == 0
    assert quota.take("client 2", 1)  # it has now asked last
    assert quota.take("client 5", 10)
    assert [quota.used(f"client {number}") for number in range(6)] == [0, 0, 13, 0, 14, 10]
    with sqlite3.connect(tmp_path / "counts") as database:
        for table in ("used", "rates"):
            assert database.execute(f"SELECT count(*) FROM {table}").fetchone() == (3,)


def test_a_new_day_begins_at_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quota = SharedQuota(tmp_path / "counts", 100)
    monkeypatch.setattr(shared_counts, "today", lambda: date(2026, 1, 1))
    assert quota.take("anna", 90)
    assert quota.take("ben", 90)
    monkeypatch.setattr(shared_counts, "today", lambda: date(2026, 1, 2))
    assert quota.take("anna", 80)
    assert [quota.used(name) for name in ("anna", "ben")] == [80, 0]
    with sqlite3.connect(tmp_path / "counts") as database:
        assert database.execute("SELECT client FROM used").fetchall() == [("anna",)]


def test_an_address_is_one_user_for_all_processes() -> None:
    """Or else it could have as many corrections learnt as there are processes times what it may."""
    address = "203.0.113.9"
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.map(user_of, [address] * 2, chunksize=1)
    assert found == [user_of(address)] * 2


def test_glossaries_of_two_stores_of_one_file(tmp_path: Path) -> None:
    path = tmp_path / "glossaries.json"
    first = GlossaryStore(path, shared=True)
    second = GlossaryStore(path, shared=True)
    terms = {"en-de": {"nine": "IX"}}
    made = [store.create("anna", str(n), terms) for n, store in enumerate((first, second, first))]
    assert [one.name for one in second.all_of("anna")] == ["0", "1", "2"]
    second.delete(made[0])
    assert [one.name for one in first.all_of("anna")] == ["1", "2"]


def test_no_store_undoes_what_another_did(tmp_path: Path) -> None:
    """Each changes what is there now, not what it read when its request came."""
    path = tmp_path / "glossaries.lock"
    first = GlossaryStore(path, shared=True)
    second = GlossaryStore(path, shared=True)
    read = first.create("anna", "numbers", {"en-de": {"nine": "IX"}})
    first.change(read, lambda now: replace(now, name="Roman"))
    second.change(read, lambda now: replace(now, dictionaries={**now.dictionaries, "de-en": {}}))
    (found,) = first.all_of("anna")
    assert found.name == "Roman"
    assert set(found.dictionaries) == {"en-de", "de-en"}
    second.delete(read)
    with pytest.raises(NoGlossaryError):
        first.change(read, lambda now: now)
    assert second.all_of("anna") == []


def test_files_that_a_dead_process_left_are_removed(tmp_path: Path) -> None:
    left = FileSpool(tmp_path)
    left.put(StoredFile("anna", "old", b"x", token="old"))
    left.put(StoredFile("anna", "new", b"x", token="new"))
    (path,) = [one for one in tmp_path.iterdir() if b'"old"' in one.read_bytes()]
    long_ago = time.time() - 2 * SECONDS
    os.utime(path, (long_ago, long_ago))
    FileSpool(tmp_path).put(StoredFile("ben", "other", b"y", token="other"))
    assert [left.has(token) for token in ("old", "new", "other")] == [False, True, True]


def test_a_document_whose_process_died_is_not_waited_for(tmp_path: Path) -> None:
    spool = FileSpool(tmp_path)
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait(LONG)
    for token, process in (("lost", ended.pid), ("begun", os.getpid())):
        spool.put(StoredFile("anna", "a.txt", token=token, process=process))
    spool.put(StoredFile("anna", "a.txt", b"done", token="done", process=ended.pid))
    found = [spool.get(token) for token in ("lost", "begun", "done")]
    problems = [one.problem for one in found if one is not None]
    assert problems == ["the server stopped while it translated this; send it again", "", ""]


def test_a_number_that_is_now_another_users_process_is_one_that_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = FileSpool(tmp_path)
    spool.put(StoredFile("anna", "a.txt", token="lost"))

    def refused(process: int, number: int) -> None:
        raise PermissionError(process, number)

    monkeypatch.setattr(os, "kill", refused)
    found = spool.get("lost")
    assert found is not None
    assert found.problem.startswith("the server stopped")


def test_a_reload_that_comes_before_it_can_be_answered_waits() -> None:
    """In a process of its own, which a SIGHUP would end."""
    words = [
        "import os, signal",
        "from dragoman.server.processes import hold_reloads, reload_others",
        "hold_reloads()",
        "os.kill(os.getpid(), signal.SIGHUP)",
        "reload_others()",  # without a parent that serves, nobody is asked
        "print(signal.sigpending() == {signal.SIGHUP})",
    ]
    package = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(words)],
        capture_output=True,
        text=True,
        timeout=LONG,
        env={**os.environ, "PYTHONPATH": package},
    )
    assert done.stdout == "True\n", done.stderr
