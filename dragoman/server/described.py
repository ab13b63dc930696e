"""What the API's document says of a route's answers: an example of what comes back, and each way
in which the route may refuse, in the words of its own API. Knows OpenAPI; no route."""

from __future__ import annotations

from typing import Any

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
    422: ("A field is missing or wrong", "beam: Input should be less than or equal to 16"),
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
OF_TEXTS = (400, 403, 413, 422, 429, QUOTA, 503)  # what may be wrong with texts to translate
OF_READING = (403, 429)  # with a question about the service


def answers(path: str, answer: Any, refusals: tuple[int, ...] = OF_TEXTS) -> dict[int | str, Any]:
    """Return the answers of a route: an example of what it returns, and of what it refuses.

    Where an API has one status for several reasons, it lists them all.
    """
    dialect = dialect_of(path)
    described: dict[int | str, Any] = {200: _one("The answer", answer)}
    for status in refusals:
        reason, sentence = _REFUSALS[status]
        own, body = dialect.refusal(status, sentence)
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
    return {"description": description, "content": {"application/json": {"example": body}}}
