"""How each API says that it cannot do something: the status and the shape of the body that its
clients turn into their own exceptions. Knows paths, statuses and JSON; no route and no reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

QUOTA = 456  # DeepL's own status: the characters of a client are used up
_LIBRETRANSLATE_PATHS = ("/translate", "/translate_file", "/detect", "/suggest")
_DEEPL_PATHS = ("/v2/", "/v3/")
_OPENAI_PATHS = ("/v1/chat/", "/v1/models")
_OPENAI_KINDS = {401: "authentication_error", 429: "rate_limit_error", 404: "not_found_error"}
_OPENAI_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


@dataclass(frozen=True)
class Dialect:
    """The answers of an API to what cannot be served."""

    body: Callable[[int, str], dict[str, Any]]
    # What is answered in place of our own statuses.
    statuses: Mapping[int, int] = field(default_factory=dict)

    def refusal(self, status: int, message: str) -> tuple[int, dict[str, Any]]:
        """Return the status and the body that tell a client of this API what is wrong."""
        own = self.statuses.get(status, status)
        text = message.encode("utf-8", "replace").decode()
        return own, self.body(status, text)


def dialect_of(path: str) -> Dialect:
    """Return the dialect of the API that a path belongs to."""
    if path.startswith(_DEEPL_PATHS):
        return _DEEPL
    if path.startswith(_OPENAI_PATHS):
        return _OPENAI
    if path in _LIBRETRANSLATE_PATHS:
        return _LIBRETRANSLATE
    return _OWN


def _plain(status: int, message: str) -> dict[str, Any]:
    return {"error": message}


def _deepl(status: int, message: str) -> dict[str, Any]:
    return {"message": message}


def _openai(status: int, message: str) -> dict[str, Any]:
    own = _OPENAI_STATUSES.get(status, status)
    fallback = "server_error" if own >= 500 else "invalid_request_error"
    code = "insufficient_quota" if status == QUOTA else _OPENAI_CODES.get(own)
    kind = _OPENAI_KINDS.get(own, fallback)
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


_OPENAI_STATUSES = {403: 401, QUOTA: 429}
_OWN = Dialect(_plain, {QUOTA: 429})
_LIBRETRANSLATE = Dialect(_plain, {413: 400, 422: 400, QUOTA: 429})
_DEEPL = Dialect(_deepl, {422: 400})
_OPENAI = Dialect(_openai, _OPENAI_STATUSES)
