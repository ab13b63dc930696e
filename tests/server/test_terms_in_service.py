"""Terms in the service: those of a request, those that came with a document, and those of the
service itself, on every route."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from patience import LONG
from starlette.testclient import TestClient

from dragoman.server.fleet import Fleet
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translate import Translator
from dragoman.text.glossary import Glossary, Term

PAIR = {"source": "en", "target": "de"}
TEXT = "one two three two"


def libretranslate(client: TestClient, text: str, **more: Any) -> str:
    answer = client.post("/translate", json={"q": text, **PAIR, **more})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["translatedText"])


def own(client: TestClient, text: str, **more: Any) -> str:
    answer = client.post("/v1/translate", json={"text": text, **PAIR, **more})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["translations"][0]["text"])


def document(client: TestClient, text: str, **more: Any) -> str:
    rows = more.pop("glossary", [])
    lines = "\n".join("\t".join(row) for row in rows)
    files = {"file": ("a.txt", text.encode(), "text/plain")}
    answer = client.post("/v1/documents", files=files, data={**PAIR, "glossary": lines})
    assert answer.status_code == 200, answer.text
    return answer.text


ROUTES = [libretranslate, own, document]


@pytest.mark.parametrize("ask", ROUTES)
def test_the_terms_of_a_request(client_of: Any, ask: Callable[..., str]) -> None:
    client = client_of()
    assert ask(client, TEXT, glossary=[["two", "neun"]]).split().count("neun") == 2
    assert "neun" not in ask(client, TEXT)


@pytest.mark.parametrize("ask", ROUTES)
def test_the_terms_of_the_service(client_of: Any, ask: Callable[..., str]) -> None:
    """They are for requests that bring none, and for the languages that they are for."""
    client = client_of()
    fleet: Fleet = client.app.state.fleet
    fleet.glossary = Glossary([Term("two", ("neun",)), Term("one", ("null",), ("fr", "de"))])
    found = ask(client, TEXT).split()
    assert found.count("neun") == 2
    assert "null" not in found
    assert "neun" not in ask(client, TEXT, glossary=[["three", "acht"]])


def test_terms_do_not_disturb_a_sample(client_of: Any) -> None:
    client = client_of()
    client.app.state.fleet.glossary = Glossary([Term("two", ("neun",))])
    assert own(client, TEXT, sample=True, seed=1)


def test_html_has_terms_too(client_of: Any) -> None:
    page = "<p>one <b>two</b> three</p>"
    found = libretranslate(client_of(), page, format="html", glossary=[["two", "neun"]])
    assert "neun" in found
    assert found.startswith("<p>")


@pytest.mark.parametrize("lines", ["two", "two\t" * 30, "a\tb\n" * 1001])
def test_bad_terms_of_a_document_are_named(client_of: Any, lines: str) -> None:
    files = {"file": ("a.txt", b"one", "text/plain")}
    answer = client_of().post("/v1/documents", files=files, data={**PAIR, "glossary": lines})
    assert answer.status_code == 400
    assert "the glossary has" in answer.json()["error"]


def test_only_the_first_sentence_of_a_text_begins_as_it_is_told(client_of: Any) -> None:
    found = own(client_of(), "one two. three four.", prefix="neun")
    assert found.split().count("neun") == 1


def test_the_terms_of_the_service_are_ready_before_the_first_request(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 100,000 of them, the first to ask would wait for seconds, and everybody with them."""
    terms = Glossary([Term("two", ("neun",))])
    fleet = Fleet([Path("digits")], lambda folder: translator, 20_000, glossary=terms)
    try:
        monkeypatch.setattr("dragoman.text.glossary._Index", None)
        engine = fleet.engines["en", "de"]
        asked = TranslateRequest(glossary=terms)
        assert "neun" in engine.submit("one two", asked).result(LONG).text
    finally:
        fleet.close()
