"""DeepL's own client, the real package, against a server that listens: what it returns and which
exceptions it raises. Then what it cannot ask for."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deepl
import pytest
from deep_translator import DeeplTranslator
from deep_translator.exceptions import AuthorizationException
from deepl.api_data import MultilingualGlossaryDictionaryEntries
from live_server import live
from starlette.testclient import TestClient

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.documents import TAGGED, translate_document
from dragoman.errors import InputError
from dragoman.server import routes_deepl_documents
from dragoman.server.app import create_app
from dragoman.server.deepl_schema import DeeplText
from dragoman.server.fleet import Fleet
from dragoman.server.glossary_store import GlossaryStore, read_entries
from dragoman.server.guard import Guard, Limits, add_key
from dragoman.tasks.translation import Translation

Clients = Callable[..., TestClient]
Deepl = Callable[..., deepl.DeepLClient]
PAIR: Any = {"source_lang": "EN", "target_lang": "DE"}


@pytest.fixture(autouse=True)
def _asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would ask five times, with pauses, where the server is busy."""
    monkeypatch.setattr(deepl.http_client, "max_network_retries", 0)


@pytest.fixture(autouse=True)
def _status_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A document is asked for once, and the process that reads it may start slowly."""
    monkeypatch.setattr(routes_deepl_documents, "_PATIENCE", 60.0)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys"


@pytest.fixture
def deepl_of(
    fleet_of: Callable[..., Fleet], keys: Path
) -> Iterator[Callable[..., tuple[deepl.DeepLClient, str]]]:
    """Clients of servers that listen and require a key, and where they listen."""
    import contextlib

    with contextlib.ExitStack() as stack:

        def make(*names: str, **limits: Any) -> tuple[deepl.DeepLClient, str]:
            key = add_key(keys, f"anna{keys.exists()}")
            app = create_app(fleet_of(*names), Guard(Limits(**limits), keys))
            url = stack.enter_context(live(app))
            return deepl.DeepLClient(key, server_url=url), url

        yield make


# What it returns


def test_texts(deepl_of: Callable[..., Any]) -> None:
    client, _ = deepl_of()
    one = client.translate_text("one two three", source_lang="EN", target_lang="DE")
    assert (one.text, one.detected_source_lang, one.billed_characters) == (
        "eins zwei drei",
        "EN",
        13,
    )
    many = client.translate_text(["four", "", "five six"], target_lang="de", context="numbers")
    assert [result.text for result in many] == ["vier", "", "fünf sechs"]
    options: dict[str, Any] = {"formality": "prefer_more", "preserve_formatting": True}
    polite = client.translate_text("seven", target_lang="DE", split_sentences="0", **options)
    assert polite.text == "sieben"
    usage = client.get_usage()
    assert usage.character.count == 13 + 12 + 5
    assert not usage.any_limit_reached


def test_variants_and_languages(deepl_of: Callable[..., Any]) -> None:
    client, _ = deepl_of("de-en", "en-de", "en-fr")
    assert client.translate_text("one", source_lang="DE", target_lang="EN-GB").text == "eins"
    assert [one.code for one in client.get_source_languages()] == ["DE", "EN"]
    targets = {one.code: one for one in client.get_target_languages()}
    assert list(targets) == ["DE", "EN-GB", "EN-US", "FR"]
    assert (targets["EN-GB"].name, targets["DE"].supports_formality) == ("English (British)", False)
    pairs = [(one.source_lang, one.target_lang) for one in client.get_glossary_languages()]
    assert pairs == [("de", "en"), ("de", "fr"), ("en", "de"), ("en", "fr")]


def test_tags(deepl_of: Callable[..., Any]) -> None:
    client, _ = deepl_of()

    def texts(text: str, **how: Any) -> str:
        return client.translate_text(text, **PAIR, **how).text

    xml = "<doc><p>one <b>two</b> three</p><p>four</p></doc>"
    assert texts(xml, tag_handling="xml") == ("<doc><p>eins <b>zwei</b> drei</p><p>vier</p></doc>")
    kept = texts("one <x>two</x> three", tag_handling="xml", ignore_tags=["x"])
    assert "<x>two</x>" in kept
    assert kept.startswith("eins ")
    assert texts("<p>one <b>two</b></p>", tag_handling="html") == "<p>eins <b>zwei</b></p>"


def test_documents(deepl_of: Callable[..., Any], tmp_path: Path) -> None:
    client, _ = deepl_of()
    (tmp_path / "in.txt").write_text("one two\n\nthree\n")
    status = client.translate_document_from_filepath(
        tmp_path / "in.txt", tmp_path / "out.txt", **PAIR
    )
    assert (tmp_path / "out.txt").read_text() == "eins zwei\n\ndrei\n"
    assert (status.done, status.billed_characters) == (True, 12)
    # It is forgotten once it has been fetched.
    handle = client.translate_document_upload(b"four", filename="a.txt", **PAIR)
    assert client.translate_document_get_status(handle).done
    out = io.BytesIO()
    client.translate_document_download(handle, out)
    assert out.getvalue().decode() == "vier"
    with pytest.raises(deepl.DeepLException, match="Document not found"):
        client.translate_document_get_status(handle)
    # Whoever has not the key has nothing.
    other = client.translate_document_upload(b"four", filename="a.txt", **PAIR)
    stolen = deepl.DocumentHandle(other.document_id, handle.document_key)
    with pytest.raises(deepl.DeepLException, match="Document not found"):
        client.translate_document_get_status(stolen)
    with pytest.raises(deepl.DeepLException, match="Invalid file data"):
        client.translate_document_upload(b"MZ", filename="a.exe", **PAIR)
    broken = client.translate_document_upload(b"PK\3\4", filename="a.docx", **PAIR)
    status = client.translate_document_get_status(broken)
    assert not status.ok
    assert "a.docx cannot be read" in status.error_message
    with pytest.raises(deepl.DocumentTranslationException, match="cannot be read"):
        client.translate_document(b"PK\3\4", io.BytesIO(), filename="a.docx", **PAIR)


def test_glossaries_of_one_pair(deepl_of: Callable[..., Any]) -> None:
    client, _ = deepl_of()
    terms = {"two": "acht", "three": "neun"}
    made = client.create_glossary("Numbers", "EN", "DE", terms)
    assert (made.name, made.source_lang, made.target_lang, made.entry_count, made.ready) == (
        "Numbers",
        "EN",
        "DE",
        2,
        True,
    )
    assert client.get_glossary_entries(made) == terms
    assert client.get_glossary(made.glossary_id).creation_time == made.creation_time
    assert [one.glossary_id for one in client.list_glossaries()] == [made.glossary_id]
    found = client.translate_text("one two", glossary=made, **PAIR).text
    assert found == "eins acht"
    out = io.BytesIO()
    client.translate_document(b"one two", out, filename="a.txt", glossary=made, **PAIR)
    assert out.getvalue().decode() == "eins acht"
    client.delete_glossary(made)
    assert client.list_glossaries() == []
    for ask in (client.get_glossary, client.get_glossary_entries, client.delete_glossary):
        with pytest.raises(deepl.GlossaryNotFoundException):
            ask(made.glossary_id)
    from_csv = client.create_glossary_from_csv("Quoted", "EN", "DE", '"two","acht"\n')
    assert client.get_glossary_entries(from_csv) == {"two": "acht"}


def test_glossaries_of_several_pairs(deepl_of: Callable[..., Any]) -> None:
    client, _ = deepl_of("en-de", "de-en")
    entries = MultilingualGlossaryDictionaryEntries
    both = [entries("EN", "DE", {"two": "acht"}), entries("DE", "EN", {"zwei": "eight"})]
    made = client.create_multilingual_glossary("Numbers", both)
    assert [one.entry_count for one in made.dictionaries] == [1, 1]
    assert client.translate_text("one two", glossary=made, **PAIR).text == "eins acht"
    more = entries("EN", "DE", {"three": "neun"})
    changed = client.update_multilingual_glossary_dictionary(made, more)
    assert [one.entry_count for one in changed.dictionaries] == [2, 1]
    renamed = client.update_multilingual_glossary_name(made, "Zahlen")
    assert renamed.name == "Zahlen"
    client.replace_multilingual_glossary_dictionary(made, more)
    (dictionary,) = client.get_multilingual_glossary_entries(made, "EN", "DE").dictionaries
    assert dictionary.entries == "three\tneun" or dictionary.entries == {"three": "neun"}
    client.delete_multilingual_glossary_dictionary(made, source_lang="DE", target_lang="EN")
    left = client.get_multilingual_glossary(made.glossary_id)
    assert [(one.source_lang, one.target_lang) for one in left.dictionaries] == [("EN", "DE")]
    assert [one.name for one in client.list_multilingual_glossaries()] == ["Zahlen"]
    client.delete_multilingual_glossary(made)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_multilingual_glossary(made.glossary_id)


def test_the_way_through_a_third_language_is_named(client_of: Clients) -> None:
    body = {"text": ["one"], "source_lang": "EN", "target_lang": "FR"}
    answer = client_of("en-de", "de-fr").post("/v2/translate", json=body).json()
    assert answer["translations"][0]["via"] == "DE"


def test_deep_translator_at_another_address(deepl_of: Callable[..., Any]) -> None:
    client, url = deepl_of()
    key = client.headers["Authorization"].removeprefix("DeepL-Auth-Key ")
    other = DeeplTranslator("en", "de", api_key=key)
    other._base_url = f"{url}/v2/"  # it has no option for it
    assert other.translate("one two") == "eins zwei"
    stranger = DeeplTranslator("en", "de", api_key="wrong")
    stranger._base_url = f"{url}/v2/"
    with pytest.raises(AuthorizationException):
        stranger.translate("one")


# What it raises


def test_what_is_wrong_is_the_exception_that_it_has_for_it(deepl_of: Callable[..., Any]) -> None:
    client, url = deepl_of(characters=20, per_day=30)

    def ask(text: str = "one", **how: Any) -> str:
        return client.translate_text(text, **(PAIR | how)).text

    with pytest.raises(deepl.AuthorizationException):
        deepl.DeepLClient("wrong", server_url=url).translate_text("one", **PAIR)
    with pytest.raises(deepl.DeepLException, match="no model here translates") as unknown:
        ask(target_lang="FR")
    assert unknown.value.http_status_code == 400
    with pytest.raises(deepl.DeepLException, match="'formality' is not supported") as formal:
        ask(formality="more")
    assert formal.value.http_status_code == 400
    with pytest.raises(deepl.DeepLException) as large:
        ask("x" * 21)
    assert large.value.http_status_code == 413
    with pytest.raises(deepl.DeepLException, match="Glossary not found"):
        ask(glossary="5c0f")
    assert ask("one two three four") == "eins zwei drei vier"
    with pytest.raises(deepl.QuotaExceededException):
        ask("one two three")
    assert client.get_usage().character.limit == 30


def test_asking_too_often(deepl_of: Callable[..., Any]) -> None:
    client, _ = deepl_of(per_minute=2)
    for _ in range(2):
        client.translate_text("one", **PAIR)
    with pytest.raises(deepl.TooManyRequestsException) as caught:
        client.translate_text("one", **PAIR)
    assert caught.value.should_retry


# What it cannot ask for


def test_forms_with_several_texts(client_of: Clients) -> None:
    form = {"text": ["one", "two three"], **PAIR}
    answer = client_of().post("/v2/translate", data=form).json()
    assert [one["text"] for one in answer["translations"]] == ["eins", "zwei drei"]
    assert set(answer["translations"][0]) == {"text", "detected_source_language"}
    refused = client_of().post("/v2/translate", data={"text": "one"})
    assert (refused.status_code, list(refused.json())) == (400, ["message"])


def test_a_glossary_is_its_owners(client_of: Clients, keys: Path) -> None:
    headers = [{"Authorization": f"DeepL-Auth-Key {add_key(keys, name)}"} for name in "ab"]
    client = client_of(keys=keys)
    body = {"name": "Numbers", "entries": "two\tacht", **PAIR}
    made = client.post("/v2/glossaries", json=body, headers=headers[0]).json()["glossary_id"]
    path = f"/v2/glossaries/{made}"
    assert client.get(path, headers=headers[0]).status_code == 200
    assert client.get(path, headers=headers[1]).status_code == 404
    assert client.delete(path, headers=headers[1]).status_code == 404
    assert client.get("/v2/glossaries", headers=headers[1]).json() == {"glossaries": []}
    text = {"text": "two", "glossary_id": made, **PAIR}
    assert client.post("/v2/translate", json=text, headers=headers[1]).status_code == 404


def _stored(client: Any, **dictionaries: str) -> str:
    """The number of a new glossary of several pairs; `en_de` are the entries of one."""
    rows = []
    for pair, entries in dictionaries.items():
        source, target = pair.split("_")
        rows.append({"source_lang": source, "target_lang": target, "entries": entries})
    made = client.post("/v3/glossaries", json={"name": "Numbers", "dictionaries": rows})
    return str(made.json()["glossary_id"])


def test_several_glossaries_at_once(client_of: Clients) -> None:
    """Of terms that differ, that of the first glossary counts; one of other languages is no error,
    as long as there is another."""
    client = client_of("en-de", "de-fr")
    first = _stored(client, en_de="two\tacht", de_fr="zwei\thuit")
    second = _stored(client, en_de="two\tneun\nthree\tzehn")
    other = _stored(client, de_fr="zwei\thuit")

    def translated(ids: Any, **more: Any) -> Any:
        body = {"text": "one two three", "glossary_ids": ids, **PAIR, **more}
        return client.post("/v2/translate", json=body)

    def said(ids: Any) -> set[str]:
        text = translated(ids).json()["translations"][0]["text"]
        return {"acht", "neun", "zehn"}.intersection(text.split())

    assert said([first, second]) == {"acht", "zehn"}
    assert said([second, first]) == {"neun", "zehn"}
    assert said(f"{other},{first}") == {"acht"}
    form = {"text": "one two three", "glossary_ids": f"{first}, {second}", **PAIR}
    answer = client.post("/v2/translate", data=form).json()
    assert {"acht", "zehn"} <= set(answer["translations"][0]["text"].split())
    for wrong, status in (([other], 404), (["none"], 404), ([first, "none"], 404)):
        refused = translated(wrong)
        assert (refused.status_code, list(refused.json())) == (status, ["message"])
    both = translated([first], glossary_id=second)
    assert both.status_code == 400
    assert "'glossary_id' and 'glossary_ids'" in both.json()["message"]
    assert translated([first] * 11).status_code == 400


def test_several_glossaries_for_a_document(client_of: Clients) -> None:
    client = client_of()
    ids = [_stored(client, en_de="two\tacht"), _stored(client, en_de="three\tzehn")]
    sent = client.post(
        "/v2/document",
        data={"glossary_ids": ",".join(ids), **PAIR},
        files={"file": ("a.txt", b"one two three")},
    ).json()
    path = f"/v2/document/{sent['document_id']}"
    key = {"document_key": sent["document_key"]}
    assert client.post(path, json=key).json()["status"] == "done"
    written = client.post(f"{path}/result", json=key).text
    assert {"acht", "zehn"} <= set(written.split())


@pytest.mark.parametrize(
    "entries", ["", "two", "two\t", "two\tacht\tneun", "x" * 2000 + "\ty", '"two\tacht"\tx\ty\tz']
)
def test_entries_that_are_none(client_of: Clients, entries: str) -> None:
    body = {"name": "Numbers", "entries": entries, **PAIR}
    answer = client_of().post("/v2/glossaries", json=body)
    assert (answer.status_code, list(answer.json())) == (400, ["message"])


def test_glossaries_are_in_a_file_and_come_back(tmp_path: Path) -> None:
    path = tmp_path / "glossaries.json"
    made = GlossaryStore(path).create("anna", "Numbers", {"en-de": {"two": "acht"}})
    again = GlossaryStore(path)
    assert again.all_of("anna") == [made]
    again.delete(made)
    assert GlossaryStore(path).all_of("anna") == []
    path.write_text("[]")
    with pytest.raises(InputError, match="not a file of glossaries"):
        GlossaryStore(path)


def test_glossaries_are_bounded() -> None:
    store = GlossaryStore()
    for number in range(100):
        store.create("anna", f"{number}", {"en-de": {"two": "acht"}})
    with pytest.raises(InputError, match="delete some"):
        store.create("anna", "one too many", {"en-de": {"two": "acht"}})
    store.create("berta", "another's", {"en-de": {"two": "acht"}})
    with pytest.raises(InputError, match=r"10,001 terms"):
        read_entries("".join(f"a{number}\tb\n" for number in range(10_001)), "tsv")


def test_no_more_documents_wait_than_may(client_of: Clients, monkeypatch: Any) -> None:
    import asyncio

    client = client_of()
    app: Any = client.app

    async def slow(*anything: Any) -> list[str]:
        await asyncio.sleep(60)
        return []

    monkeypatch.setattr(app.state.workers, "texts", slow)

    def send() -> Any:
        return client.post("/v2/document", files={"file": ("a.txt", b"one")}, data=PAIR)

    sent = [send() for _ in range(5)]
    assert [answer.status_code for answer in sent] == [200] * 4 + [429]
    handle = sent[0].json()
    path = f"/v2/document/{handle['document_id']}"
    early = client.post(f"{path}/result", json={"document_key": handle["document_key"]})
    assert early.status_code == 503
    assert early.json() == {"message": "Document not ready; ask for its status"}


def test_which_tags_end_a_sentence() -> None:
    def asked(source: str, **settings: Any) -> list[str]:
        seen: list[str] = []

        def translate(texts: list[str]) -> list[Translation]:
            seen.extend(texts)
            return [Translation(text) for text in texts]

        data = source.encode()
        assert translate_document(TAGGED, data, translate, DocumentSettings(**settings)) == data
        return seen

    assert asked("<d><p>one</p><p>two <b>three</b></p></d>") == ["one", "two three"]
    assert asked("one<br/>two") == ["one two"]
    assert asked("one<br/>two", block_tags=("BR",)) == ["one", "two"]
    assert asked("<b>one</b><i>two</i>") == ["one", "two"]
    assert asked("<b>one</b><i>two</i>", inline_tags=("b", "i")) == ["onetwo"]
    assert asked("<b>one</b><i>two</i>", finds_blocks=False) == ["onetwo"]
    assert asked("<k>one</k><p>two</p>", kept_tags=("k",)) == ["two"]


@pytest.mark.parametrize(
    ("formality", "known", "tone"),
    [
        ("more", ("formal", "informal"), "formal"),
        ("less", ("formal", "informal"), "informal"),
        ("prefer_less", ("formal", "informal"), "informal"),
        ("prefer_more", (), ""),
        ("default", ("formal", "informal"), ""),
        ("less", (), None),
    ],
)
def test_formality_is_a_tone_where_a_model_knows_it(
    formality: str, known: tuple[str, ...], tone: str | None
) -> None:
    body = DeeplText.model_validate({"text": "one", "formality": formality, **PAIR})
    if tone is None:
        with pytest.raises(InputError, match="'formality' is not supported"):
            body.tone(known)
    else:
        assert body.tone(known) == tone


def test_settings_go_to_another_process_and_back() -> None:
    settings = DocumentSettings("en", "de", kept_tags=("x",), block_tags=("p",), finds_blocks=False)
    assert DocumentSettings.from_json(json.loads(json.dumps(settings.as_json()))) == settings
