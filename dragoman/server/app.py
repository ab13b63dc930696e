"""The routes: LibreTranslate's, so that its clients work unchanged, and our own under /v1; and the
app that has them.

Knows HTTP and JSON; how a text is translated is the fleet's business, who may ask the guard's.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import prometheus_client
from fastapi import APIRouter, Depends, FastAPI, Form, Request, Response, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles
from pydantic import AfterValidator, BaseModel, Field, ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

from dragoman import __version__
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import DragomanError, FullDiskError
from dragoman.inspection.view_file import PANEL
from dragoman.server.engine import BusyError, Engine
from dragoman.server.fleet import CORRECTED, Fleet, together
from dragoman.server.guard import Gate, Guard
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translate import Translator
from dragoman.tasks.translation import Translation
from dragoman.text.glossary import Glossary, Term

PAGE = Path(__file__).with_name("page")
_KEPT = 50_000_000  # bytes of translated files that wait to be fetched
_CLOSELY = 2_000  # characters that can be looked at closely at once
Text = Annotated[
    str, AfterValidator(lambda text: text.encode().decode())
]  # no half of a pair of surrogates
Language = Annotated[Text, Field(max_length=40)]
router = APIRouter()


class Simple(BaseModel):
    """As LibreTranslate takes it."""

    q: Text | list[Text]
    source: Language = "auto"
    target: Language = ""
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(0, ge=0, le=15)
    api_key: str | None = None


class Upload(BaseModel):
    """A document."""

    file: UploadFile
    source: Language
    target: Language
    api_key: str | None = None


class Full(BaseModel, extra="forbid"):
    """Texts and what can be asked of their translation; each route takes what it needs."""

    text: Text | list[Text]
    source: Language = "auto"
    target: Language
    beam: int | None = Field(None, ge=1, le=16)
    alpha: float = Field(0.6, ge=0, le=10)
    nbest: int = Field(1, ge=1, le=16)
    sample: bool = False
    temperature: float = Field(1.0, gt=0, le=10)
    top_k: int = Field(0, ge=0, le=1_000_000)
    top_p: float = Field(1.0, gt=0, le=1)
    seed: int = Field(1, ge=0, lt=2**63)
    prefix: Text = Field("", max_length=_CLOSELY)
    careful: bool = False
    glossary: list[Annotated[list[Text], Field(min_length=2, max_length=20)]] = Field(
        [], max_length=1000
    )
    align: bool = False
    count: int = Field(5, ge=1, le=16)
    correction: Text = Field("", max_length=20_000)

    def ask(self, sample: bool) -> TranslateRequest:
        draws = {name: getattr(self, name) for name in ("temperature", "top_k", "top_p", "seed")}
        options = SearchOptions(
            self.beam or max(4, self.nbest), self.alpha, self.nbest, sample=sample, **draws
        )
        terms = [Term(row[0], tuple(row[1:])) for row in self.glossary]
        return TranslateRequest(
            options,
            self.prefix,
            Glossary(terms) if terms else None,
            self.align,
            self.careful,
        )


@dataclass
class Asked:
    """A request that was let in: its texts, languages and models."""

    fleet: Fleet
    texts: list[str]
    source: str
    target: str
    sure: float | None  # of the source, where it was detected
    path: list[Engine]
    model: str

    async def translate(self, text: str, ask: TranslateRequest) -> Translation:
        return await self.fleet.translate(text, self.source, self.target, ask)


def _admit(
    request: Request, body: Simple | Upload | Full, q: str | list[str], most: int = 0
) -> Asked:
    """The request may go on, by key, rate, size and languages; the log hears of its size."""
    guard, fleet = request.app.state.guard, request.app.state.fleet
    guard.admit(request, getattr(body, "api_key", None))
    texts, most = [q] if isinstance(q, str) else q, most or guard.limits.characters
    request.state.characters, request.state.text = size, _ = sum(map(len, texts)), texts
    if size > most:
        raise HTTPException(
            413, f"{size:,} characters, and this may have {most:,}; send less at a time"
        )
    if len(texts) > guard.limits.lines:
        raise HTTPException(
            422,
            f"{len(texts):,} texts, and a request may have {guard.limits.lines:,}; send fewer at a time",
        )
    source, sure = (
        fleet.detect("\n".join(texts)) if body.source == "auto" else (body.source.lower(), None)
    )
    path = fleet.path(source, body.target.lower())
    return Asked(
        fleet,
        texts,
        source,
        body.target.lower(),
        sure,
        path,
        " + ".join(engine.name for engine in path),
    )


async def _simple(request: Request) -> Simple:
    """As JSON or as a form: LibreTranslate's clients send either."""
    if "form" in request.headers.get("content-type", ""):
        return Simple.model_validate(dict(await request.form()))
    return Simple.model_validate_json(await request.body())


