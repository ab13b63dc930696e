"""Whether a request may go on: by its key, rate, size and languages. Knows the guard and the
fleet; not what the request is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request

from dragoman.errors import OptionError
from dragoman.server.fleet import Fleet
from dragoman.server.gathering import one_by_one
from dragoman.server.guard import Guard
from dragoman.server.language_pair import LanguagePair
from dragoman.text.detection import Detected

_LONG = 1_000  # characters whose language takes a millisecond of the processor to detect


class Asked(Protocol):
    """What every request for a translation names, whatever its API calls it."""

    @property
    def source(self) -> str:
        """The language of the texts, or auto."""

    @property
    def target(self) -> str:
        """The language to translate into."""


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


async def admit(
    request: Request, body: Asked, text: str | list[str], most: int | None = None
) -> Admitted:
    """Let a request go on or raise; the log gets to know its size.

    `most` are the characters that it may have, where that is less than the guard's limit.
    """
    client = admit_client(request, body)
    texts = [text] if isinstance(text, str) else text
    guard = guard_of(request)
    size = sum(len(one) for one in texts)
    request.state.characters = size
    request.state.text = texts
    _check_size(size, most or guard.limits.characters)
    _check_count(len(texts), guard.limits.lines)
    admitted = await find_pairs(request, body, client, texts)
    guard.charge(client, size)
    return admitted


def admit_client(request: Request, body: object = None) -> str:
    """Let whoever sends a request go on or raise; return the name of a key, or an address."""
    return guard_of(request).admit(request, getattr(body, "api_key", None))


async def find_pairs(request: Request, body: Asked, client: str, texts: list[str]) -> Admitted:
    """Return the way of each text into the target language, or raise where there is none."""
    fleet = fleet_of(request)
    if body.source != "auto":
        pair = fleet.pair(body.source, body.target, client)
        return Admitted(texts, [pair] * max(1, len(texts)), [])
    found = await _detected(fleet, texts or [""])
    pairs = {one.language: fleet.pair(one.language, body.target, client) for one in found}
    return Admitted(
        texts, [pairs[one.language] for one in found], [one.confidence for one in found]
    )


async def _detected(fleet: Fleet, texts: list[str]) -> list[Detected]:
    """Return the language of each text; of several, the error says which has none of ours."""

    def detect(number: int) -> Detected:
        try:
            return fleet.detected_source(texts[number])
        except OptionError as error:
            if len(texts) == 1:
                raise
            raise OptionError(f"text {number + 1:,} of {len(texts):,}: {error}") from None

    return await one_by_one(detect, range(len(texts)), lambda number: takes_long(texts[number]))


def takes_long(text: str) -> bool:
    """Return whether it takes more than a moment to detect the language of a text."""
    return len(text) >= _LONG


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
