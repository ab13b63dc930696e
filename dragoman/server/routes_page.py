"""What is not an API of translation: the page, its description of the API, and the metrics. Knows
files and figures; no model."""

from __future__ import annotations

import prometheus_client
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import FileResponse, HTMLResponse
from fastapi.staticfiles import StaticFiles

from dragoman.inspection.view_file import PANEL
from dragoman.server.admission import guard_of
from dragoman.server.page_files import FILES, PAGE, stamp, with_stamps

router = APIRouter()


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Figures for Prometheus; with a key, where this server requires one."""
    guard_of(request).admit(request)
    return Response(
        prometheus_client.generate_latest(), media_type=prometheus_client.CONTENT_TYPE_LATEST
    )


@router.get("/", include_in_schema=False)
async def page() -> HTMLResponse:
    return HTMLResponse(with_stamps("index.html"))


@router.get("/docs", include_in_schema=False)
async def docs() -> HTMLResponse:
    return HTMLResponse(with_stamps("docs.html"))


@router.get("/manifest.webmanifest", include_in_schema=False)
async def manifest() -> FileResponse:
    return FileResponse(PAGE / "manifest.webmanifest", media_type="application/manifest+json")


def mount_files(app: FastAPI) -> None:
    """Serve the files of the page; the panel that looks inside belongs to inspection/.

    Under the stamp of their contents a browser keeps them for good; without it, it asks each time.
    """
    for folder in (f"/{FILES}/{stamp()}", f"/{FILES}"):
        app.mount(f"{folder}/view", StaticFiles(directory=PANEL))
        app.mount(folder, StaticFiles(directory=PAGE, check_dir=False))
