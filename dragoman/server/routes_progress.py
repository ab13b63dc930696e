"""Documents whose translation is told while it goes on: how far it is, what may be wrong in it and
where to fetch it. Knows HTTP and server-sent events; what is in a document is known to
documents/."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.documents import written_name
from dragoman.errors import DragomanError
from dragoman.server.admission import guard_of
from dragoman.server.described import MULTIPART, Other, answers
from dragoman.server.document_requests import admit_document
from dragoman.server.document_workers import DocumentWorkers, Sent
from dragoman.server.gathering import AT_ONCE, aside
from dragoman.server.language_pair import CORRECTED, LanguagePair
from dragoman.server.request_schema import Upload
from dragoman.server.stored_files import StoredFile, StoredFiles
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translation import Translation

router = APIRouter()

_MOST_NOTES = 100  # texts that are listed as perhaps wrong
_LONGEST_NOTE = 300  # characters of a text there


_EVENTS = Other(
    "text/event-stream",
    'data: {"done": 1, "of": 2}\n\nevent: done\n'
    'data: {"url": "download_file/h7Lq….docx", "name": "report.docx", "source": "en", '
    '"via": "", "texts": 2, "flagged": 0, "notes": []}\n\n',
)


@router.post(
    "/v1/documents/stream",
    response_class=StreamingResponse,
    responses=answers("/v1/documents/stream", _EVENTS),
)
async def stream_document(
    request: Request, body: Annotated[Upload, Form(media_type=MULTIPART)]
) -> StreamingResponse:
    """Translate a document, telling how far it is.

    Server-sent events: `{"done", "of"}` counts its texts; the last, `done`, has `url`, where the
    document can be fetched for a while, `flagged`, how many texts may be wrong, and `notes`, the
    first of them with their flags. A document whose source is `auto` is detected by its texts.
    """
    sent = Sent(body.file.filename or "", await body.file.read())
    asked = replace(await aside(bool(body.glossary), body.to_request), align=True)
    pair = await admit_document(request, body, sent)
    settings = DocumentSettings(pair.source, pair.target)
    workers: DocumentWorkers = request.app.state.workers
    guard = guard_of(request)
    texts = await workers.texts([sent], guard.limits.document, settings)
    request.state.characters = sum(len(text) for text in texts)
    guard.charge(pair.flow.client, request.state.characters)

    async def events() -> AsyncIterator[bytes]:
        translations: dict[str, Translation] = {}
        try:
            async for text, translation in _translated(pair, texts, asked):
                translations[text] = translation
                if _is_news(len(translations), len(texts)):
                    yield _event("message", {"done": len(translations), "of": len(texts)})
            (data,) = await workers.translated([sent], translations, settings)
        except DragomanError as error:
            yield _event("error", {"error": str(error)})
            return
        found = _stored(request, pair, sent.name, data) | {"texts": len(texts)}
        yield _event("done", found | _notes(translations))

    return StreamingResponse(events(), media_type="text/event-stream")


def _stored(request: Request, pair: LanguagePair, name: str, data: bytes) -> dict[str, str]:
    """Keep a translated document for a while; return where it is and what it is called."""
    files: StoredFiles = request.app.state.files
    written = written_name(name)
    kept = StoredFile(pair.flow.client, written, data, via=pair.via)
    token = files.put(kept, PurePath(written).suffix.lower())
    return {
        "url": f"download_file/{token}",
        "name": written,
        "source": pair.source,
        "via": pair.via,
    }


async def _translated(
    pair: LanguagePair, texts: Sequence[str], asked: TranslateRequest
) -> AsyncIterator[tuple[str, Translation]]:
    """Yield each text with its translation once it is done, working on 64 at a time."""

    async def translate(number: int) -> tuple[str, Translation]:
        before = texts[max(0, number - asked.context) : number]
        return texts[number], await pair.translate(texts[number], asked, before)

    numbers = range(len(texts))
    for start in range(0, len(texts), AT_ONCE):
        tasks = [asyncio.ensure_future(translate(one)) for one in numbers[start : start + AT_ONCE]]
        try:
            for task in asyncio.as_completed(tasks):
                yield await task
        finally:
            for one in tasks:
                one.cancel()


def _is_news(done: int, of: int) -> bool:
    """Whether another hundredth of the texts is done."""
    return 100 * done // of > 100 * (done - 1) // of


def _notes(translations: Mapping[str, Translation]) -> dict[str, Any]:
    """What may be wrong in these translations."""
    notes = []
    for text, translation in translations.items():
        flags = [flag for flag in translation.flags if flag != CORRECTED]
        if flags:
            notes.append(
                {
                    "text": text[:_LONGEST_NOTE],
                    "translation": translation.text[:_LONGEST_NOTE],
                    "flags": flags,
                }
            )
    return {"flagged": len(notes), "notes": notes[:_MOST_NOTES]}


def _event(name: str, data: dict[str, Any]) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + to_json(data) + b"\n\n"
