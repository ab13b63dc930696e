"""Whether a request may go on: by its key, rate, size and languages. Knows the guard and the
fleet; not what the request is for."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request

from dragoman.server.fleet import Fleet
from dragoman.server.guard import Guard
from dragoman.server.language_pair import LanguagePair
from dragoman.server.request_schema import Full, Simple, Upload


@dataclass(frozen=True)
class Admitted:
    """The texts of a request that may go on, and the way of each into the target language."""

    texts: list[str]
    pairs: list[LanguagePair]  # one for each text, and one where there is no text
    confidences: list[float]  # of the source languages, where they were detected

    @property
    def pair(self) -> LanguagePair:
        """The way of the first text, which is that of all where the source was named."""
        return self.pairs[0]


def guard_of(request: Request) -> Guard:
    """Return the guard of the app that got the request."""
    return request.app.state.guard


def fleet_of(request: Request) -> Fleet:
    """Return the models of the app that got the request."""
    return request.app.state.fleet


def admit(
    request: Request, body: Simple | Upload | Full, text: str | list[str], most: int | None = None
) -> Admitted:
    """Let a request go on or raise; the log gets to know its size.

    `most` are the characters that it may have, where that is less than the guard's limit.
    """
    guard = guard_of(request)
    client = guard.admit(request, None if isinstance(body, Full) else body.api_key)
    texts = [text] if isinstance(text, str) else text
    size = sum(len(one) for one in texts)
    request.state.characters = size
    request.state.text = texts
    _check_size(size, most or guard.limits.characters)
    _check_count(len(texts), guard.limits.lines)
    fleet = fleet_of(request)
    if body.source != "auto":
        pair = fleet.pair(body.source, body.target, client)
        return Admitted(texts, [pair] * max(1, len(texts)), [])
    found = [fleet.detected_source(one) for one in texts or [""]]
    pairs = {one.language: fleet.pair(one.language, body.target, client) for one in found}
    return Admitted(
        texts, [pairs[one.language] for one in found], [one.confidence for one in found]
    )


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise HTTPException(
            413, f"the request has {size:,} characters and may have {most:,}; send less at a time"
        )


def _check_count(count: int, most: int) -> None:
    if count > most:
        raise HTTPException(
            422, f"the request has {count:,} texts and may have {most:,}; send fewer at a time"
        )
