"""Who may ask, how much and how often: API keys, rates and limits. Knows HTTP requests and a file
of keys; nothing of translation."""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Scope

from dragoman.errors import InputError, OptionError
from dragoman.folder.files import append_line
from dragoman.server.dialects import QUOTA
from dragoman.server.hosts import Hosts
from dragoman.server.quota import Quota
from dragoman.server.rates import Rates
from dragoman.server.shared_counts import SharedQuota, SharedRates
from dragoman.server.shared_folder import SharedFolder

ADMIN = "admin"  # the name of the key that may reload
_THIS_MACHINE = ("127.0.0.1", "::1")
_PROXY_HEADERS = ("x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via")
_SCHEMES = ("Bearer ", "DeepL-Auth-Key ")
_KEYS_IN_ADDRESS = ("api_key", "auth_key")  # LibreTranslate's, and DeepL's of old
# Our own API, OpenAI's, DeepL's and that of pipelines.
_KEY_IN_HEAD = ("/v1/", "/v2/", "/v3/", "/nmt/translate")
_KEY_IN_BODY = ("/v1/documents",)  # and all of LibreTranslate's
_NO_KEY = "this server requires an API key, and the one given is unknown; ask for one"


@dataclass(frozen=True)
class Limits:
    """What a request may ask for, and how much may wait."""

    characters: Annotated[int, "characters of a request"] = 20_000
    lines: Annotated[int, "texts of a request"] = 500
    document: Annotated[int, "characters of a document"] = 400_000
    seconds: Annotated[float, "seconds that a request may take once it has been read"] = 120.0
    reading: Annotated[float, "seconds that a client may take to send a request"] = 30.0
    idle: Annotated[float, "seconds that a connection may be open without a request"] = 10.0
    head: Annotated[int, "bytes of the request line and the headers"] = 32_768
    body: Annotated[int, "bytes of a request"] = 10_000_000
    client_bodies: Annotated[int, "bytes of an address's or key's requests at a time"] = 50_000_000
    bodies: Annotated[int, "bytes of all requests that are being read or answered"] = 200_000_000
    connections: Annotated[int, "connections at a time"] = 500
    client_connections: Annotated[int, "connections of an address at a time"] = 200
    queue: Annotated[int, "characters that may wait for a model"] = 400_000
    per_minute: Annotated[int, "requests per minute of an address or a key; 0 is no limit"] = 0
    per_day: Annotated[int, "characters per day of an address or a key; 0 is no limit"] = 0

    def __post_init__(self) -> None:
        *sizes, per_minute, per_day = astuple(self)
        if min(sizes) <= 0 or min(per_minute, per_day) < 0 or self.queue < self.characters:
            raise OptionError(
                f"{self}; all must be above 0 (per_minute and per_day may be 0), "
                "and the queue must hold the characters of a request"
            )


class Key(NamedTuple):
    """A line of the file of keys."""

    name: str
    digest: str  # the SHA-256 of the key
    per_minute: int  # 0 for the limit of the server


