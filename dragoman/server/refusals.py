"""What is answered to a request that cannot be served: one sentence, whatever was wrong. Knows
exceptions and status codes; the shape of an answer is known to dialects."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from dragoman.errors import DragomanError, FullDiskError, ModelFolderError
from dragoman.server.corrections import StoreError
from dragoman.server.dialects import dialect_of
from dragoman.server.document_workers import DocumentTooLargeError
from dragoman.server.engine import BusyError
from dragoman.server.glossary_store import NoGlossaryError
from dragoman.server.metrics import log

_RETRY = {"Retry-After": "1"}
# What FastAPI says of a body that is nested too deeply, or has a number too long.
_UNREADABLE = "There was an error parsing the body"
_OF_OURS = "the server cannot do this at the moment, and its log says why; tell its operator"


class TooManyDocumentsError(DragomanError):
    """A client, or all of them, have as many documents waiting as may wait."""


_STATUSES: dict[type[DragomanError], int] = {
    BusyError: 503,
    DocumentTooLargeError: 413,
    NoGlossaryError: 404,
    TooManyDocumentsError: 429,
}


def answer_errors(app: FastAPI) -> None:
    """Let an app answer errors with one sentence as JSON."""
    app.add_exception_handler(HTTPException, _refuse)
    app.add_exception_handler(DragomanError, _refuse_error)
    for kind in (RequestValidationError, ValidationError):
        app.add_exception_handler(kind, _refuse_fields)


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    message = error.detail
    if message == _UNREADABLE:
        message = "the body: cannot be read as JSON; /docs shows what is expected"
    return _answer(request, error.status_code, message, dict(error.headers or {}))


async def _refuse_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, DragomanError)
    status, message = refusal_of(error)
    return _answer(request, status, message, _RETRY)


def refusal_of(error: DragomanError) -> tuple[int, str]:
    """Return the status of an error and what a client is told of it."""
    if isinstance(error, (FullDiskError, ModelFolderError, StoreError)):
        # What is wrong here is for the operator; the message names a file of the server.
        log(event="error", problem=str(error))
        return (507 if isinstance(error, FullDiskError) else 503), _OF_OURS
    for kind, status in _STATUSES.items():
        if isinstance(error, kind):
            return status, str(error)
    return 400, str(error)


async def _refuse_fields(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, (RequestValidationError, ValidationError))
    # Of a field that may be one of two things, each has its error: the one that got furthest.
    furthest = max(error.errors(), key=lambda one: (len(one["loc"]), one["type"] == "value_error"))
    place = [part for part in furthest["loc"] if part != "body"]
    # The others are pydantic's names for its own types.
    names = [str(part) for number, part in enumerate(place) if not number or type(part) is int]
    if furthest["type"] == "json_invalid":
        names = []  # the number of a character
    field = ".".join(names)[:100]
    what = _sentence(furthest, len(names))
    message = f"{field or 'the body'}: {what}; /docs shows what is expected"
    return _answer(request, 422, message, _RETRY)


def _sentence(error: Any, depth: int) -> str:
    """Return what is wrong with a field that lies so deep."""
    is_union = len(error["loc"]) > depth + ("body" in error["loc"])
    if error["type"] in ("string_type", "list_type"):
        one = "a text" if error["type"] == "string_type" else "a list"
        return "must be a text or a list of texts" if is_union and depth == 1 else f"must be {one}"
    if error["type"] == "missing":
        return "is missing"
    if error["type"] == "extra_forbidden":
        return "is no field of this route"
    if error["type"] in ("dict_type", "model_type", "model_attributes_type"):
        return "must be a JSON object"
    if error["type"] == "json_invalid":
        return f"not JSON ({error['ctx']['error']})"
    message = str(error["msg"]).removeprefix("Value error, ")
    if "UploadFile" in message:
        return "must be a file, sent as multipart/form-data"
    return message


def _answer(request: Request, status: int, message: str, headers: dict[str, str]) -> JSONResponse:
    own_status, body = dialect_of(request.url.path).refusal(status, message)
    return JSONResponse(body, own_status, headers)
