"""The page in a real browser, served by the real app: what its tests share. Needs Chromium, as
`apt-get install chromium` gives it, and playwright."""

from __future__ import annotations

import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from patience import LONG

api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is missing: pip install 'dragoman[dev]'"
)
pytest.importorskip("fastapi", reason="fastapi is missing: pip install 'dragoman[serve]'")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("Chromium is missing: apt-get install chromium", allow_module_level=True)

# Without a process in reserve, which every page would start.
FLAGS = ["--no-sandbox", "--disable-gpu", "--renderer-process-limit=1"]
expect = api.expect
expect.set_options(timeout=1000 * LONG)  # the machine may be busy with something else


@contextmanager
def served(folders: list[Path], database: Path) -> Iterator[str]:
    """The address of a server of these models."""
    import uvicorn

    from dragoman.server.app import create_app
    from dragoman.server.corrections import Corrections
    from dragoman.server.fleet import Fleet
    from dragoman.server.guard import Guard, Limits
    from dragoman.tasks.translate import Translator

    limits = Limits()
    fleet = Fleet(
        folders,
        lambda folder: Translator.load(folder, device="cpu"),
        limits.queue,
        Corrections(database),
    )
    server = uvicorn.Server(uvicorn.Config(create_app(fleet, Guard(limits)), log_level="error"))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(LONG)


def open_page(page: Any, address: str) -> None:
    page.set_default_timeout(1000 * LONG)
    page.goto(address)
    expect(page.locator("#target-language option")).not_to_have_count(0)


def translated(page: Any, text: str, expected: str) -> None:
    page.locator("#source").fill(text)
    expect(page.locator("#target:not([aria-busy])")).to_have_text(expected, use_inner_text=True)


def becomes(read: Callable[[], object], wanted: object) -> None:
    """Waits, as `expect` does, for something that only a script can tell: what a click began may
    take effect after the click is over."""
    end = time.monotonic() + LONG
    while (found := read()) != wanted:
        assert time.monotonic() < end, f"{found!r} instead of {wanted!r}"
        time.sleep(0.02)


def copied(page: Any) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


def word(page: Any, text: str) -> Any:
    return page.locator("#target .word", has_text=re.compile(f"^{text}$"))


def asked(page: Any, path: str, **body: Any) -> Any:
    """What the server answers, without the page."""
    return page.request.post(page.url + path, data={"source": "en", "target": "de"} | body).json()
