"""What is not an API of translation: the page, its description of the API, and the metrics. Knows
files and figures; no model."""

from __future__ import annotations

from pathlib import Path

import prometheus_client
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from dragoman.inspection.view_file import PANEL
from dragoman.server.admission import guard_of

router = APIRouter()

_PAGE = Path(__file__).with_name("page")


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Figures for Prometheus; with a key, where this server requires one."""
    guard_of(request).admit(request)
    return Response(
        prometheus_client.generate_latest(), media_type=prometheus_client.CONTENT_TYPE_LATEST
    )


@router.get("/", include_in_schema=False)
async def page() -> FileResponse:
    return FileResponse(_PAGE / "index.html")


@router.get("/docs", include_in_schema=False)
async def docs() -> FileResponse:
    return FileResponse(_PAGE / "docs.html")


def mount_files(app: FastAPI) -> None:
    """Serve the files of the page; the panel that looks inside belongs to inspection/."""
    app.mount("/static/view", StaticFiles(directory=PANEL))
    app.mount("/static", StaticFiles(directory=_PAGE, check_dir=False))
