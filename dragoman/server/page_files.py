"""The files of the page, and an address for them that changes when they do. Knows files;
no route."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from dragoman.inspection.view_file import PANEL

PAGE = Path(__file__).with_name("page")
FILES = "static"  # the folder of the address


@cache
def stamp() -> str:
    """Letters that change whenever a file of the page does."""
    digest = hashlib.sha256()
    for folder in (PAGE, PANEL):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
                digest.update(path.read_bytes())
    return f"v{digest.hexdigest()[:16]}"


def with_stamps(name: str) -> str:
    """A page that names its files with their stamp."""
    text = (PAGE / name).read_text(encoding="utf-8")
    return text.replace(f'"{FILES}/', f'"{FILES}/{stamp()}/')


def caching(path: str, status: int) -> str:
    """How long a browser may keep what is answered at this path."""
    if path.startswith(f"/{FILES}/{stamp()}/") and status == 200:
        return "public, max-age=31536000, immutable"  # other contents have another address
    is_page = path in ("/", "/manifest.webmanifest") or path.startswith(f"/{FILES}/")
    return "no-cache" if is_page else "no-store"
