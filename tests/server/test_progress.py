"""Documents whose translation is told while it goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from office_files import open_document
from starlette.testclient import TestClient

from dragoman.server.guard import add_key
from dragoman.server.routes_progress import _is_news, _notes
from dragoman.tasks.translation import Translation

Clients = Callable[..., TestClient]
ROUTE = "/v1/documents/stream"
PAIR = {"source": "en", "target": "de"}


def sent(client: TestClient, name: str, data: bytes, **fields: str) -> Any:
    return client.post(ROUTE, files={"file": (name, data)}, data=PAIR | fields)


def events(answer: Any) -> list[tuple[str, Any]]:
    found = []
    for block in answer.text.strip().split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_it_tells_how_far_it_is_and_where_the_file_is(client_of: Clients) -> None:
    client = client_of()
    answer = sent(client, "digits.txt", b"one\n\ntwo three\n\none\n")
    assert answer.headers["content-type"].startswith("text/event-stream")
    *steps, (name, done) = events(answer)
    assert steps == [("message", {"done": 1, "of": 2}), ("message", {"done": 2, "of": 2})]
    assert name == "done"
    assert {"source": "en", "texts": 2, "flagged": 0, "notes": []}.items() <= done.items()
    fetched = client.get("/" + done["url"])
    assert fetched.content.decode() == "eins\n\nzwei drei\n\neins\n"
    assert "attachment" in fetched.headers["content-disposition"]


def test_a_file_without_text_is_done_at_once(client_of: Clients) -> None:
    client = client_of()
    code = b"```\none two\n```\n"
    ((name, done),) = events(sent(client, "code.md", code))
    assert (name, done["texts"]) == ("done", 0)
    assert client.get("/" + done["url"]).content == code


def test_a_glossary_goes_with_a_file(client_of: Clients) -> None:
    client = client_of()
    *_, (_, done) = events(sent(client, "a.txt", b"one two", glossary="two\tbeide"))
    assert "beide" in client.get("/" + done["url"]).text
    refused = sent(client, "a.txt", b"one two", glossary="two")
    assert refused.status_code == 400
    assert "glossary" in refused.json()["error"]


def test_the_source_is_detected_by_the_text_of_a_file(client_of: Clients) -> None:
    """The bytes of an .html file are tags before they are German."""
    client = client_of("en-de", "de-en")
    words = "Wo ist der nächste Bahnhof? Ich möchte es gern wissen."
    page = "<html><head><style>" + "body { color: red } " * 200 + f"</style></head><p>{words}</p>"
    *_, (_, done) = events(sent(client, "a.html", page.encode(), source="auto", target="en"))
    assert done["source"] == "de"


@pytest.mark.parametrize("route", ["/v1/documents", "/translate_file", "/v2/document"])
def test_the_source_of_a_zip_is_detected_on_every_route(client_of: Clients, route: str) -> None:
    """The bytes of an office file are no text in any language."""
    client = client_of("en-de", "de-en")
    body = "<text:p>Wo ist der nächste Bahnhof? Ich möchte es gern wissen.</text:p>"
    languages = {"source": "auto", "target": "en", "target_lang": "EN"}
    file = {"file": ("a.odt", open_document(body))}
    answer = client.post(route, files=file, data=languages)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("name", "data", "fields", "status", "said"),
    [
        ("a.exe", b"MZ\0", {}, 400, "exe"),
        ("a.txt", b"", {}, 400, "0 bytes"),
        ("a.docx", b"no archive", {}, 400, "a.docx"),
        ("a.txt", b"one", {"target": "xx"}, 400, "xx"),
        ("a.txt", b"one " * 100, {}, 413, "100"),
    ],
)
def test_what_cannot_be_translated_is_refused_before_it_begins(
    client_of: Clients, name: str, data: bytes, fields: dict[str, str], status: int, said: str
) -> None:
    answer = sent(client_of(document=100), name, data, **fields)
    assert answer.status_code == status
    assert said in answer.json()["error"]


def test_a_key_is_asked_for_first(client_of: Clients, tmp_path: Path) -> None:
    keys = tmp_path / "keys.txt"
    key = add_key(keys, "anna")
    client = client_of(keys=keys)
    assert sent(client, "a.exe", b"MZ").status_code in (401, 403)
    client.headers["Authorization"] = f"Bearer {key}"
    assert events(sent(client, "a.txt", b"one"))[-1][0] == "done"


def test_only_hundredths_are_told() -> None:
    told = [done for done in range(1, 1001) if _is_news(done, 1000)]
    assert told == list(range(10, 1001, 10))
    assert [done for done in (1, 2, 3) if _is_news(done, 3)] == [1, 2, 3]


def test_what_may_be_wrong_is_listed() -> None:
    translations = {
        str(number): Translation("x" * 400, flags=("numbers",)) for number in range(150)
    }
    translations |= {"own": Translation("y", flags=("corrected",)), "fine": Translation("z")}
    found = _notes(translations)
    assert found["flagged"] == 150
    assert len(found["notes"]) == 100
    assert found["notes"][0] == {"text": "0", "translation": "x" * 300, "flags": ["numbers"]}
