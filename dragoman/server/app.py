"""The service: its routes, pages and guards put together. Knows which parts there are; each says
for itself what it does."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator

from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware

from dragoman import __version__
from dragoman.server import (
    routes_corrections,
    routes_deepl,
    routes_deepl_documents,
    routes_deepl_glossaries,
    routes_libretranslate,
    routes_nmt,
    routes_openai,
    routes_page,
    routes_progress,
    routes_v1,
)
from dragoman.server.described import describe
from dragoman.server.document_workers import DocumentWorkers
from dragoman.server.file_spool import FileSpool
from dragoman.server.fleet import Fleet
from dragoman.server.gate import Gate
from dragoman.server.glossary_store import GlossaryStore
from dragoman.server.guard import Guard
from dragoman.server.pending_documents import PendingDocuments
from dragoman.server.ready_glossaries import ReadyGlossaries
from dragoman.server.refusals import answer_errors
from dragoman.server.shared_folder import SharedFolder
from dragoman.server.stored_files import StoredFiles

_ROUTES = (
    routes_libretranslate,
    routes_v1,
    routes_corrections,
    routes_deepl,
    routes_deepl_documents,
    routes_deepl_glossaries,
    routes_openai,
    routes_nmt,
    routes_progress,
    routes_page,
)


def create_app(
    fleet: Fleet,
    guard: Guard,
    log_text: bool = False,
    glossaries: GlossaryStore | None = None,
    shared: SharedFolder | None = None,
) -> FastAPI:
    """Return the whole service, or one of its processes, which have a folder in common."""
    spool = None if shared is None else FileSpool(shared.files)
    if shared is not None:
        guard.share(shared)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        _reload_on_signal(fleet, guard)
        yield
        app.state.pending.cancel()
        app.state.workers.close()
        app.state.files.clear()
        await asyncio.to_thread(fleet.close)
        if fleet.corrections is not None:
            fleet.corrections.close()

    app = FastAPI(
        title="Dragoman",
        version=__version__,
        openapi_url=None,  # served by described.py, which writes it once
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.fleet = fleet
    app.state.guard = guard
    app.state.workers = DocumentWorkers()
    app.state.files = StoredFiles(folder=spool)
    app.state.shared = shared
    app.state.pending = PendingDocuments(app.state.files, guard.limits.seconds)
    app.state.glossaries = glossaries or GlossaryStore()
    app.state.ready_glossaries = ReadyGlossaries()
    for routes in _ROUTES:
        app.include_router(routes.router)
    routes_page.mount_files(app)
    describe(app)
    answer_errors(app)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)
    app.add_middleware(Gate, guard=guard, log_text=log_text)
    return app


def _reload_on_signal(fleet: Fleet, guard: Guard) -> None:
    """Read models and keys again on SIGHUP, which Windows does not have."""
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is None:
        return
    loop = asyncio.get_running_loop()

    def reload() -> None:
        loop.run_in_executor(None, fleet.reload, guard.reload)

    with contextlib.suppress(ValueError, RuntimeError):  # only a main thread gets signals
        loop.add_signal_handler(hangup, reload)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [hangup])  # one may have waited for this
