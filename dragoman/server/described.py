"""What the API's document says of a route's answers: an example of what comes back, and each way
in which the route may refuse, in the words of its own API; and the document itself. Knows OpenAPI
and no other route."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from fastapi import FastAPI
from starlette.responses import Response

from dragoman.server.dialects import QUOTA, dialect_of

# What each refusal is for, and an example of its sentence.
_REFUSALS: dict[int, tuple[str, str]] = {
    400: (
        "The languages or the options do not go together",
        "no model here translates from 'en' to 'xx'; choose among en to de",
    ),
    403: (
        "The key is missing, unknown or not allowed to do this",
        "this server requires an API key, and the one given is unknown; ask for one",
    ),
    404: ("There is no such thing", "there is no such file, or no longer; translate it again"),
    413: (
        "The request is too large",
        "the request has 30,000 characters and may have 20,000; send less at a time",
    ),
    422: ("A field is missing or wrong", "target: Field required"),
    429: (
        "Too many requests; Retry-After says when to ask again",
        "more than 60 requests per minute; wait as long as Retry-After says",
    ),
    QUOTA: (
        "The characters of the day are used up",
        "more than 500,000 characters in a day; wait until tomorrow, by UTC, or send less",
    ),
    503: (
        "The server is busy; Retry-After says when to ask again",
        "the queue of en-de is full, with 400,000 characters; try again later",
    ),
}
_OF_FILES: dict[int, tuple[str, str]] = {
    400: (
        "The document cannot be read, or no model here has its languages",
        "report.docx cannot be read as .docx (it has a password); save it again",
    ),
    413: (
        "The document is too large",
        "the documents have 500,000 characters and may have 400,000; send less at a time",
    ),
}
_FILE_ROUTES = ("/translate_file", "/v1/documents", "/v1/documents/stream", "/v2/document")
OF_TEXTS = (400, 403, 413, 422, 429, QUOTA, 503)  # what may be wrong with texts to translate
OF_READING = (403, 429)  # with a question about the service
_BYTES = {"type": "string", "format": "binary"}


@dataclass(frozen=True)
class Other:
    """An answer that is not JSON: its media type, and an example where one can be read."""

    media_type: str
    example: str = ""


FILE = Other("application/octet-stream")
MULTIPART = "multipart/form-data"  # how files are sent
_SPEC = {"openapi": "3.1.0", "paths": {}}


def describe(app: FastAPI) -> None:
    """Let a service answer what its API is, at /openapi.json and as LibreTranslate does at /spec.

    The document is long, and is written once: whoever asks for it again and again takes nothing
    from those who translate.
    """

    @cache
    def written() -> bytes:
        return json.dumps(app.openapi(), ensure_ascii=False, separators=(",", ":")).encode()

    async def description() -> Response:
        """LibreTranslate: the description of this API, which is also at /openapi.json."""
        return Response(written(), media_type="application/json")

    app.get("/openapi.json", include_in_schema=False)(description)
    app.get("/spec", tags=["LibreTranslate"], responses=answers("/spec", _SPEC, ()))(description)


def answers(
    path: str, answer: Any, refusals: tuple[int, ...] = OF_TEXTS, status: int = 200
) -> dict[int | str, Any]:
    """Return the answers of a route: an example of what it returns, and of what it refuses.

    Where an API has one status for several reasons, it lists them all.
    """
    dialect = dialect_of(path)
    described: dict[int | str, Any] = {status: _one("The answer", answer)}
    reasons = _REFUSALS | (_OF_FILES if path in _FILE_ROUTES else {})
    for refusal in refusals:
        reason, sentence = reasons[refusal]
        own, body = dialect.refusal(refusal, sentence)
        if own in described:
            described[own]["description"] += f". Or: {reason[0].lower()}{reason[1:]}"
        else:
            described[own] = _one(reason, body)
    if 422 not in described:
        # FastAPI would add its own, which is never answered.
        described["4XX"] = {"description": "Anything else that a client can put right"}
    return described


def _one(description: str, body: Any) -> dict[str, Any]:
    if body is None:
        return {"description": description}
    if isinstance(body, Other):
        content = {"example": body.example} if body.example else {"schema": _BYTES}
        return {"description": description, "content": {body.media_type: content}}
    return {"description": description, "content": {"application/json": {"example": body}}}
