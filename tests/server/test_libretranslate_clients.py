"""LibreTranslate's clients, the real packages, against a server that listens: what they return and
which exceptions they raise."""

from __future__ import annotations

import asyncio
import urllib.error
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from deep_translator import LibreTranslator
from deep_translator.exceptions import AuthorizationException, ServerException
from libretranslatepy import LibreTranslateAPI
from live_server import live
from starlette.testclient import TestClient

from dragoman.server import stored_files
from dragoman.server.app import create_app
from dragoman.server.corrections import Corrections
from dragoman.server.fleet import Fleet
from dragoman.server.guard import Guard, Limits, add_key
from dragoman.server.quota import Quota
from dragoman.server.stored_files import StoredFile, StoredFiles

Clients = Callable[..., TestClient]
PAIR = {"source": "en", "target": "de"}


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def test_libretranslatepy_gets_the_status_of_what_is_wrong(
    fleet_of: Callable[..., Fleet], keys: Path
) -> None:
    key = add_key(keys, "anna", per_minute=5)
    with live(create_app(fleet_of(), Guard(Limits(characters=50), keys))) as url:

        def code(api_key: str | None, *request: str) -> int:
            with pytest.raises(urllib.error.HTTPError) as caught:
                LibreTranslateAPI(url, api_key).translate(*request)
            return caught.value.code

        assert code("wrong", "one", "en", "de") == 403
        assert code(None, "one", "en", "de") == 403
        assert code(key, "one", "en", "xx") == 400
        assert code(key, "x" * 60, "en", "de") == 400
        assert LibreTranslateAPI(url, key).translate("one", "en", "de") == "eins"
        for _ in range(2):
            LibreTranslateAPI(url, key).translate("one", "en", "de")
        assert code(key, "one", "en", "de") == 429


def test_deep_translator(fleet_of: Callable[..., Fleet], keys: Path, tmp_path: Path) -> None:
    key = add_key(keys, "anna")
    with live(create_app(fleet_of(), Guard(Limits(characters=50), keys))) as url:
        client = LibreTranslator("en", "de", api_key=key, custom_url=f"{url}/")
        assert client.translate("one two three") == "eins zwei drei"
        assert client.translate_batch(["four", "five six"]) == ["vier", "fünf sechs"]
        (tmp_path / "in.txt").write_text("seven eight")
        assert client.translate_file(str(tmp_path / "in.txt")) == "sieben acht"
        unknown = LibreTranslator("en", "fr", api_key=key, custom_url=f"{url}/")
        with pytest.raises(ServerException):
            unknown.translate("one")
        with pytest.raises(ServerException):
            client.translate("one " * 20)
        for wrong in ("wrong", "x"):
            stranger = LibreTranslator("en", "de", api_key=wrong, custom_url=f"{url}/")
            with pytest.raises(AuthorizationException):
                stranger.translate("one")


# What their calls get


def test_a_suggestion_is_a_correction(client_of: Clients, tmp_path: Path) -> None:
    client = client_of(corrections=Corrections(tmp_path / "corrections.sqlite"))
    suggestion = {"q": "one two", "s": "Eins und zwei", **PAIR}
    assert client.post("/suggest", json=suggestion).json() == {"success": True}
    assert client.post("/suggest", data=suggestion | {"q": "three"}).json() == {"success": True}
    for text in ("one two", "three"):
        answer = client.post("/translate", json={"q": text, **PAIR}).json()
        assert answer == {"translatedText": "Eins und zwei"}
    assert client.get("/frontend/settings").json()["suggestions"] is True
    empty = client.post("/suggest", json=suggestion | {"s": " "})
    assert (empty.status_code, set(empty.json())) == (400, {"error"})
    assert client.post("/suggest", json={"q": "one", **PAIR}).status_code == 400


def test_a_server_without_corrections_refuses_suggestions(client_of: Clients) -> None:
    answer = client_of().post("/suggest", json={"q": "one", "s": "eins", **PAIR})
    assert answer.status_code == 403
    assert answer.json() == {"error": "Suggestions are disabled on this server."}


def test_languages_are_detected_item_by_item(client_of: Clients) -> None:
    client = client_of("en-de", "de-en")
    texts = [
        "This is a sentence in plain English.",
        "Das ist ein schönes Haus und der Garten ist auch schön.",
    ]
    found = client.post("/detect", json={"q": texts}).json()
    assert [one["language"] for one in found] == ["en", "de"]
    assert len(client.post("/detect", json={"q": texts[0]}).json()) == 1
    answer = client.post("/translate", json={"q": texts, "target": "de"}).json()
    assert [one["language"] for one in answer["detectedLanguage"]] == ["en", "de"]
    assert answer["translatedText"][1] == texts[1]
    many = client_of(lines=5).post("/detect", json={"q": ["one"] * 6})
    assert many.status_code == 400


def test_fields_in_the_address_alone(client_of: Clients) -> None:
    answer = client_of().post("/translate", params={"q": "one two", **PAIR})
    assert answer.json() == {"translatedText": "eins zwei"}