_KINDS = ("application/json", "application/x-www-form-urlencoded")
_EITHER = {
    "requestBody": {"content": {kind: {"schema": Simple.model_json_schema()} for kind in _KINDS}}
}
Body = Annotated[Simple, Depends(_simple)]


@router.post("/translate", openapi_extra=_EITHER)
async def translate(request: Request, body: Body) -> dict[str, Any]:
    """LibreTranslate's: a text, or a list of texts, as plain text or HTML."""
    asked, count = _admit(request, body, body.q), body.alternatives + 1
    ask = TranslateRequest(SearchOptions(beam=max(4, count), nbest=count))

    async def one(text: str) -> Translation:
        if body.format == "html":
            return Translation(
                (await _document(request, asked, "text.html", text.encode())).decode()
            )
        return await asked.translate(text, ask)

    found = await together(one, asked.texts)
    answer: dict[str, list[Any]] = {"translatedText": [one.text for one in found]}
    if body.alternatives:
        answer["alternatives"] = [[other.text for other in one.alternatives] for one in found]
    if asked.sure is not None:
        answer["detectedLanguage"] = [_detected(asked.source, asked.sure)] * len(found)
    return (
        {name: values[0] for name, values in answer.items()} if isinstance(body.q, str) else answer
    )


@router.post("/detect", openapi_extra=_EITHER)
async def detect(request: Request, body: Body) -> list[dict[str, Any]]:
    """LibreTranslate's: the language of a text, and how sure that is, up to 100."""
    request.app.state.guard.admit(request, body.api_key)
    return [
        _detected(
            *request.app.state.fleet.detect(
                "\n".join([body.q] if isinstance(body.q, str) else body.q)
            )
        )
    ]


@router.get("/languages")
async def languages(request: Request) -> list[dict[str, Any]]:
    """LibreTranslate's: the languages and what each can become."""
    return request.app.state.fleet.languages()


@router.post("/translate_file")
async def translate_file(request: Request, body: Annotated[Upload, Form()]) -> dict[str, str]:
    """LibreTranslate's: a document; the answer says where the translated one can be fetched for
    a while."""
    files, token = request.app.state.files, secrets.token_urlsafe(16)
    files[token] = await documents(request, body)
    while sum(len(answer.body) for answer in files.values()) > _KEPT:
        files.popitem(last=False)
    return {"translatedFileUrl": str(request.url_for("download_file", token=token))}


@router.get("/download_file/{token}")
async def download_file(request: Request, token: str) -> Response:
    """What /translate_file has made."""
    if token not in request.app.state.files:
        raise HTTPException(404, "there is no such file, or not any more; translate it again")
    return request.app.state.files[token]


@router.get("/frontend/settings")
async def settings(request: Request) -> dict[str, Any]:
    """LibreTranslate's: what a page should know."""
    from dragoman.documents.documents import KINDS

    fleet, guard = request.app.state.fleet, request.app.state.guard
    known = {
        "apiKeys": guard.keys is not None,
        "keyRequired": guard.keys is not None,
        "charLimit": guard.limits.characters,
    }
    known |= {
        "suggestions": fleet.corrections is not None,
        "filesTranslation": True,
        "supportedFilesFormat": KINDS,
    }
    pair = [
        next(one for one in fleet.languages() if one["code"] == code)
        for code in next(iter(fleet.engines))
    ]
    return known | {"language": {"source": pair[0], "target": pair[1]}, "frontendTimeout": 500}


