"""The API's document: every route has its own fields with their meaning, an example that it
accepts, what it answers and what it refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

Clients = Callable[..., TestClient]
_FILES = {"/translate_file", "/v1/documents", "/v1/documents/stream", "/v2/document"}


@pytest.fixture
def api(client_of: Clients) -> dict[str, Any]:
    return client_of().get("/openapi.json").json()


def routes(api: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in api["paths"].items():
        for method, about in methods.items():
            yield f"{method.upper()} {path}", about


def body_of(api: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    """The schema of a route's body, or nothing."""
    contents = list(about.get("requestBody", {}).get("content", {}).values())
    if not contents:
        return {}
    schema = contents[0]["schema"]
    if "$ref" in schema:
        schema = api["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return dict(schema)


def test_every_body_has_an_example_and_every_field_its_meaning(api: dict[str, Any]) -> None:
    for route, about in routes(api):
        body = body_of(api, about)
        if not body:
            continue
        (example,) = body["examples"]
        assert set(body.get("required", [])) <= set(example) <= set(body["properties"]), route
        for name, field in body["properties"].items():
            assert field.get("description"), f"{route}: {name}"


def test_every_answer_is_shown_with_its_status_and_kind(api: dict[str, Any]) -> None:
    for route, about in routes(api):
        assert about["description"], route
        (status,) = [one for one in about["responses"] if one < "300"]
        answer = about["responses"][status]
        if status == "204":
            assert "content" not in answer, route
            continue
        ((kind, content),) = answer["content"].items()
        is_file = kind == "application/octet-stream"
        assert is_file or content.get("example") not in (None, ""), route
        errors = [one for one in about["responses"] if one >= "400"]
        assert errors or route == "GET /metrics", route


def test_files_are_sent_as_files(api: dict[str, Any]) -> None:
    for path in _FILES:
        content = api["paths"][path]["post"]["requestBody"]["content"]
        assert list(content) == ["multipart/form-data"], path


def test_routes_have_fields_of_their_own(api: dict[str, Any]) -> None:
    """Only routes that take the same question share its fields."""
    shared: Counter[tuple[str, ...]] = Counter()
    for _, about in routes(api):
        names = tuple(sorted(body_of(api, about).get("properties", {})))
        if names:
            shared[names] += 1
    assert max(shared.values()) <= 3  # uploads: LibreTranslate's, ours, and ours with progress
    # Texts at once or as a stream, uploads, the key of a document, the terms of a dictionary.
    assert sum(count > 1 for count in shared.values()) <= 4


@pytest.mark.parametrize(
    "path", ["/v1/translate", "/translate", "/v1/alternatives", "/v2/translate"]
)
def test_examples_are_accepted(client_of: Clients, api: dict[str, Any], path: str) -> None:
    (example,) = body_of(api, api["paths"][path]["post"])["examples"]
    assert client_of().post(path, json=example).status_code == 200
