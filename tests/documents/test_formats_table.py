"""The table of formats, and the settings on their way through a service's processes."""

from __future__ import annotations

import asyncio
import inspect
import json

import pytest

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.documents import FORMATS, Format, translate_document, written_name
from dragoman.errors import MissingDependencyError
from dragoman.server.document_workers import DocumentWorkers, Sent
from dragoman.tasks.translation import Translation

SETTINGS = DocumentSettings("en", "ar", ("title", "3"))


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_of_the_table_is_a_function_of_bytes(ending: str) -> None:
    rewrite = FORMATS[ending].load()
    assert list(inspect.signature(rewrite).parameters) == ["data", "ask", "settings"]


def test_settings_come_back_from_json() -> None:
    sent = json.loads(json.dumps(SETTINGS.as_json()))
    assert DocumentSettings.from_json(sent) == SETTINGS


@pytest.mark.parametrize(
    ("language", "expected"),
    [("ar", True), ("he-IL", True), ("uz_Arab", True), ("de", False), ("arn", False), ("", False)],
)
def test_direction(language: str, expected: bool) -> None:
    assert DocumentSettings(target_language=language).is_right_to_left is expected


def test_a_format_may_be_written_as_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, ".scan", Format("plain.rewrite_plain", written_as=".html"))
    assert written_name("a.b.scan") == "a.b.html"
    assert written_name("a.txt") == "a.txt"


def test_a_missing_package_is_named_by_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, ".gone", Format("no_such_module.rewrite", extra="zstd"))
    with pytest.raises(MissingDependencyError, match="pip install zstandard"):
        translate_document("a.gone", b"x", lambda texts: [Translation(text) for text in texts])


def test_settings_reach_the_format_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A format of the test's own says what it was told."""
    run = """
import dragoman.documents.plain as plain
plain.rewrite_plain = lambda data, ask, settings: ask(repr(settings))[0].encode()
from dragoman.documents.document_worker import main; main()
"""
    monkeypatch.setattr("dragoman.server.document_workers._RUN", run)

    async def work() -> tuple[list[str], list[bytes]]:
        workers = DocumentWorkers()
        documents = [Sent("a.txt", b"x")]
        try:
            texts = await workers.texts(documents, 1_000, SETTINGS)
            answers = {repr(SETTINGS): Translation("done")}
            return texts, await workers.translated(documents, answers, SETTINGS)
        finally:
            workers.close()

    assert asyncio.run(work()) == ([repr(SETTINGS)], [b"done"])