def read_keys(path: Path) -> list[Key]:
    """Read the lines `name hash [number]` of a file. Remove a line to revoke its key."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        rows = [line.split() for line in lines if line.strip()]
        return [Key(name, digest, int("".join(rest) or 0)) for name, digest, *rest in rows]
    except ValueError:
        raise InputError(
            f"{path} has a line that is not 'name hash [number]'; correct or remove it"
        ) from None


def add_key(path: Path, name: str, per_minute: int = 0) -> str:
    """Make a key and return it; the file keeps only its hash, so it cannot be shown again."""
    names = [key.name for key in read_keys(path)] if path.exists() else []
    if len(name.split()) != 1 or name in names:
        raise OptionError(
            f"the key's name is '{name}'; choose one word that is not yet a name in {path}"
        )
    key = secrets.token_urlsafe(32)
    append_line(path, f"{name} {_digest(key)} {per_minute}")
    return key


@dataclass(frozen=True)
class Sender:
    """Whose request it is, as far as that is known before its body."""

    client: str  # the name of a key, or an address
    is_known: bool  # whether a key was given, or none is needed


class Guard:
    """Lets a request in or raises. Without a file of keys, everybody is let in."""

    def __init__(
        self, limits: Limits, keys: Path | None = None, hosts: Hosts | None = None
    ) -> None:
        self.limits = limits
        self.hosts = hosts or Hosts()
        self.keys = None if keys is None else read_keys(keys)
        self.quota = Quota(limits.per_day)
        self.rates = Rates()
        self._path = keys

    def share(self, shared: SharedFolder) -> None:
        """Count together with the other processes of the service."""
        self.rates = SharedRates(shared.counts)
        self.quota = SharedQuota(shared.counts, self.limits.per_day)

    def reload(self) -> list[str]:
        """Read the file of keys again; return what was wrong, in which case the old keys stay."""
        try:
            self.keys = None if self._path is None else read_keys(self._path)
        except (InputError, OSError) as error:
            return [f"{error}; the old keys stay in use"]
        return []

    def identify(self, scope: Scope) -> Sender:
        """Return who sends a request, by what stands before its body; raise where it cannot be let
        in whatever the body says."""
        if not self.hosts.serve(scope):
            host = Headers(scope=scope).get("host", "")[:100]
            raise HTTPException(
                400,
                f"this server does not answer to the name {host}; ask for its address, or let its "
                f"operator add --allowed-host",
            )
        given = _key_in_head(scope)
        key = self._find(given)
        if key is not None:
            return Sender(f"key {key.name}", True)
        address = _address(scope)
        if self.keys is not None and (given or _needs_key_in_head(scope)):
            self._take(address, self.limits.per_minute)
            raise HTTPException(403, _NO_KEY)
        return Sender(address, self.keys is None)

    def admit(self, request: Request, given: str | None = None, admin: bool = False) -> str:
        """Let a request in or raise; return whose it is, the name of a key or an address.

        `given` is the key in the body, where LibreTranslate's clients put it; others send
        `Authorization: Bearer`, or `DeepL-Auth-Key` there.
        """
        key = self._find(given or _key_in_head(request.scope))
        address = _address(request.scope)
        request.state.key = key.name if key else ""
        client = f"key {key.name}" if key else address
        own_rate = key.per_minute if key else 0
        self._take(client, own_rate or self.limits.per_minute)
        if self.keys is not None and key is None:
            raise HTTPException(403, _NO_KEY)
        if admin and not self._is_admin(key, request):
            raise HTTPException(
                403,
                f"this requires the key named {ADMIN}; without keys, a request from the server's "
                "own machine",
            )
        return client

    def charge(self, client: str, characters: int) -> None:
        """Count the characters that a client has translated, or raise where its day has no more."""
        if not self.quota.take(client, characters):
            raise HTTPException(
                QUOTA,
                f"more than {self.quota.most:,} characters in a day; wait until tomorrow, by UTC, "
                "or send less",
                {"Retry-After": str(self.quota.seconds_left())},
            )

    def refuse_foreign(self, request: Request) -> None:
        """Raise where a page of another site asks for something that changes the service."""
        if self.hosts.is_foreign(request.scope):
            raise HTTPException(
                403, "a page of another site may not change anything here; use this server's own"
            )

    def _find(self, given: str) -> Key | None:
        if not self.keys:
            return None
        digest = _digest(given).encode()
        # All are compared, whichever fits, so that the time tells nothing.
        fitting = [key for key in self.keys if hmac.compare_digest(key.digest.encode(), digest)]
        return fitting[0] if fitting else None

    def _is_admin(self, key: Key | None, request: Request) -> bool:
        if self.keys is None:
            # What a proxy passes on comes from this machine too, but not what it passes on.
            is_passed_on = any(name in request.headers for name in _PROXY_HEADERS)
            return _address(request.scope) in _THIS_MACHINE and not is_passed_on
        return key is not None and key.name == ADMIN

    def _take(self, client: str, per_minute: int) -> None:
        """Take a request out of the client's bucket, which fills again with time."""
        wait = self.rates.take(client, per_minute)
        if wait:
            raise HTTPException(
                429,
                f"more than {per_minute:,} requests per minute; wait as long as Retry-After says",
                {"Retry-After": str(math.ceil(wait))},
            )


def _digest(key: str) -> str:
    # A key has 256 random bits, so that a fast hash gives nothing away.
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def _key_in_head(scope: Scope) -> str:
    """Return the key that stands before the body: in the header, or, as some clients of
    LibreTranslate and DeepL have it, in the address."""
    header = Headers(scope=scope).get("authorization", "")
    for scheme in _SCHEMES:
        header = header.removeprefix(scheme)
    if header:
        return header
    if not scope.get("query_string"):
        return ""
    query = QueryParams(scope["query_string"])
    given = (query.get(name, "") for name in _KEYS_IN_ADDRESS)
    return next(filter(None, given), "")


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


def _needs_key_in_head(scope: Scope) -> bool:
    """Return whether a request of this API has its key in no other place."""
    path = scope.get("path", "")
    return path.startswith(_KEY_IN_HEAD) and path not in _KEY_IN_BODY
