"""LibreTranslate's API, so that its clients work unchanged. Knows HTTP and JSON; how a text is
translated is known to the language pair."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from starlette.exceptions import HTTPException

from dragoman.documents.documents import KINDS
from dragoman.server.admission import Admitted, admit, fleet_of, guard_of
from dragoman.server.document_requests import translate_sent
from dragoman.server.document_workers import Sent
from dragoman.server.gathering import together
from dragoman.server.request_schema import Simple, Upload
from dragoman.server.routes_v1 import documents
from dragoman.tasks.translation import Translation
from dragoman.text.glossary import Glossary

router = APIRouter()

_MAX_FILES = 50_000_000  # bytes of translated files that wait to be fetched
_MEDIA_TYPES = ("application/json", "application/x-www-form-urlencoded")
_SCHEMA = {"schema": Simple.model_json_schema()}
_EITHER = {"requestBody": {"content": dict.fromkeys(_MEDIA_TYPES, _SCHEMA)}}


async def _read_simple(request: Request) -> Simple:
    """Read JSON or a form: LibreTranslate's clients send either."""
    if "form" in request.headers.get("content-type", ""):
        return Simple.model_validate(dict(await request.form()))
    return Simple.model_validate_json(await request.body())


Body = Annotated[Simple, Depends(_read_simple)]


@router.post("/translate", openapi_extra=_EITHER)
async def translate(request: Request, body: Body) -> dict[str, Any]:
    """LibreTranslate: translate a text, or a list of texts, as plain text or HTML."""
    admitted = admit(request, body, body.q)
    translations = await _translate_all(request, body, admitted)
    answer: dict[str, list[Any]] = {"translatedText": [one.text for one in translations]}
    if body.alternatives:
        answer["alternatives"] = [
            [other.text for other in translation.alternatives] for translation in translations
        ]
    if admitted.confidences:
        found = zip(admitted.pairs, admitted.confidences, strict=True)
        answer["detectedLanguage"] = [_detected(pair.source, share) for pair, share in found]
    if isinstance(body.q, str):
        return {name: values[0] for name, values in answer.items()}
    return answer


async def _translate_all(request: Request, body: Simple, admitted: Admitted) -> list[Translation]:
    asked = body.to_request()
    if body.format == "html":
        return await _translate_pages(request, admitted, asked.glossary)

    async def translate_one(number: int) -> Translation:
        return await admitted.pairs[number].translate(admitted.texts[number], asked)

    return await together(translate_one, range(len(admitted.texts)))


async def _translate_pages(
    request: Request, admitted: Admitted, glossary: Glossary | None
) -> list[Translation]:
    """Translate pieces of HTML, those of one language together."""
    translations = [Translation(text) for text in admitted.texts]
    numbers = [number for number, text in enumerate(admitted.texts) if text.strip()]
    for source in dict.fromkeys(admitted.pairs[number].source for number in numbers):
        own = [number for number in numbers if admitted.pairs[number].source == source]
        pages = [Sent("text.html", admitted.texts[number].encode()) for number in own]
        done = await translate_sent(request, admitted.pairs[own[0]], pages, glossary)
        for number, page in zip(own, done, strict=True):
            translations[number] = Translation(page.decode())
    return translations


@router.post("/detect", openapi_extra=_EITHER)
async def detect(request: Request, body: Body) -> list[dict[str, Any]]:
    """LibreTranslate: detect the language of a text; the confidence is from 0 to 100."""
    guard_of(request).admit(request, body.api_key)
    text = body.q if isinstance(body.q, str) else "\n".join(body.q)
    found = fleet_of(request).detect(text)
    return [_detected(found.language, found.confidence)]


@router.get("/languages")
async def languages(request: Request) -> list[dict[str, Any]]:
    """LibreTranslate: list the languages, and the targets of each."""
    return fleet_of(request).languages()


@router.post("/translate_file")
async def translate_file(request: Request, body: Annotated[Upload, Form()]) -> dict[str, str]:
    """LibreTranslate: translate a document; the answer says where it can be fetched for a while."""
    files = request.app.state.files
    token = secrets.token_urlsafe(16)
    files[token] = await documents(request, body)
    while sum(len(answer.body) for answer in files.values()) > _MAX_FILES:
        files.popitem(last=False)
    return {"translatedFileUrl": str(request.url_for("download_file", token=token))}


@router.get("/download_file/{token}")
async def download_file(request: Request, token: str) -> Response:
    """LibreTranslate: fetch what /translate_file has made."""
    files = request.app.state.files
    if token not in files:
        raise HTTPException(404, "there is no such file, or no longer; translate it again")
    return files[token]


@router.get("/frontend/settings")
async def settings(request: Request) -> dict[str, Any]:
    """LibreTranslate: what a page needs to know."""
    fleet = fleet_of(request)
    guard = guard_of(request)
    needs_key = guard.keys is not None
    by_code = {language["code"]: language for language in fleet.languages()}
    source, target = next(iter(fleet.engines))
    return {
        "apiKeys": needs_key,
        "keyRequired": needs_key,
        "charLimit": guard.limits.characters,
        "suggestions": fleet.corrections is not None,
        "filesTranslation": True,
        "supportedFilesFormat": KINDS,
        "language": {"source": by_code[source], "target": by_code[target]},
        "frontendTimeout": 500,
    }


@router.get("/health")
async def health() -> dict[str, str]:
    """LibreTranslate: whether the service is up."""
    return {"status": "ok"}


def _detected(language: str, confidence: float) -> dict[str, Any]:
    return {"confidence": round(100 * confidence, 1), "language": language}
