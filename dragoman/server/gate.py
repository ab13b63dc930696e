"""The gate around the whole app: ends what is too large, takes too long or has nobody waiting for
it; adds the headers, and counts and logs every answer. Knows ASGI; no route."""

from __future__ import annotations

import asyncio
import time
import traceback
from pathlib import Path
from typing import Any, NamedTuple

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.server.guard import Limits
from dragoman.server.metrics import SECONDS, log

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
_CLIENT_GONE = 499
# An answer that has been sent also ends the listening: its task gets this many seconds to end.
_AFTER_GONE = 0.02


class _Refusal(NamedTuple):
    status: int
    message: str


class Gate:
    """Around the whole app.

    A log line has no text of the user's, unless `log_text`; of an error it has the kind and the
    place, since messages quote text.
    """

    def __init__(self, app: ASGIApp, limits: Limits, log_text: bool) -> None:
        self._app = app
        self._limits = limits
        self._log_text = log_text
        self._held = 0  # bytes of all bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        answer = _Answer(scope["path"], send)
        failure: dict[str, Any] = {}
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.seconds):
                refusal = await self._read(receive, body)
                if refusal is None:
                    refusal = await self._pass(scope, receive, answer, bytes(body))
        except TimeoutError:
            refusal = _Refusal(
                504, f"not done within {self._limits.seconds:g} seconds; send less at a time"
            )
        except Exception as error:
            failure = _failure(error)
            refusal = _Refusal(500, "internal server error; the log has more")
        finally:
            self._held -= len(body)
        if refusal and not answer.status:
            refused = JSONResponse({"error": refusal.message}, refusal.status, {"Retry-After": "1"})
            await refused(scope, receive, answer)
        self._log(scope, answer.status, time.perf_counter() - start, failure)

    async def _read(self, receive: Receive, body: bytearray) -> _Refusal | None:
        """Read the request into `body`; refuse it where it is too large or memory is short."""
        more = True
        while more:
            message = await receive()
            more = message.get("more_body", False)
            chunk = message.get("body", b"")
            body += chunk
            self._held += len(chunk)
            if len(body) > self._limits.body:
                return _Refusal(
                    413, f"the request has over {self._limits.body:,} bytes; send less at a time"
                )
            if self._held > self._limits.bodies:
                return _Refusal(
                    503, "the server is busy: request buffers are full; try again later"
                )
        return None

    async def _pass(
        self, scope: Scope, receive: Receive, send: Send, body: bytes
    ) -> _Refusal | None:
        """Let the app answer until the client has gone."""
        unread: list[Message] = [{"type": "http.request", "body": body}]

        async def read() -> Message:
            if unread:
                return unread.pop()
            return await asyncio.Future()  # that the client has gone is noticed below

        work = asyncio.ensure_future(self._app(scope, read, send))
        gone = asyncio.ensure_future(receive())
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
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


class _Answer:
    """Sends an answer with the headers that all have, and remembers its status."""

    def __init__(self, path: str, send: Send) -> None:
        is_page = path == "/" or path.startswith("/static/")
        headers = _HEADERS | {"cache-control": "no-cache" if is_page else "no-store"}
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._send = send
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", []), *self._headers]
        await self._send(message)


def _failure(error: Exception) -> dict[str, Any]:
    """Return what the log says of an error."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return {
        "error": type(error).__name__,
        "place": f"{Path(frame.filename).name}:{frame.lineno}",
    }
