"""What is answered to a request that cannot be served: one sentence, whatever was wrong. Knows
exceptions and status codes."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from dragoman.errors import DragomanError, FullDiskError
from dragoman.server.engine import BusyError

_RETRY = {"Retry-After": "1"}


def answer_errors(app: FastAPI) -> None:
    """Let an app answer errors with one sentence as JSON."""
    app.add_exception_handler(HTTPException, _refuse)
    app.add_exception_handler(DragomanError, _refuse_error)
    for kind in (RequestValidationError, ValidationError):
        app.add_exception_handler(kind, _refuse_fields)


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return _answer(error.status_code, error.detail, dict(error.headers or {}))


async def _refuse_error(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, BusyError):
        status = 503
    elif isinstance(error, FullDiskError):
        status = 507
    else:
        status = 400
    return _answer(status, str(error), _RETRY)


async def _refuse_fields(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, (RequestValidationError, ValidationError))
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"] if part != "body")[:100]
    message = f"{field or 'the body'}: {first['msg']}; /docs shows what is expected"
    return _answer(422, message, _RETRY)


def _answer(status: int, message: str, headers: dict[str, str]) -> JSONResponse:
    text = message.encode("utf-8", "replace").decode()
    return JSONResponse({"error": text}, status, headers)
