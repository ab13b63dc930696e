"""The service's own API, under /v1. Knows HTTP and JSON; how a text is translated is known to the
language pair."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json
from starlette.exceptions import HTTPException

from dragoman.decoding.search_options import SearchOptions
from dragoman.documents.documents import written_name
from dragoman.errors import DragomanError
from dragoman.server.admission import admit, fleet_of, guard_of
from dragoman.server.described import FILE, MULTIPART, OF_READING, Other, answers
from dragoman.server.document_requests import (
    DocumentResponse,
    SentWith,
    admit_document,
    translate_sent,
)
from dragoman.server.document_workers import Sent
from dragoman.server.gathering import aside, together
from dragoman.server.language_pair import CORRECTED, LanguagePair
from dragoman.server.processes import reload_others
from dragoman.server.request_schema import (
    MAX_LOOK,
    AlternativesBody,
    InspectBody,
    Texts,
    TranslateBody,
    Upload,
)
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translate import Translator

router = APIRouter(tags=["Dragoman"])

_TRANSLATION = {
    "text": "Guten Morgen.",
    "score": -0.21,
    "tokens": ["▁Guten", "▁Morgen", "."],
    "token_probabilities": [0.97, 0.95, 0.99, 0.98],
    "alternatives": [{"text": "Einen guten Morgen.", "score": -0.9}],
    "alignment": [],
    "confidence": 0.93,
    "flags": [],
    "source": "en",
    "via": "",
    "corrected": False,
    "hints": [],
}
_TRANSLATED = {
    "translations": [_TRANSLATION],
    "model": "en-de",
    "source": "en",
    "via": "",
    "milliseconds": 41.5,
}
_INSIDE = {
    "source": ["▁Good", "."],
    "target": ["▁Gut", ".", "</s>"],
    "text": "Gut.",
    "probabilities": [0.91, 0.98, 0.99],
    "cross": [[[[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]]]],
    "sentences": ["Good."],
}
_EVENTS = Other(
    "text/event-stream",
    'data: {"index": 0, "text": "Guten Morgen.", "confidence": 0.93, "flags": []}\n\n'
    "event: done\ndata: {}\n\n",
)


@router.post("/v1/translate", responses=answers("/v1/translate", _TRANSLATED))
async def translate_fully(request: Request, body: TranslateBody) -> dict[str, Any]:
    """Translate texts; the answer has all that is known of each translation."""
    start = time.perf_counter()
    admitted = await admit(request, body, body.text)
    pair = admitted.pair
    asked = await aside(bool(body.glossary), body.to_request)

    async def translate_one(number: int) -> dict[str, Any]:
        own = admitted.pairs[number]
        return await _translation_with_hints(own, admitted.texts[number], asked)

    translations = await together(translate_one, range(len(admitted.texts)))
    seconds = time.perf_counter() - start
    return {
        "translations": translations,
        "model": pair.model,
        "source": pair.source,
        "via": pair.via,
        "milliseconds": round(1000 * seconds, 1),
    }


@router.post(
    "/v1/stream", response_class=StreamingResponse, responses=answers("/v1/stream", _EVENTS)
)
async def stream(request: Request, body: TranslateBody) -> StreamingResponse:
    """Translate texts; each is sent as a server-sent event once it is done, then `done`."""
    admitted = await admit(request, body, body.text)
    asked = await aside(bool(body.glossary), body.to_request)

    async def event(index: int, text: str) -> bytes:
        translation = await _translation_with_hints(admitted.pairs[index], text, asked)
        return b"data: " + to_json({"index": index, **translation}) + b"\n\n"

    async def events() -> AsyncIterator[bytes]:
        tasks = []
        for index, text in enumerate(admitted.texts):
            tasks.append(asyncio.ensure_future(event(index, text)))
        try:
            for task in asyncio.as_completed(tasks):
                yield await task
            yield b"event: done\ndata: {}\n\n"
        except DragomanError as error:
            yield b"event: error\ndata: " + to_json({"error": str(error)}) + b"\n\n"
        finally:
            for one in tasks:
                one.cancel()

    return StreamingResponse(events(), media_type="text/event-stream")


@router.post("/v1/inspect", response_class=Response, responses=answers("/v1/inspect", _INSIDE))
async def inspect(request: Request, body: InspectBody) -> Response:
    """Look inside the translation of a sentence: all layers and heads, and the search as a tree.

    With a temperature, the translation is sampled; with a correction, that translation is looked
    at.
    """
    from dragoman.inspection.look import look_inside

    options = body.search_options()

    def look(translator: Translator, text: str) -> bytes:
        # Made into JSON in the engine's thread already, since it is long.
        return to_json(look_inside(translator, text, options, body.correction))

    view = await _with_one_model(request, body, look)
    return Response(view, media_type="application/json")


@router.post(
    "/v1/alternatives",
    responses=answers("/v1/alternatives", {"alternatives": ["Einen guten Morgen."]}),
)
async def alternatives(request: Request, body: AlternativesBody) -> dict[str, list[str]]:
    """Return whole translations that begin with the prefix and then differ."""
    from dragoman.inspection.alternatives import alternatives as find

    options = SearchOptions(beam=max(SearchOptions.beam, body.count), nbest=body.count)
    texts = await _with_one_model(
        request, body, lambda translator, text: find(translator, text, body.prefix, options)
    )
    return {"alternatives": texts}


@router.post("/v1/documents", response_class=Response, responses=answers("/v1/documents", FILE))
async def documents(
    request: Request, body: Annotated[Upload, Form(media_type=MULTIPART)]
) -> Response:
    """Translate a document; the answer is a document of the same kind."""
    name = body.file.filename or ""
    data = await body.file.read()
    sent = Sent(name, data)
    pair = await admit_document(request, body, sent)
    asked = await aside(bool(body.glossary), body.to_request)
    (translation,) = await translate_sent(request, pair, [sent], SentWith(asked))
    return DocumentResponse(written_name(name), translation, pair.via)


@router.post(
    "/v1/admin/reload",
    responses=answers("/v1/admin/reload", {"reloaded": True, "problems": []}, OF_READING),
)
async def reload(request: Request) -> dict[str, Any]:
    """Read models and keys again, without dropping a request; what is broken stays as it was."""
    guard = guard_of(request)
    guard.refuse_foreign(request)
    guard.admit(request, admin=True)
    problems = await asyncio.to_thread(fleet_of(request).reload, guard.reload)
    if request.app.state.shared is not None:
        reload_others()
    return {"reloaded": not problems, "problems": problems}


async def _translation_with_hints(
    pair: LanguagePair, text: str, asked: TranslateRequest
) -> dict[str, Any]:
    """Return a translation as JSON has it, with near corrections."""
    translation = await pair.translate(text, asked)
    hints = []
    for similarity, correction in await pair.near_corrections(text):
        hints.append(
            {
                "similarity": round(similarity, 3),
                "source": correction.source,
                "target": correction.target,
            }
        )
    others = [{"text": other.text, "score": other.score} for other in translation.alternatives]
    return {
        **asdict(translation),
        "source": pair.source,
        "via": pair.via,
        "alternatives": others,
        "corrected": CORRECTED in translation.flags,
        "hints": hints,
    }


async def _with_one_model(
    request: Request, body: Texts, work: Callable[[Translator, str], Any]
) -> Any:
    """Return what a function finds out about a text with the one model of its pair.

    The function runs in that model's thread.
    """
    admitted = await admit(request, body, body.text, MAX_LOOK)
    engines = admitted.pair.engines
    if len(engines) != 1 or len(admitted.texts) != 1:
        raise HTTPException(
            400, "this needs one text, and a pair of languages that has a model of its own"
        )
    text = admitted.texts[0]
    flow = admitted.pair.flow
    future = engines[0].submit(text, lambda translator: work(translator, text), flow)
    return await asyncio.wrap_future(future)
