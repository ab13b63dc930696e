"""The routes, by an app without a network: what they take, answer and refuse."""

from __future__ import annotations

import json
import os
import re
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import tiny
from hypothesis import strategies as st
from patience import LONG
from starlette.testclient import TestClient

from dragoman.decoding.search_options import SearchOptions
from dragoman.server.corrections import Corrections
from dragoman.server.fleet import Fleet
from dragoman.server.guard import add_key
from dragoman.tasks.translate import Translator

Clients = Callable[..., TestClient]
PAIR = {"source": "en", "target": "de"}


@pytest.fixture
def client(client_of: Clients) -> TestClient:
    return client_of()


def german(text: str) -> str:
    """Word by word, as the model has learnt it."""
    return " ".join(tiny.GERMAN[tiny.ENGLISH.index(word)] for word in text.split())


# LibreTranslate's


def test_a_text_or_a_list_as_json_or_form(client: TestClient) -> None:
    one = {"q": "one two three", **PAIR}
    assert client.post("/translate", json=one).json() == {"translatedText": "eins zwei drei"}
    assert client.post("/translate", data=one).json() == {"translatedText": "eins zwei drei"}
    many = {"q": ["four five", "", "six"], **PAIR}
    assert client.post("/translate", json=many).json() == {
        "translatedText": ["vier fünf", "", "sechs"]
    }
    assert client.post("/translate", json={"q": [], **PAIR}).json() == {"translatedText": []}
    assert client.post("/translate", json={"q": "", "target": "de"}).json()["translatedText"] == ""
    assert client.post("/detect", json={"q": ""}).status_code == 200


def test_white_space_and_lines_stay(client: TestClient) -> None:
    text = "  one two\r\n\n\tthree four \n"
    found = client.post("/translate", json={"q": text, **PAIR}).json()["translatedText"]
    assert found == "  eins zwei\r\n\n\tdrei vier \n"


def test_alternatives(client: TestClient, translator: Translator) -> None:
    found = client.post("/translate", json={"q": "one two three", **PAIR, "alternatives": 2}).json()
    best = translator.translate(["one two three"], SearchOptions(nbest=3))[0]
    assert found == {
        "translatedText": best.text,
        "alternatives": [other.text for other in best.alternatives],
    }
    assert len(found["alternatives"]) == 2


def test_a_language_is_detected(client: TestClient) -> None:
    found = client.post(
        "/translate", json={"q": "one two three", "source": "auto", "target": "de"}
    ).json()
    assert found["translatedText"] == "eins zwei drei"
    assert found["detectedLanguage"]["language"] == "en"
    assert 50 < found["detectedLanguage"]["confidence"] <= 100
    german = client.post(
        "/detect", json={"q": "Das ist ein schönes Haus und der Garten ist auch schön"}
    ).json()
    assert [one["language"] for one in german] == ["de"]


def test_no_language_is_guessed_that_the_detector_does_not_know(client_of: Clients) -> None:
    client = client_of("xx-yy")
    answer = client.post("/translate", json={"q": "one", "target": "yy"})
    assert answer.status_code == 400
    assert "name the source" in answer.json()["error"]
    assert client.post("/translate", json={"q": "one", "source": "xx", "target": "yy"}).json() == {
        "translatedText": "eins"
    }


def test_languages_and_the_way_through_a_third(client_of: Clients) -> None:
    client = client_of("en-de", "de-fr")
    assert client.get("/languages").json() == [
        {"code": "de", "name": "German", "targets": ["fr"]},
        {"code": "en", "name": "English", "targets": ["de", "fr"]},
        {"code": "fr", "name": "French", "targets": []},
    ]
    assert (
        client.post("/translate", json={"q": "one", "source": "fr", "target": "en"}).status_code
        == 400
    )
    assert client.post("/translate", json={"q": "one", "source": "EN", "target": "en"}).json() == {
        "translatedText": "one"
    }
    body = {"text": "one two", "source": "en", "target": "fr", "align": True}
    found = client.post("/v1/translate", json=body).json()
    assert found["model"] == "en-de + de-fr"


def test_two_models_of_a_pair_are_refused(fleet_of: Callable[..., Fleet]) -> None:
    with pytest.raises(Exception, match="both translate en to de"):
        fleet_of("en-de", "EN-DE")


