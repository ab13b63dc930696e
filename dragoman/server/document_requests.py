"""Documents that were sent, translated: read and written by a process of their own, their texts
translated with those of all other requests. Knows the limit on documents; what is in one is known
to documents/."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.documents.document_settings import DocumentSettings
from dragoman.server.admission import Asked, admit_client, fleet_of, guard_of
from dragoman.server.document_workers import DocumentWorkers, Sent
from dragoman.server.gathering import together
from dragoman.server.language_pair import LanguagePair
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translation import Translation

_BLOCK = 2**18  # bytes
_DETECTED = 2_000  # characters that are enough to detect a language by


class DocumentResponse(Response):
    """A document to be saved: never shown as a page of ours, whatever is in it."""

    def __init__(self, name: str, content: bytes, via: str = "") -> None:
        quoted = quote(name, safe="", errors="replace")
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quoted}"}
        if via:
            headers["Dragoman-Via"] = via  # the language between
        super().__init__(content, headers=headers, media_type="application/octet-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the document in blocks; others have their turn between them, since each is
        compressed."""
        head = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(head)
        for start in range(0, len(self.body), _BLOCK):
            block = self.body[start : start + _BLOCK]
            await send({"type": "http.response.body", "body": block, "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})


@dataclass(frozen=True)
class SentWith:
    """What is said of documents besides their languages."""

    asked: TranslateRequest
    settings: DocumentSettings = field(default_factory=DocumentSettings)
    # Whether their characters have been counted for the client's day before.
    is_charged: bool = False


async def admit_document(request: Request, body: Asked, document: Sent) -> LanguagePair:
    """Let a document go on or raise; return its way into the target language.

    If its language is to be detected, it is by the texts in it. They are counted later.
    """
    client = admit_client(request, body)
    fleet = fleet_of(request)
    if body.source != "auto":
        return fleet.pair(body.source, body.target, client)
    workers: DocumentWorkers = request.app.state.workers
    texts = await workers.texts([document], guard_of(request).limits.document)
    found = fleet.detected_source(" ".join(texts)[:_DETECTED])
    return fleet.pair(found.language, body.target, client)


async def translate_sent(
    request: Request, pair: LanguagePair, documents: Sequence[Sent], given: SentWith
) -> list[bytes]:
    """Translate documents of at most as many characters as the guard allows."""
    workers: DocumentWorkers = request.app.state.workers
    guard = guard_of(request)
    settings = replace(given.settings, source_language=pair.source, target_language=pair.target)
    texts = await workers.texts(documents, guard.limits.document, settings)
    characters = sum(len(text) for text in texts)
    request.state.characters = characters
    if not given.is_charged:
        guard.charge(pair.flow.client, characters)

    aligned = replace(given.asked, align=True)

    async def translate_one(number: int) -> Translation:
        before = texts[max(0, number - aligned.context) : number]
        return await pair.translate(texts[number], aligned, before)

    translations = await together(translate_one, range(len(texts)))
    answers = dict(zip(texts, translations, strict=True))
    return await workers.translated(documents, answers, settings)