@router.get("/health")
async def health() -> dict[str, str]:
    """LibreTranslate's."""
    return {"status": "ok"}


@router.post("/v1/translate")
async def translate_fully(request: Request, body: Full) -> dict[str, Any]:
    """Texts with all that is known of each translation."""
    start, asked, ask = time.perf_counter(), _admit(request, body, body.text), body.ask(body.sample)
    found = await together(lambda text: _told(asked, text, ask), asked.texts)
    took = round(1000 * (time.perf_counter() - start), 1)
    return {
        "translations": found,
        "model": asked.model,
        "source": asked.source,
        "milliseconds": took,
    }


@router.post("/v1/stream")
async def stream(request: Request, body: Full) -> StreamingResponse:
    """The same as server-sent events: one for each text as soon as it is translated, then the
    event `done`."""
    asked, ask = _admit(request, body, body.text), body.ask(body.sample)

    async def numbered(index: int, text: str) -> bytes:
        return b"data: " + to_json({"index": index, **await _told(asked, text, ask)}) + b"\n\n"

    async def events() -> AsyncIterator[bytes]:
        tasks = [asyncio.ensure_future(numbered(*one)) for one in enumerate(asked.texts)]
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


@router.post("/v1/inspect")
async def inspect(request: Request, body: Full) -> Response:
    """All layers and heads, and the search as a tree, of a sentence; with a temperature, of one
    that was drawn."""
    from dragoman.inspection.look import look_inside

    options = body.ask("temperature" in body.model_fields_set).options
    # JSON already in the engine's thread, since it is long.
    view = await _closely(
        request, body, lambda translator, text: to_json(look_inside(translator, text, options))
    )
    return Response(view, media_type="application/json")


@router.post("/v1/alternatives")
async def alternatives(request: Request, body: Full) -> dict[str, list[str]]:
    """Whole translations that begin with the prefix and then differ."""
    from dragoman.inspection.alternatives import alternatives as others

    options = SearchOptions(beam=max(4, body.count), nbest=body.count)
    return {
        "alternatives": await _closely(
            request, body, lambda one, text: others(one, text, body.prefix, options)
        )
    }


@router.post("/v1/corrections")
async def correct(request: Request, body: Full) -> dict[str, bool]:
    """Keeps how a reader would have it; from now on it answers this text."""
    from dragoman.server.corrections import Correction

    asked = _admit(request, body, body.text)
    if asked.fleet.corrections is None or len(asked.texts) != 1:
        raise HTTPException(
            404,
            "one text is corrected at a time, by a server that was started with --corrections FILE",
        )
    made = asked.source, asked.target, asked.texts[0].strip(), body.correction.strip(), asked.model
    when = datetime.now(UTC).isoformat(timespec="seconds")
    await asyncio.to_thread(asked.fleet.corrections.save, Correction(*made, when))
    return {"saved": True}


@router.post("/v1/documents")
async def documents(request: Request, body: Annotated[Upload, Form()]) -> Response:
    """A document in, the same kind of document out."""
    name, data = body.file.filename or "", await body.file.read()
    asked = _admit(
        request, body, data[:2000].decode("utf-8", "ignore")
    )  # enough to detect a language by
    # To be saved: never shown as a page of ours, whatever is in it.
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='', errors='replace')}"
    }
    return Response(
        await _document(request, asked, name, data),
        headers=headers,
        media_type="application/octet-stream",
    )


@router.post("/v1/admin/reload")
async def reload(request: Request) -> dict[str, Any]:
    """Reads models and keys again, without dropping a request; what is broken goes on as it was."""
    request.app.state.guard.admit(request, admin=True)
    problems = await asyncio.to_thread(
        request.app.state.fleet.reload, request.app.state.guard.reload
    )
    return {"reloaded": not problems, "problems": problems}


@router.get("/metrics")
async def metrics() -> Response:
    """Figures for Prometheus."""
    return Response(
        prometheus_client.generate_latest(), media_type=prometheus_client.CONTENT_TYPE_LATEST
    )