def test_settings_and_health(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    found = client.get("/frontend/settings").json()
    assert {side: one["name"] for side, one in found["language"].items()} == {
        "source": "English",
        "target": "German",
    }
    assert (found["charLimit"], found["keyRequired"], found["suggestions"]) == (
        20_000,
        False,
        False,
    )
    assert ".docx" in found["supportedFilesFormat"]


# Our own


def test_all_that_is_known_of_a_translation(client: TestClient, translator: Translator) -> None:
    body = {"text": ["one two three", "four"], **PAIR, "nbest": 2, "align": True}
    found = client.post("/v1/translate", json=body).json()
    best = translator.translate(["one two three"], SearchOptions(nbest=2), align=True)[0]
    first = found["translations"][0]
    assert (first["text"], tuple(first["tokens"])) == (best.text, best.tokens)
    assert first["score"] == pytest.approx(best.score, abs=1e-4)
    assert first["token_probabilities"] == pytest.approx(best.token_probabilities, abs=1e-4)
    assert [tuple(pair) for pair in first["alignment"]] == list(best.alignment)
    assert [other["text"] for other in first["alternatives"]] == [
        other.text for other in best.alternatives
    ]
    assert (first["corrected"], first["hints"], first["confidence"]) == (False, [], None)
    assert found["translations"][1]["text"] == "vier"
    assert (found["model"], found["source"]) == ("en-de", "en")
    assert found["milliseconds"] > 0


def test_sentences_of_a_text_are_joined_as_the_translator_joins_them(
    client: TestClient, translator: Translator
) -> None:
    text = "one two. three four! five?  six seven."
    found = client.post("/v1/translate", json={"text": text, **PAIR, "align": True}).json()[
        "translations"
    ][0]
    whole = translator.translate([text], align=True)[0]
    assert (found["text"], tuple(found["tokens"])) == (whole.text, whole.tokens)
    assert [tuple(pair) for pair in found["alignment"]] == list(whole.alignment)
    assert found["score"] == pytest.approx(whole.score, abs=1e-3)
    assert len(found["token_probabilities"]) == len(whole.token_probabilities)


def test_prefix_glossary_and_samples(client: TestClient, translator: Translator) -> None:
    def texts(**options: Any) -> list[str]:
        answer = client.post("/v1/translate", json={"text": "one two three", **PAIR, **options})
        assert answer.status_code == 200, answer.text
        return [one["text"] for one in answer.json()["translations"]]

    assert texts(prefix="neun")[0].startswith("neun")
    assert "acht" in texts(glossary=[["two", "acht"]])[0]
    drawn = {"sample": True, "temperature": 3.0, "seed": 5}
    expected = translator.translate(
        ["one two three"], SearchOptions(sample=True, temperature=3.0, seed=5)
    )[0].text
    assert texts(**drawn) == texts(**drawn) == [expected]


def test_streaming(client: TestClient) -> None:
    lines = ["one two", "three", "four five six"]
    with client.stream("POST", "/v1/stream", json={"text": lines, **PAIR}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = "".join(answer.iter_text()).strip().split("\n\n")
    assert events[-1] == "event: done\ndata: {}"
    found = {
        one["index"]: one["text"]
        for one in (json.loads(event.removeprefix("data: ")) for event in events[:-1])
    }
    assert found == dict(enumerate(map(german, lines)))


def test_inspect_and_alternatives(client: TestClient) -> None:
    view = client.post("/v1/inspect", json={"text": "one two", **PAIR, "beam": 2}).json()
    assert view["text"] == "eins zwei"
    assert len(view["cross"][0][0]) == len(view["target"])
    assert view["beam"]["nodes"]
    body = {"text": "one two three", **PAIR, "prefix": "eins", "count": 3}
    found = client.post("/v1/alternatives", json=body).json()["alternatives"]
    assert 1 <= len(found) <= 3
    assert all(text.startswith("eins") for text in found)
    long = client.post("/v1/inspect", json={"text": "one " * 600, **PAIR})
    assert (long.status_code, long.json()) == (
        413,
        {"error": "the request has 2,400 characters and may have 2,000; send less at a time"},
    )


def test_corrections_answer_at_once_and_give_hints(client_of: Clients, tmp_path: Path) -> None:
    client = client_of(corrections=Corrections(tmp_path / "corrections.db"))
    saved = client.post(
        "/v1/corrections", json={"text": "one two three", **PAIR, "correction": "Eins, zwei, drei!"}
    )
    assert saved.json() == {"saved": True}
    assert client.post("/translate", json={"q": " one two three\n", **PAIR}).json() == {
        "translatedText": " Eins, zwei, drei!\n"
    }
    found = client.post("/v1/translate", json={"text": "one two three", **PAIR}).json()[
        "translations"
    ][0]
    assert (found["text"], found["corrected"], found["confidence"]) == (
        "Eins, zwei, drei!",
        True,
        1.0,
    )
    near = client.post("/v1/translate", json={"text": "one two three four", **PAIR}).json()[
        "translations"
    ][0]
    assert (near["text"], near["corrected"]) == ("eins zwei drei vier", False)
    assert [(hint["source"], hint["target"]) for hint in near["hints"]] == [
        ("one two three", "Eins, zwei, drei!")
    ]
    assert 0.7 < near["hints"][0]["similarity"] < 1
    asked = client.post(
        "/v1/translate", json={"text": "one two three", **PAIR, "prefix": "neun"}
    ).json()["translations"][0]
    assert asked["text"].startswith("neun")  # who asks for something of their own gets it
    inside = client.post("/translate", json={"q": "four.\none two three\nfive.", **PAIR}).json()[
        "translatedText"
    ]
    assert inside.splitlines()[1] == "Eins, zwei, drei!"


def test_a_server_without_corrections_says_so(client: TestClient) -> None:
    answer = client.post("/v1/corrections", json={"text": "one", **PAIR, "correction": "Eins"})
    assert answer.status_code == 404
    assert "--corrections" in answer.json()["error"]


def test_documents(client: TestClient) -> None:
    files = {"file": ("zähl.txt", b"one two\n\nthree\n", "text/plain")}
    answer = client.post("/v1/documents", files=files, data=PAIR)
    assert (answer.status_code, answer.text) == (200, "eins zwei\n\ndrei\n")
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''z%C3%A4hl.txt"
    url = client.post("/translate_file", files=files, data=PAIR).json()["translatedFileUrl"]
    assert client.get(url).text == "eins zwei\n\ndrei\n"
    assert client.get(url[:-1]).status_code == 404
    refused = client.post(
        "/v1/documents", files={"file": ("a.exe", b"MZ\0", "text/plain")}, data=PAIR
    )
    assert refused.status_code == 400
    assert refused.json()["error"]


def test_a_document_has_a_limit(client_of: Clients) -> None:
    lines = "".join(f"one two {word}\n" for word in tiny.ENGLISH)  # over 100 characters
    files = {"file": ("a.txt", lines.encode(), "text/plain")}
    answer = client_of(document=100).post("/v1/documents", files=files, data=PAIR)
    assert (answer.status_code, answer.json()) == (
        413,
        {"error": "a document may have 100 characters; send it in parts"},
    )


def test_html(client: TestClient) -> None:
    found = client.post(
        "/translate", json={"q": "<p>one <b>two</b> three</p>", **PAIR, "format": "html"}
    ).json()
    assert found == {"translatedText": "<p>eins <b>zwei</b> drei</p>"}


# It holds


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({"q": "x" * 101, **PAIR}, 400, "101 characters"),
        ({"q": ["one"] * 6, **PAIR}, 400, "6 texts"),
        (
            {"q": "one", "source": "en", "target": "fr"},
            400,
            "no model here translates from 'en' to 'fr'; choose among en to de",
        ),
        ({"source": "en", "target": "de"}, 400, "q: is missing"),
        ({"q": 5, **PAIR}, 400, "q"),
        ({"q": "one", **PAIR, "format": "pdf"}, 400, "format"),
        ({"q": "one", **PAIR, "alternatives": 1000}, 400, "alternatives"),
    ],
)
def test_what_is_refused(client_of: Clients, body: dict[str, Any], status: int, told: str) -> None:
    answer = client_of(characters=100, lines=5).post("/translate", json=body)
    assert answer.status_code == status
    assert told in answer.json()["error"]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"beam": 17}, 422),
        ({"nbest": 3, "beam": 2}, 400),
        ({"temperature": 0.5}, 400),
        ({"nonsense": 1}, 422),
        ({"glossary": [["one", " "]]}, 400),
        ({"glossary": [["one", "eins"]], "sample": True}, 400),
        ({"text": "one\ud800"}, 422),
    ],
)
def test_options_that_do_not_go(client: TestClient, options: dict[str, Any], status: int) -> None:
    content = json.dumps({"text": "one", **PAIR, **options})
    answer = client.post(
        "/v1/translate", content=content, headers={"content-type": "application/json"}
    )
    assert answer.status_code == status
    assert set(answer.json()) == {"error"}


