"""DeepL's API of documents: sent, asked about, and fetched. Knows HTTP and JSON; how a document is
translated is known to document_requests."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from starlette.exceptions import HTTPException

from dragoman.documents.documents import KINDS, kind_of, written_name
from dragoman.errors import InputError
from dragoman.server.admission import admit_client
from dragoman.server.deepl_schema import DeeplDocument, DocumentKey
from dragoman.server.described import FILE, MULTIPART, answers
from dragoman.server.document_requests import (
    DocumentResponse,
    SentWith,
    admit_document,
    translate_sent,
)
from dragoman.server.document_workers import Sent
from dragoman.server.language_pair import LanguagePair
from dragoman.server.pending_documents import PendingDocuments
from dragoman.server.routes_deepl import asked_of
from dragoman.server.sent_fields import either_way, read_fields
from dragoman.server.stored_files import StoredFile, StoredFiles

router = APIRouter(tags=["DeepL"])

# DeepL's clients ask again every few seconds, so that an answer that comes a little later saves
# them a wait.
_PATIENCE = 2.0
_HANDLE = {"document_id": "Zx81…", "document_key": "h7Lq…"}


async def _read_key(request: Request) -> DocumentKey:
    return await read_fields(request, DocumentKey)


_Key = Annotated[DocumentKey, Depends(_read_key)]


@router.post("/v2/document", responses=answers("/v2/document", _HANDLE))
async def upload(
    request: Request, body: Annotated[DeeplDocument, Form(media_type=MULTIPART)]
) -> dict[str, str]:
    """DeepL: send a document to translate. The answer has what is needed to ask for it."""
    body.check()
    name = body.file.filename or body.filename
    data = await body.file.read()
    sent = Sent(name, data)
    pair = await admit_document(request, body, sent)
    _check_name(name, body.output_format)
    client = pair.flow.client
    asked = await asked_of(request, body, pair)
    pending: PendingDocuments = request.app.state.pending
    pending.check_room(client)
    files: StoredFiles = request.app.state.files
    file = StoredFile(client, written_name(name), via=pair.via, held=len(data))
    file.key = secrets.token_urlsafe(24)
    token = files.put(file)
    pending.begin(file, _translate(request, pair, sent, SentWith(asked)))
    return {"document_id": token, "document_key": file.key}


@router.post(
    "/v2/document/{document_id}",
    openapi_extra=either_way(DocumentKey),
    responses=answers(
        "/v2/document/{document_id}",
        {"document_id": "Zx81…", "status": "done", "billed_characters": 1200},
        (403, 404, 422, 429),
    ),
)
async def status(request: Request, document_id: str, body: _Key) -> dict[str, Any]:
    """DeepL: whether a document is done."""
    file = _own_file(request, document_id, body)
    until = time.monotonic() + _PATIENCE
    while file.data is None and not file.problem and time.monotonic() < until:
        await asyncio.sleep(0.02)
        file = _own_file_again(request, document_id, file)
    if file.problem:
        state = {"status": "error", "error_message": file.problem, "message": file.problem}
    elif file.data is None:
        state = {"status": "translating"}
    else:
        state = {"status": "done"}
    answer: dict[str, Any] = {"document_id": document_id, **state}
    if file.data is not None:
        answer["billed_characters"] = file.characters
        answer |= {"via": file.via.upper()} if file.via else {}
    return answer


@router.post(
    "/v2/document/{document_id}/result",
    openapi_extra=either_way(DocumentKey),
    response_class=Response,
    responses=answers("/v2/document/{document_id}/result", FILE, (403, 404, 422, 429, 503)),
)
async def result(request: Request, document_id: str, body: _Key) -> Response:
    """DeepL: fetch a document, which is forgotten then."""
    file = _own_file(request, document_id, body)
    if file.problem:
        raise HTTPException(404, file.problem)
    if file.data is None:
        raise HTTPException(503, "Document not ready; ask for its status", {"Retry-After": "1"})
    files: StoredFiles = request.app.state.files
    files.remove(document_id)
    return DocumentResponse(file.name, file.data, file.via)


async def _translate(
    request: Request, pair: LanguagePair, sent: Sent, given: SentWith
) -> tuple[bytes, int]:
    (translated,) = await translate_sent(request, pair, [sent], given)
    return translated, request.state.characters


def _check_name(name: str, output_format: str) -> None:
    """Refuse at once what would fail later, by its name alone."""
    if kind_of(name) not in KINDS:
        raise InputError(f"Invalid file data: {name} does not end in {', '.join(KINDS)}.")
    written = kind_of(written_name(name)).lstrip(".")
    if output_format and output_format.lower().lstrip(".") != written:
        raise InputError(f"'output_format' is not supported: {name} becomes a .{written} file.")


def _own_file(request: Request, document_id: str, body: DocumentKey) -> StoredFile:
    """Return the file of a client that has its key as well."""
    client = admit_client(request)
    files: StoredFiles = request.app.state.files
    file = files.get(document_id)
    is_own = file is not None and file.client == client and bool(file.key)
    if file is None or not is_own or not _is_same(file.key, body.document_key):
        raise HTTPException(404, "Document not found, or no longer; send it again")
    return file


def _own_file_again(request: Request, document_id: str, file: StoredFile) -> StoredFile:
    """Return what has become of a file, which another process may be working on."""
    files: StoredFiles = request.app.state.files
    return files.get(document_id) or file


def _is_same(key: str, given: str) -> bool:
    return hmac.compare_digest(key.encode(), given.encode())