@router.get("/", include_in_schema=False)
@router.get("/docs", include_in_schema=False)
async def page(request: Request) -> FileResponse:
    return FileResponse(PAGE / ("docs.html" if request.url.path.endswith("docs") else "index.html"))


def _detected(language: str, sure: float) -> dict[str, Any]:
    return {"confidence": round(100 * sure, 1), "language": language}


async def _told(asked: Asked, text: str, ask: TranslateRequest) -> dict[str, Any]:
    """A translation as JSON has it, with near corrections."""
    found, store = await asked.translate(text, ask), asked.fleet.corrections
    near = await asyncio.to_thread(store.near, asked.source, asked.target, text) if store else []
    hints = [
        {"similarity": round(likeness, 3), "source": one.source, "target": one.target}
        for likeness, one in near
    ]
    others = [{"text": other.text, "score": other.score} for other in found.alternatives]
    return {
        **asdict(found),
        "alternatives": others,
        "corrected": CORRECTED in found.flags,
        "hints": hints,
    }


async def _closely(request: Request, body: Full, work: Callable[[Translator, str], Any]) -> Any:
    """What a function finds out about a text with the one model of its pair, in that model's
    thread."""
    asked = _admit(request, body, body.text, _CLOSELY)
    if len(asked.path) != 1 or len(asked.texts) != 1:
        raise HTTPException(
            400,
            "this looks at one text and one model; send one text of a pair that has a model of its own",
        )
    return await asyncio.wrap_future(
        asked.path[0].submit(asked.texts[0], lambda one: work(one, asked.texts[0]))
    )


async def _document(request: Request, asked: Asked, name: str, data: bytes) -> bytes:
    """By a thread that hands its texts back to the event loop, some at a time, so that others
    come in between."""
    from dragoman.documents.documents import translate_document

    loop, most = asyncio.get_running_loop(), request.app.state.guard.limits.document
    left = most

    async def one(text: str) -> Translation:
        nonlocal left
        left -= len(text)
        if left < 0:
            raise HTTPException(413, f"a document may have {most:,} characters; send it in parts")
        return await asked.translate(text, TranslateRequest(align=True))

    def translate(texts: list[str]) -> list[Translation]:
        return asyncio.run_coroutine_threadsafe(together(one, texts), loop).result()

    try:
        return await asyncio.to_thread(translate_document, name, data, translate)
    finally:
        left = 0  # nobody waits any more: the thread ends with its next text


async def _refused(request: Request, error: Exception) -> JSONResponse:
    """One sentence, whatever was wrong with a request."""
    status, told, headers = (
        503 if isinstance(error, BusyError) else 400,
        str(error),
        {"Retry-After": "1"},
    )
    if isinstance(error, FullDiskError):
        status = 507
    elif isinstance(error, HTTPException):
        status, told, headers = error.status_code, error.detail, dict(error.headers or {})
    elif isinstance(error, (RequestValidationError, ValidationError)):
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body")[:100]
        status, told = 422, f"{place or 'the body'}: {first['msg']}; /docs shows what is expected"
    return JSONResponse({"error": told.encode("utf-8", "replace").decode()}, status, headers)


def create_app(fleet: Fleet, guard: Guard, log_text: bool = False) -> FastAPI:
    """The whole service."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ValueError, RuntimeError):  # only a main thread hears signals
            loop.add_signal_handler(
                signal.SIGHUP, lambda: loop.run_in_executor(None, fleet.reload, guard.reload)
            )
        yield
        await asyncio.to_thread(fleet.close)

    app = FastAPI(
        title="Dragoman", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan
    )
    app.state.fleet, app.state.guard, app.state.files = fleet, guard, OrderedDict[str, Response]()
    app.include_router(router)
    app.mount("/static/view", StaticFiles(directory=PANEL))
    app.mount("/static", StaticFiles(directory=PAGE, check_dir=False))
    for kind in (HTTPException, RequestValidationError, ValidationError, DragomanError):
        app.add_exception_handler(kind, _refused)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)
    app.add_middleware(Gate, limits=guard.limits, log_text=log_text)
    return app
