"""What is not an API of translation: the page, its description of the API, and the metrics. Knows
files and figures; no model."""

from __future__ import annotations

import prometheus_client
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import FileResponse, HTMLResponse
from fastapi.staticfiles import StaticFiles

from dragoman.inspection.view_file import PANEL
from dragoman.server.admission import guard_of
from dragoman.server.described import OF_READING, Other, answers
from dragoman.server.metrics import figures
from dragoman.server.page_files import FILES, PAGE, stamp, with_stamps

router = APIRouter()
_METRICS = Other("text/plain", 'dragoman_source_characters_total{model="en-de"} 1204.0\n')


@router.get(
    "/metrics", response_class=Response, responses=answers("/metrics", _METRICS, OF_READING)
)
async def metrics(request: Request) -> Response:
    """Figures for Prometheus; with a key, where this server requires one."""
    guard_of(request).admit(request)
    return Response(figures(), media_type=prometheus_client.CONTENT_TYPE_LATEST)


@router.get("/", include_in_schema=False)
async def page(request: Request) -> Response:
    """The page itself, unless the browser has it already."""
    tag = f'"{stamp()}"'
    known = request.headers.get("if-none-match", "").split(",")
    if tag in [one.strip().removeprefix("W/") for one in known]:
        return Response(status_code=304, headers={"etag": tag})
    return HTMLResponse(with_stamps("index.html"), headers={"etag": tag})


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
