"""Documents of the service in processes of their own: the same documents come back, and one that is
too much for a process is refused in a sentence while the service goes on."""

from __future__ import annotations

import asyncio
import re
import resource
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import httpx
import pytest
from live_server import live
from starlette.testclient import TestClient

from dragoman.documents.documents import translate_document
from dragoman.errors import InputError
from dragoman.server import document_workers
from dragoman.server.app import create_app
from dragoman.server.document_workers import DocumentTooLargeError, DocumentWorkers, Sent
from dragoman.server.fleet import Fleet
from dragoman.server.guard import Guard, Limits
from dragoman.tasks.translation import Translation

Clients = Callable[..., TestClient]
Result = TypeVar("Result")
PAIR = {"source": "en", "target": "de"}
SMALL = Sent("small.html", b"<p>one <b>two</b></p>")
SLOW = Sent("slow.md", b"- x\n" * 200_000)  # half a minute
EXHAUSTED = "takes more time or memory to read than a document may; send it in parts"
RUN = "import dragoman.documents.document_worker as worker; worker.{}; worker.main()"


def with_workers(work: Callable[[DocumentWorkers], Awaitable[Result]]) -> Result:
    """What is found out with some processes, which end afterwards."""

    async def run() -> Result:
        workers = DocumentWorkers()
        try:
            return await work(workers)
        finally:
            workers.close()

    return asyncio.run(run())


def shout(text: str) -> Translation:
    count = len(text.split())
    return Translation(text.upper(), alignment=tuple((place, place) for place in range(count)))


def test_the_same_documents_come_back() -> None:
    documents = [
        SMALL,
        Sent("a.md", "# eins *zwei* é\n\n- drei".encode()),
        Sent("a.txt", b"one two\n\nthree\n"),
        Sent("a.srt", b"1\n00:00:00,000 --> 00:00:01,000\none <i>two</i>\n"),
    ]

    async def work(workers: DocumentWorkers) -> list[bytes]:
        texts = await workers.texts(documents, 1_000)
        return await workers.translated(documents, {text: shout(text) for text in texts})

    expected = [
        translate_document(one.name, one.data, lambda texts: [shout(text) for text in texts])
        for one in documents
    ]
    assert with_workers(work) == expected


def test_a_document_that_is_damaged_or_has_too_much_text() -> None:
    async def work(workers: DocumentWorkers) -> None:
        with pytest.raises(InputError, match=r"a\.docx cannot be read as \.docx \(File is not a"):
            await workers.texts([Sent("a.docx", b"no zip")], 100)
        with pytest.raises(DocumentTooLargeError, match="may have 5 characters; send it in parts"):
            await workers.texts([SMALL], 5)
        assert await workers.texts([SMALL], 100) == ["one two"]

    with_workers(work)


def seconds_of_processes(work: Callable[[], object]) -> float:
    """The processor time of the processes that some work has started, which have ended."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def refused_and_next_answered(document: Sent, then: Callable[[], None] = lambda: None) -> None:
    """`then` is called between the two."""

    async def work(workers: DocumentWorkers) -> None:
        with pytest.raises(DocumentTooLargeError, match=f"{document.name} {EXHAUSTED}"):
            await workers.texts([document], 10**9)
        then()
        assert await workers.texts([SMALL], 100) == ["one two"]

    assert seconds_of_processes(lambda: with_workers(work)) < 20


def test_the_clock_ends_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_workers, "DEADLINE", 1.0)
    refused_and_next_answered(SLOW, monkeypatch.undo)  # another process may take as long to start


def test_its_own_time_ends_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_workers, "_RUN", RUN.format("CPU_SECONDS = 1"))
    refused_and_next_answered(SLOW)


def test_its_memory_ends_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_workers, "_RUN", RUN.format("MEMORY = 2**27"))
    refused_and_next_answered(Sent("large.html", b"<b>x" * 500_000))


def test_a_client_that_leaves_ends_the_work() -> None:
    async def work(workers: DocumentWorkers) -> None:
        asking = asyncio.ensure_future(workers.texts([SLOW], 10**9))
        await asyncio.sleep(0.5)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await workers.texts([SMALL], 100) == ["one two"]

    assert seconds_of_processes(lambda: with_workers(work)) < 10


def test_the_service_refuses_with_a_sentence_and_goes_on(
    client_of: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(document=10**9, characters=10**6, queue=10**6)
    monkeypatch.setattr(document_workers, "DEADLINE", 1.0)
    page = "<b>x" * 200_000
    answers = [
        client.post("/v1/documents", files={"file": (SLOW.name, SLOW.data)}, data=PAIR),
        client.post("/translate", json={"q": page, "format": "html", **PAIR}),
    ]
    assert [answer.status_code for answer in answers] == [413, 400]  # LibreTranslate's clients
    for answer in answers:
        assert re.fullmatch(rf"(slow\.md|text\.html) {EXHAUSTED}", answer.json()["error"])
    monkeypatch.undo()
    files = {"file": (SMALL.name, SMALL.data)}
    assert client.post("/v1/documents", files=files, data=PAIR).status_code == 200
    pages = {"q": ["<b>one</b>", " ", "two"], "format": "html", **PAIR}
    made = client.post("/translate", json=pages).json()["translatedText"]
    assert [made[0].startswith("<b>"), made[1], len(made)] == [True, " ", 3]


def test_health_is_answered_whatever_is_uploaded(fleet_of: Callable[..., Fleet]) -> None:
    """The bound is for a busy machine; benchmarks/document_health.py measures a quiet one."""
    app = create_app(fleet_of(), Guard(Limits()))
    done = threading.Event()
    page = b"<p>hi <a " + b"a" * 9_000_000 + b">x</a></p>" + b"<b>x" * 20_000

    def upload(url: str) -> None:
        with httpx.Client(timeout=100) as client:
            files = {"file": ("page.html", page)}
            statuses.append(client.post(f"{url}/v1/documents", files=files, data=PAIR).status_code)
        done.set()

    statuses: list[int] = []
    slowest = 0.0
    with live(app) as url, httpx.Client() as client:
        sender = threading.Thread(target=upload, args=(url,))
        sender.start()
        while not done.is_set():
            start = time.monotonic()
            assert client.get(f"{url}/health").status_code == 200
            slowest = max(slowest, time.monotonic() - start)
            time.sleep(0.02)
        sender.join()
    assert statuses == [200]
    assert slowest < 1.0


def test_a_process_finds_modules_without_the_folder_it_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('not this one')\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")

    async def work(workers: DocumentWorkers) -> list[str]:
        return await workers.texts([SMALL], 100)

    assert with_workers(work) == ["one two"]
