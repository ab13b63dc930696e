"""LibreTranslate's API, so that its clients work unchanged. Knows HTTP and JSON; how a text is
translated is known to the language pair."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from starlette.exceptions import HTTPException

from dragoman.documents.documents import KINDS, written_name
from dragoman.server.admission import (
    Admitted,
    admit,
    admit_client,
    fleet_of,
    guard_of,
    takes_long,
)
from dragoman.server.correction_requests import save_correction
from dragoman.server.described import FILE, MULTIPART, answers
from dragoman.server.document_requests import (
    DocumentResponse,
    SentWith,
    admit_document,
    translate_sent,
)
from dragoman.server.document_workers import Sent
from dragoman.server.gathering import aside, one_by_one, together
from dragoman.server.libretranslate_schema import DetectText, Suggestion, TranslateText
from dragoman.server.page_texts import translate_pages
from dragoman.server.request_schema import Upload
from dragoman.server.sent_fields import either_way, read_fields
from dragoman.server.stored_files import StoredFile, StoredFiles
from dragoman.tasks.translation import Translation

router = APIRouter(tags=["LibreTranslate"])

_DETECTED = {"confidence": 97.0, "language": "en"}
_ENGLISH = {"code": "en", "name": "English", "targets": ["de"]}
_GERMAN = {"code": "de", "name": "German", "targets": ["en"]}
_SETTINGS = {
    "apiKeys": False,
    "keyRequired": False,
    "charLimit": 20_000,
    "suggestions": False,
    "filesTranslation": True,
    "supportedFilesFormat": [".txt", ".html"],
    "language": {"source": _ENGLISH, "target": _GERMAN},
    "frontendTimeout": 500,
}


async def _read_text(request: Request) -> DetectText:
    return await read_fields(request, DetectText)


async def _read_suggestion(request: Request) -> Suggestion:
    return await read_fields(request, Suggestion)


@router.post(
    "/translate",
    openapi_extra=either_way(TranslateText),
    responses=answers("/translate", {"translatedText": "Guten Morgen."}),
)
async def translate(request: Request) -> dict[str, Any]:
    """LibreTranslate: translate a text, or a list of texts, as plain text or HTML.

    Where a third language lies between, `via` names it.
    """
    body = await read_fields(request, TranslateText)
    admitted = await admit(request, body, body.q)
    translations = await _translate_all(request, body, admitted)
    answer: dict[str, list[Any]] = {"translatedText": [one.text for one in translations]}
    if body.alternatives:
        answer["alternatives"] = [
            [other.text for other in translation.alternatives] for translation in translations
        ]
    if admitted.confidences:
        found = zip(admitted.pairs, admitted.confidences, strict=True)
        answer["detectedLanguage"] = [_detected(pair.source, share) for pair, share in found]
    if any(pair.via for pair in admitted.pairs):
        answer["via"] = [pair.via for pair in admitted.pairs]
    if isinstance(body.q, str):
        return {name: values[0] for name, values in answer.items()}
    return answer


async def _translate_all(
    request: Request, body: TranslateText, admitted: Admitted
) -> list[Translation]:
    asked = await aside(bool(body.glossary), body.to_request)
    if body.format == "html":
        return await translate_pages(request, admitted, SentWith(asked))

    async def translate_one(number: int) -> Translation:
        return await admitted.pairs[number].translate(admitted.texts[number], asked)

    return await together(translate_one, range(len(admitted.texts)))


@router.post(
    "/detect",
    openapi_extra=either_way(DetectText),
    responses=answers("/detect", [_DETECTED], (400, 403, 422, 429)),
)
async def detect(
    request: Request, body: Annotated[DetectText, Depends(_read_text)]
) -> list[dict[str, Any]]:
    """LibreTranslate: detect the language of a text; the confidence is from 0 to 100.

    For a list of texts there is one answer for each.
    """
    admit_client(request, body)
    texts = [body.q] if isinstance(body.q, str) else body.q
    if len(texts) > guard_of(request).limits.lines:
        raise HTTPException(422, f"{len(texts):,} texts are too many; send fewer at a time")
    found = await one_by_one(fleet_of(request).detect, texts, takes_long)
    return [_detected(one.language, one.confidence) for one in found]


@router.post(
    "/suggest",
    openapi_extra=either_way(Suggestion),
    responses=answers("/suggest", {"success": True}),
)
async def suggest(
    request: Request, body: Annotated[Suggestion, Depends(_read_suggestion)]
) -> dict[str, bool]:
    """LibreTranslate: suggest a better translation. It is saved as a correction, which is returned
    for this text from now on."""
    guard_of(request).refuse_foreign(request)
    admitted = await admit(request, body, body.q)
    corrections = admitted.pair.corrections
    if corrections is None:
        raise HTTPException(403, "Suggestions are disabled on this server.")
    await save_correction(corrections, admitted.pair, body.q, body.s)
    return {"success": True}


@router.get("/languages", responses=answers("/languages", [_GERMAN, _ENGLISH], ()))
async def languages(request: Request) -> list[dict[str, Any]]:
    """LibreTranslate: list the languages, and the targets of each."""
    return fleet_of(request).languages()


@router.post(
    "/translate_file",
    responses=answers(
        "/translate_file", {"translatedFileUrl": "http://127.0.0.1:5000/download_file/pK3…w.docx"}
    ),
)
async def translate_file(
    request: Request, body: Annotated[Upload, Form(media_type=MULTIPART)]
) -> dict[str, str]:
    """LibreTranslate: translate a document; the answer says where it can be fetched for a while."""
    name = body.file.filename or ""
    data = await body.file.read()
    sent = Sent(name, data)
    pair = await admit_document(request, body, sent)
    asked = await aside(bool(body.glossary), body.to_request)
    (translated,) = await translate_sent(request, pair, [sent], SentWith(asked))
    files: StoredFiles = request.app.state.files
    written = written_name(name)
    kept = StoredFile(pair.flow.client, written, translated, via=pair.via)
    token = files.put(kept, PurePath(written).suffix.lower())
    return {"translatedFileUrl": str(request.url_for("download_file", token=token))}


@router.get(
    "/download_file/{token}",
    response_class=Response,
    responses=answers("/download_file", FILE, (404,)),
)
async def download_file(request: Request, token: str) -> Response:
    """LibreTranslate: fetch what /translate_file has made."""
    files: StoredFiles = request.app.state.files
    file = files.get(token)
    if file is None or file.data is None:
        raise HTTPException(404, "there is no such file, or no longer; translate it again")
    return DocumentResponse(file.name, file.data, file.via)


@router.get("/frontend/settings", responses=answers("/frontend/settings", _SETTINGS, ()))
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


@router.get("/health", responses=answers("/health", {"status": "ok"}, ()))
async def health() -> dict[str, str]:
    """LibreTranslate: whether the service is up."""
    return {"status": "ok"}


def _detected(language: str, confidence: float) -> dict[str, Any]:
    return {"confidence": round(100 * confidence, 1), "language": language}
