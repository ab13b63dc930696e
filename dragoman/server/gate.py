"""The gate around the whole app: ends what is too large, takes too long or has nobody waiting for
it; adds the headers, and counts and logs every answer. Knows ASGI; no route."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.server.bodies import Bodies
from dragoman.server.dialects import dialect_of
from dragoman.server.guard import Guard, Sender
from dragoman.server.metrics import SECONDS, log
from dragoman.server.page_files import caching

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
_ENCODED = tuple((name.encode(), value.encode()) for name, value in _HEADERS.items())
_CLIENT_GONE = 499
_SLICE = 65_536  # bytes of a body that are read at a time
# What a request of texts may have besides them, such as a glossary, and the most bytes that a
# character has in JSON.
_OPTIONS = 1_000_000
_LONGEST_CHARACTER = 12
# An answer that has been sent also ends the listening: its task gets this many seconds to end.
_AFTER_GONE = 0.02


class _Refusal(NamedTuple):
    status: int
    message: str
    retry_after: str = "1"


class Gate:
    """Around the whole app.

    A log line has no text of the user's, unless `log_text`; of an error it has the kind and the
    place, since messages quote text.
    """

    def __init__(self, app: ASGIApp, guard: Guard, log_text: bool) -> None:
        self._app = app
        self._guard = guard
        self._limits = guard.limits
        self._log_text = log_text
        self._reading = min(guard.limits.reading, guard.limits.seconds)
        self._bodies = Bodies(guard.limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        answer = _Answer(scope["path"], send)
        failure: dict[str, Any] = {}
        try:
            refusal = await self._let_through(scope, receive, answer)
        except HTTPException as error:
            wait = (error.headers or {}).get("Retry-After", "1")
            refusal = _Refusal(error.status_code, error.detail, wait)
        except Exception as error:
            failure = _failure(error)
            refusal = _Refusal(500, "internal server error; the log has more")
        if refusal and not answer.status:
            headers = {"Retry-After": refusal.retry_after}
            status, body = _refused(scope["path"], refusal)
            refused = JSONResponse(body, status, headers)
            await refused(scope, receive, answer)
        self._log(scope, answer.status, time.perf_counter() - start, failure)

    async def _let_through(self, scope: Scope, receive: Receive, send: Send) -> _Refusal | None:
        """Read a request and let the app answer it, each within its time."""
        sender = self._guard.identify(scope)
        body = bytearray()
        try:
            refusal = await _within(
                self._reading,
                self._read(receive, sender, body, self._most(scope)),
                _Refusal(408, f"not sent within {self._reading:g} seconds; send less at a time"),
            )
            if refusal is not None:
                return refusal
            return await _within(
                self._limits.seconds,
                self._pass(scope, receive, send, bytes(body)),
                _Refusal(
                    504, f"not done within {self._limits.seconds:g} seconds; send less at a time"
                ),
            )
        finally:
            self._bodies.release(sender, len(body))

    def _most(self, scope: Scope) -> int:
        """Return the bytes that a request may have: more with a document than with texts."""
        kind = Headers(scope=scope).get("content-type", "")
        if kind.startswith("multipart/"):
            return self._limits.body
        return min(self._limits.body, _OPTIONS + _LONGEST_CHARACTER * self._limits.characters)

    async def _read(
        self, receive: Receive, sender: Sender, body: bytearray, most: int
    ) -> _Refusal | None:
        """Read the request into `body`; refuse it where it is too large or memory is short."""
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return _Refusal(_CLIENT_GONE, "the client has gone")
            more = message.get("more_body", False)
            chunk = message.get("body", b"")
            body += chunk
            has_room = self._bodies.hold(sender, len(body), len(chunk))
            if len(body) > most:
                return _Refusal(413, f"the request has over {most:,} bytes; send less at a time")
            if not has_room:
                return _Refusal(
                    503, "the server is busy: request buffers are full; try again later"
                )
        return None

    async def _pass(
        self, scope: Scope, receive: Receive, send: Send, body: bytes
    ) -> _Refusal | None:
        """Let the app answer until the client has gone."""
        unread = _in_slices(body)

        async def read() -> Message:
            await asyncio.sleep(0)  # a form is read as it comes: others have their turn
            for message in unread:
                return message
            return await asyncio.Future()  # that the client has gone is noticed below

        work = asyncio.ensure_future(self._app(scope, read, send))
        gone = asyncio.ensure_future(receive())
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                await asyncio.wait((work,), timeout=_AFTER_GONE)
            if not work.done():
                return _Refusal(_CLIENT_GONE, "the client has gone")
            work.result()
            return None
        finally:
            work.cancel()
            gone.cancel()

    def _log(self, scope: Scope, status: int, seconds: float, failure: dict[str, Any]) -> None:
        route = getattr(scope.get("route"), "path", "none")
        state = scope.get("state", {})
        SECONDS.labels(route, status).observe(seconds)
        text = {"text": state.get("text")} if self._log_text else {}
        log(
            route=route,
            status=status,
            milliseconds=round(1000 * seconds, 1),
            characters=state.get("characters", 0),
            key=state.get("key", ""),
            **failure,
            **text,
        )


async def _within(
    seconds: float, work: Coroutine[Any, Any, _Refusal | None], late: _Refusal
) -> _Refusal | None:
    """Return what comes of some work, or `late` where it is not done in time."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        return late


class _Answer:
    """Sends an answer with the headers that all have, and remembers its status."""

    def __init__(self, path: str, send: Send) -> None:
        self._path = path
        self._send = send
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            kept = (b"cache-control", caching(self._path, self.status).encode())
            message["headers"] = [*message.get("headers", []), *_ENCODED, kept]
        await self._send(message)


def _in_slices(body: bytes) -> Iterator[Message]:
    """Yield the messages that a body comes in."""
    for start in range(0, max(1, len(body)), _SLICE):
        end = start + _SLICE
        yield {"type": "http.request", "body": body[start:end], "more_body": end < len(body)}


def _refused(path: str, refusal: _Refusal) -> tuple[int, dict[str, Any]]:
    """Return the answer to a request that the app never saw. Its size in bytes has one status in
    every API: what is too large here is more than any of them reads."""
    status, body = dialect_of(path).refusal(refusal.status, refusal.message)
    return (413 if refusal.status == 413 else status), body


def _failure(error: Exception) -> dict[str, Any]:
    """Return what the log says of an error."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return {
        "error": type(error).__name__,
        "place": f"{Path(frame.filename).name}:{frame.lineno}",
    }