def test_a_full_queue_says_when_to_come_again(client_of: Clients) -> None:
    client = client_of(queue=50, characters=50)
    engine = client.app.state.fleet.engines["en", "de"]  # type: ignore[attr-defined]
    go = threading.Event()
    held = engine.submit("", lambda translator: go.wait(LONG))
    waiting = [engine.submit("x" * 20, lambda translator: None) for _ in range(2)]
    answer = client.post("/translate", json={"q": "one two three", **PAIR})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    go.set()
    held.result(LONG)
    for one in waiting:
        one.result(LONG)
    assert client.post("/translate", json={"q": "one", **PAIR}).json() == {"translatedText": "eins"}


def test_reloading(
    client_of: Clients, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = client_of()
    fleet: Fleet = client.app.state.fleet  # type: ignore[attr-defined]
    old = fleet.engines["en", "de"].translator
    assert client.post("/v1/admin/reload").json() == {"reloaded": True, "problems": []}
    new = fleet.engines["en", "de"].translator
    assert new is not old

    def broken(folder: Path) -> Translator:
        return Translator.load(folder)

    monkeypatch.setattr(fleet, "_load", broken)
    capsys.readouterr()
    answer = client.post("/v1/admin/reload").json()
    assert not answer["reloaded"]
    assert "the old model stays in use" in answer["problems"][0]
    assert json.loads(capsys.readouterr().err.splitlines()[0])["problems"] == answer["problems"]
    assert fleet.engines["en", "de"].translator is new
    assert client.post("/translate", json={"q": "one", **PAIR}).json() == {"translatedText": "eins"}


def test_keys_are_asked_for(client_of: Clients, tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys", "anna")
    client = client_of(keys=tmp_path / "keys")
    body = {"q": "one", **PAIR}
    assert client.post("/translate", json=body).status_code == 403
    assert client.post("/translate", json={**body, "api_key": key}).json() == {
        "translatedText": "eins"
    }
    assert client.post("/translate", data={**body, "api_key": key}).json() == {
        "translatedText": "eins"
    }
    full = {"text": "one", **PAIR}
    for route in ("translate", "stream", "inspect", "alternatives", "corrections"):
        assert client.post(f"/v1/{route}", json=full).status_code == 403
    assert (
        client.post("/v1/documents", files={"file": ("a.txt", b"one")}, data=PAIR).status_code
        == 403
    )
    assert (
        client.post(
            "/v1/translate", json=full, headers={"Authorization": f"Bearer {key}"}
        ).status_code
        == 200
    )
    assert (
        client.post("/v1/admin/reload", headers={"Authorization": f"Bearer {key}"}).status_code
        == 403
    )


def test_other_sites_may_not_ask(client: TestClient) -> None:
    answer = client.post(
        "/translate", json={"q": "one", **PAIR}, headers={"Origin": "https://example.org"}
    )
    assert "access-control-allow-origin" not in answer.headers
    asked = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    assert client.options("/v1/translate", headers=asked).status_code == 405


def test_metrics(client: TestClient) -> None:
    def figure(name: str) -> float:
        lines = [line for line in client.get("/metrics").text.splitlines() if line.startswith(name)]
        return float(lines[0].split()[-1]) if lines else 0.0

    names = [
        'dragoman_source_characters_total{model="en-de"}',
        'dragoman_batch_sentences_sum{model="en-de"}',
    ]
    names.append('dragoman_request_seconds_count{route="/translate",status="200"}')
    before = [figure(name) for name in names]
    client.post("/translate", json={"q": ["one", "two three"], **PAIR})
    assert [figure(name) - old for name, old in zip(names, before, strict=True)] == [12, 2, 1]
    assert figure('dragoman_waiting_characters{model="en-de"}') == 0


def test_the_page_comes_from_here_and_is_kept_while_it_is_fresh(client: TestClient) -> None:
    answer = client.get("/")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-cache"
    tag = answer.headers["etag"]
    for known in (tag, f"W/{tag}", f'"another", {tag}'):
        again = client.get("/", headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
        assert again.headers["cache-control"] == "no-cache"
    changed = client.get("/", headers={"If-None-Match": '"another"'})
    assert (changed.status_code, changed.content) == (200, answer.content)
    script = client.get("/static/docs.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert (
        client.get("/static/docs.js", headers={"If-None-Match": script.headers["etag"]}).status_code
        == 304
    )
    assert script.headers["content-encoding"] == "gzip"
    assert client.get("/static/../app.py").status_code == 404
    assert client.get("/static/%2e%2e/app.py").status_code == 404
    assert re.search(r"static/\w+/docs\.js", client.get("/docs").text)
    assert "/v1/translate" in client.get("/openapi.json").json()["paths"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "q",
        "text",
        "source",
        "target",
        "format",
        "alternatives",
        "api_key",
        "beam",
        "nbest",
        "sample",
        "prefix",
    ]
)
NEAR = st.dictionaries(
    KEYS, JSON | st.sampled_from(["en", "de", "auto", "one two", "html", 3]), max_size=8
)
ROUTES = [
    "/translate",
    "/detect",
    "/v1/translate",
    "/v1/stream",
    "/v1/inspect",
    "/v1/alternatives",
    "/v1/corrections",
]
ROUTES += ["/translate_file", "/v1/documents", "/suggest", "/v1/chat/completions", "/v2/translate"]
ROUTES += ["/v2/document", "/v2/document/x", "/v2/document/x/result", "/v2/glossaries"]
ROUTES += ["/v3/glossaries"]
MORE = int(os.environ.get("DRAGOMAN_FUZZ", "1"))  # times the examples that a run of all tests has
FUZZ: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": list(hypothesis.HealthCheck),
    "derandomize": True,
}


def told(answer: Any) -> Any:
    """The sentence of a refusal, wherever its API has it."""
    body = answer.json()
    error = body.get("error", body.get("message"))
    return error["message"] if isinstance(error, dict) else error


@pytest.fixture(scope="module")
def hard(translator: Translator) -> Any:
    """A client for all examples of a test."""
    from dragoman.server.app import create_app
    from dragoman.server.guard import Guard, Limits

    fleet = Fleet([Path("en-de")], lambda folder: translator, 400_000)
    with TestClient(create_app(fleet, Guard(Limits()))) as client:
        yield client


@hypothesis.settings(**FUZZ, max_examples=300 * MORE)
@hypothesis.given(
    route=st.sampled_from(ROUTES),
    content=st.binary(max_size=80)
    | JSON.map(lambda value: json.dumps(value).encode())
    | NEAR.map(lambda v: json.dumps(v).encode()),
    kind=st.sampled_from(
        [
            "application/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "multipart/form-data",
            "text/plain",
            "\xff;=",
        ]
    ),
)
def test_no_body_breaks_it(hard: TestClient, route: str, content: bytes, kind: str) -> None:
    answer = hard.post(route, content=content, headers={b"content-type": kind.encode("latin-1")})
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert isinstance(told(answer), str)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"1" * 10_000,
        b'{"q": NaN}',
        b'\xff\xfe{"q"',
        b'{"q": "\\ud800", "target": "de"}',
    ],
)
def test_nasty_json(hard: TestClient, route: str, content: bytes) -> None:
    answer = hard.post(route, content=content, headers={"content-type": "application/json"})
    assert 400 <= answer.status_code < 500
    assert isinstance(told(answer), str)


def test_requests_by_its_own_document(hard: TestClient) -> None:
    import schemathesis  # which takes a while

    seen = Counter[str]()
    document = schemathesis.openapi.from_asgi("/openapi.json", hard.app)
    for result in document.get_all_operations():
        operation: Any = result  # one that cannot be read has no ok(), and the test fails

        @hypothesis.settings(**FUZZ, max_examples=15 * MORE)
        @hypothesis.given(case=operation.ok().as_strategy())
        def check(case: Any) -> None:
            seen[case.path] += 1
            assert case.call().status_code < 500, case.path

        check()
    assert {"/translate", "/v1/translate", "/v1/documents"} <= set(seen)
    print(f"{seen.total():,} requests to {len(seen)} paths")
