"""Who may ask, how much and how often: API keys, rates, sizes and times; the headers and the log
line of every answer.

Knows HTTP and a file of keys; nothing of translation.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import secrets
import time
import traceback
from collections import OrderedDict
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Annotated, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.errors import InputError, OptionError
from dragoman.folder.files import append_line
from dragoman.server.metrics import SECONDS, log

ADMIN = "admin"  # the name of the key that may reload
_BUCKETS = 10_000  # whoever asks is remembered until so many others have asked since
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
_POLICY += "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
}
_HEADERS |= {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}


@dataclass(frozen=True)
class Limits:
    """What a request may ask for, and how much may wait."""

    characters: Annotated[int, "characters of a request"] = 20_000
    lines: Annotated[int, "texts of a request"] = 500
    document: Annotated[int, "characters of a document"] = 400_000
    seconds: Annotated[float, "seconds that a request may take"] = 120.0
    body: Annotated[int, "bytes of a request"] = 10_000_000
    bodies: Annotated[int, "bytes of all requests that are being read or answered"] = 200_000_000
    queue: Annotated[int, "characters that may wait for a model"] = 400_000
    per_minute: Annotated[int, "requests of an address or a key a minute; 0 for any number"] = 0

    def __post_init__(self) -> None:
        if min(astuple(self)[:-1]) <= 0 or self.per_minute < 0 or self.queue < self.characters:
            raise OptionError(
                f"{self}; all must be above 0 (per_minute may be 0) and the queue must hold a request's characters"
            )


def read_keys(path: Path) -> list[tuple[str, str, int]]:
    """(name, SHA-256 of the key, requests a minute) of each line `name hash [number]`. Take a
    line out to end a key."""
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    try:
        return [(name, digest, int("".join(rest) or 0)) for name, digest, *rest in rows]
    except ValueError:
        raise InputError(
            f"{path} has a line that is not 'name hash [number]'; mend it or take it out"
        ) from None


def add_key(path: Path, name: str, per_minute: int = 0) -> str:
    """A new key, which is told here and never again: the file has its hash."""
    names = [name for name, *_ in read_keys(path)] if path.exists() else []
    if len(name.split()) != 1 or name in names:
        raise OptionError(
            f"the key's name is '{name}'; choose one of one word that {path} does not have yet"
        )
    key = secrets.token_urlsafe(32)
    append_line(path, f"{name} {_digest(key)} {per_minute}")
    return key


def _digest(key: str) -> str:
    # A key has 256 random bits, so that a fast hash gives nothing away.
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


class Guard:
    """Lets a request in or raises; remembers how often each has asked. Without a file of keys
    everybody is let in."""

    def __init__(self, limits: Limits, keys: Path | None = None) -> None:
        self.limits, self._path, self.keys = limits, keys, None if keys is None else read_keys(keys)
        self._buckets: OrderedDict[str, tuple[float, float]] = (
            OrderedDict()
        )  # (requests left, when) of each

    def reload(self) -> list[str]:
        """Reads the file of keys again; what was wrong, and then the old keys go on."""
        try:
            self.keys = None if self._path is None else read_keys(self._path)
        except (InputError, OSError) as error:
            return [f"{error}; the old keys go on"]
        return []

    def admit(self, request: Request, given: str | None = None, admin: bool = False) -> None:
        """`given` is the key in the body, as LibreTranslate's clients send it; ours send
        Authorization: Bearer."""
        digest = _digest(
            given or request.headers.get("authorization", "").removeprefix("Bearer ")
        ).encode()
        # All are compared, whichever fits, so that the time tells nothing.
        fitting = [key for key in self.keys or [] if hmac.compare_digest(key[1].encode(), digest)]
        name, _, own = fitting[0] if fitting else ("", "", 0)
        host = request.client.host if request.client else ""
        request.state.key = name
        self._take(f"key {name}" if name else host, own or self.limits.per_minute)
        if self.keys is not None and not fitting:
            raise HTTPException(
                403,
                "this server asks for an API key, and the one given is not known; ask its operator for one",
            )
        # A page of another site can send a request as well; browsers say where it comes from.
        foreign = request.headers.get("origin", "").partition("://")[2] not in (
            "",
            request.headers.get("host"),
        )
        if admin and (
            foreign or (host not in ("127.0.0.1", "::1") if self.keys is None else name != ADMIN)
        ):
            raise HTTPException(
                403,
                f"this needs the key named {ADMIN}, or a server without keys and a request from its machine",
            )

    def _take(self, who: str, per_minute: int) -> None:
        """A request out of the bucket of whoever asks, which fills again by and by."""
        now = time.monotonic()
        left, when = self._buckets.pop(who, (float(per_minute), now))
        left = min(per_minute, left + (now - when) * per_minute / 60)
        self._buckets[who] = (left - (left >= 1), now)
        if len(self._buckets) > _BUCKETS:
            self._buckets.popitem(last=False)
        if left < 1 <= per_minute:
            wait = {"Retry-After": str(math.ceil((1 - left) * 60 / per_minute))}
            raise HTTPException(
                429,
                f"more than {per_minute:,} requests a minute; wait as long as Retry-After says",
                wait,
            )


class Gate:
    """Around the whole app: ends what is too large, takes too long or has nobody waiting for it;
    adds headers; counts and logs.

    A log line has no text of the user's, unless `log_text`; of an error it has kind and place,
    since messages quote text.
    """

    def __init__(self, app: ASGIApp, limits: Limits, log_text: bool) -> None:
        self._app, self._limits, self._log_text, self._held = app, limits, log_text, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status, said, body = time.perf_counter(), 0, dict[str, Any](), bytearray()
        fresh = {
            "cache-control": "no-cache"
            if scope["path"] == "/" or scope["path"].startswith("/static/")
            else "no-store"
        }

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                added = [
                    (name.encode(), value.encode()) for name, value in (_HEADERS | fresh).items()
                ]
                message["headers"] = [*message.get("headers", []), *added]
            await send(message)

        try:
            async with asyncio.timeout(self._limits.seconds):
                refused = await self._read(receive, body) or await self._pass(
                    scope, receive, answer, bytes(body)
                )
        except TimeoutError:
            refused = 504, f"not done within {self._limits.seconds:g} seconds; send less at a time"
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            said = {
                "error": type(error).__name__,
                "place": f"{Path(frame.filename).name}:{frame.lineno}",
            }
            refused = 500, "an error of ours, which is in the log"
        finally:
            self._held -= len(body)
        if refused and not status:
            await JSONResponse({"error": refused[1]}, refused[0], {"Retry-After": "1"})(
                scope, receive, answer
            )
        route, took, state = (
            getattr(scope.get("route"), "path", "none"),
            time.perf_counter() - start,
            scope.get("state", {}),
        )
        SECONDS.labels(route, status).observe(took)
        said |= {"text": state.get("text")} if self._log_text else {}
        about = {"characters": state.get("characters", 0), "key": state.get("key", "")}
        log(route=route, status=status, milliseconds=round(1000 * took, 1), **about, **said)

    async def _read(self, receive: Receive, body: bytearray) -> tuple[int, str] | None:
        """Into `body`; why not, where it is too large or memory is short."""
        more = True
        while more:
            message = await receive()
            more, chunk = message.get("more_body", False), message.get("body", b"")
            body += chunk
            self._held += len(chunk)
            if len(body) > self._limits.body:
                return 413, f"the request has over {self._limits.body:,} bytes; send less at a time"
            if self._held > self._limits.bodies:
                return (
                    503,
                    "the requests at hand have all the memory that they may; try again in a while",
                )
        return None

    async def _pass(
        self, scope: Scope, receive: Receive, answer: Send, body: bytes
    ) -> tuple[int, str] | None:
        """Lets the app answer until the client has gone."""
        replay = iter([{"type": "http.request", "body": body}])

        async def read() -> Message:
            return (
                next(replay, {}) or await asyncio.Future()
            )  # that the client has gone is ours to know

        work, gone = (
            asyncio.ensure_future(self._app(scope, read, answer)),
            asyncio.ensure_future(receive()),
        )
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait(
                (work,), timeout=0.02
            )  # an answer that has been sent also ends the listening
            return work.result() if work.done() else (499, "the client has gone")
        finally:
            work.cancel()
            gone.cancel()