def test_the_way_through_a_third_language_is_named(client_of: Clients) -> None:
    client = client_of("en-de", "de-fr")
    body = {"q": ["one", "two"], "source": "en", "target": "fr"}
    assert client.post("/translate", json=body).json()["via"] == ["de", "de"]
    assert client.post("/translate", json=body | {"q": "one"}).json()["via"] == "de"
    assert "via" not in client.post("/translate", json=body | {"target": "de"}).json()
    own = {"text": "one", "source": "en", "target": "fr"}
    found = client.post("/v1/translate", json=own).json()
    assert (found["via"], found["translations"][0]["via"]) == ("de", "de")
    files = {"file": ("a.txt", b"one")}
    languages = {"source": "en", "target": "fr"}
    answer = client.post("/v1/documents", files=files, data=languages)
    assert answer.headers["dragoman-via"] == "de"
    url = client.post("/translate_file", files=files, data=languages).json()["translatedFileUrl"]
    assert client.get(url).headers["dragoman-via"] == "de"
    assert "dragoman-via" not in client.post("/v1/documents", files=files, data=PAIR).headers


def test_the_description_is_where_their_clients_look(client_of: Clients) -> None:
    client = client_of()
    assert client.get("/spec").json() == client.get("/openapi.json").json()


# Files that wait to be fetched


def test_a_file_has_a_name_that_nobody_guesses_and_is_gone_on_stop(
    fleet_of: Callable[..., Fleet],
) -> None:
    app = create_app(fleet_of(), Guard(Limits()))
    with TestClient(app, client=("127.0.0.1", 50000)) as client:
        files = {"file": ("a.TXT", b"one two")}
        urls = [
            client.post("/translate_file", files=files, data=PAIR).json()["translatedFileUrl"]
            for _ in range(2)
        ]
        assert urls[0] != urls[1]
        assert urls[0].endswith(".txt")
        token = urls[0].rpartition("/")[2].removesuffix(".txt")
        assert len(token) == 32  # 24 random bytes
        assert httpx.URL(urls[0]).path == f"/download_file/{token}.txt"
        assert client.get(urls[0]).text == "eins zwei"
        assert client.get(urls[0].replace(token, token[::-1])).status_code == 404
    assert not app.state.files._files


def kept(files: StoredFiles, tokens: dict[str, str]) -> set[str]:
    return {name for name, token in tokens.items() if files.get(token) is not None}


def test_a_client_drives_out_its_own_files_first() -> None:
    async def run() -> None:
        files = StoredFiles(files=6, size=1000)
        tokens = {"berta": files.put(StoredFile("berta", "b", b"x" * 100))}
        for number in range(5):
            file = StoredFile("anna", "a", b"x" * 100)
            tokens[f"anna {number}"] = files.put(file)
        # Three are half of six.
        assert kept(files, tokens) == {"berta", "anna 2", "anna 3", "anna 4"}
        tokens["large"] = files.put(StoredFile("anna", "a", b"x" * 450))
        assert kept(files, tokens) == {"berta", "large"}
        tokens["larger"] = files.put(StoredFile("carl", "c", b"x" * 2000))
        assert kept(files, tokens) == {"larger"}  # the newest, whatever its size

    asyncio.run(run())


def test_a_file_waits_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        files = StoredFiles()
        token = files.put(StoredFile("anna", "a", b"x"))
        assert files.get(token) is not None
        monkeypatch.setattr(stored_files, "SECONDS", 0.05)
        token = files.put(StoredFile("anna", "a", b"x"))
        await asyncio.sleep(0.2)
        assert files.get(token) is None
        assert token not in files._files  # not only out of reach

    asyncio.run(run())


# A day's characters


def test_a_day_has_so_many_characters(client_of: Clients, keys: Path) -> None:
    own_keys = [add_key(keys, name) for name in ("anna", "berta")]
    client = client_of(keys=keys, per_day=10)

    def ask(key: str, text: str) -> Any:
        return client.post("/translate", json={"q": text, **PAIR, "api_key": key})

    assert ask(own_keys[0], "one two").status_code == 200
    refused = ask(own_keys[0], "three")
    assert refused.status_code == 429
    assert 0 < int(refused.headers["retry-after"]) <= 86_401
    assert "10 characters in a day" in refused.json()["error"]
    assert ask(own_keys[0], "one").status_code == 200  # seven and three
    assert ask(own_keys[1], "one two").status_code == 200  # each has its own
    assert ask(own_keys[1], "xx" * 3).status_code == 429
    files = {"file": ("a.txt", b"one two three")}
    bearer = {"Authorization": f"Bearer {own_keys[1]}"}
    answer = client.post("/v1/documents", files=files, data=PAIR, headers=bearer)
    assert answer.status_code == 429


def test_a_new_day_begins_at_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    quota = Quota(10)
    assert quota.take("anna", 10)
    assert not quota.take("anna", 1)
    assert quota.used("anna") == 10
    monkeypatch.setattr("dragoman.server.quota.today", lambda: None)
    assert quota.used("anna") == 0
    assert quota.take("anna", 10)
    free = Quota(0)
    assert free.take("anna", 10**9)
    assert free.used("anna") == 10**9
