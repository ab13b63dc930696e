"""What the tests of the service share: a fleet of the tiny model, and an app without a network."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman.server.app import create_app
from dragoman.server.fleet import Fleet
from dragoman.server.guard import Guard, Limits
from dragoman.tasks.translate import Translator


@pytest.fixture(scope="session", autouse=True)
def one_identifier() -> Iterator[None]:
    """What tells languages apart is read from its file once, and not for each of some hundred
    services; nothing changes it."""
    langid = pytest.importorskip("py3langid.langid")
    with pytest.MonkeyPatch.context() as patch:
        read = cache(langid.LanguageIdentifier.from_model_file)
        patch.setattr(langid.LanguageIdentifier, "from_model_file", read)
        yield


@pytest.fixture(scope="session")
def translator(trained: Path) -> Translator:
    """English digits into German."""
    return Translator.load(trained, "cpu", "torch")


@pytest.fixture
def fleet_of(translator: Translator) -> Iterator[Callable[..., Fleet]]:
    """Fleets of the one model under other names: each name, such as "en-de", is a folder that is
    never read."""
    made: list[Fleet] = []

    def make(*names: str, queue: int = 400_000, corrections: Any = None) -> Fleet:
        def load(folder: Path) -> Translator:
            source, _, target = folder.name.partition("-")
            about = replace(translator.description, source_language=source, target_language=target)
            return Translator(translator.runtime, translator.tokenizer, about)

        made.append(Fleet([Path(name) for name in names or ("en-de",)], load, queue, corrections))
        return made[-1]

    yield make
    for fleet in made:
        fleet.close()


@pytest.fixture
def client_of(fleet_of: Callable[..., Fleet]) -> Iterator[Callable[..., TestClient]]:
    """Clients of an app without a network, from the machine itself."""
    with contextlib.ExitStack() as stack:

        def make(
            *names: str, keys: Path | None = None, corrections: Any = None, **limits: Any
        ) -> TestClient:
            chosen = Limits(**limits)
            fleet = fleet_of(*names, queue=chosen.queue, corrections=corrections)
            app = create_app(fleet, Guard(chosen, keys))
            return stack.enter_context(
                TestClient(app, raise_server_exceptions=True, client=("127.0.0.1", 50000))
            )

        yield make


@pytest.fixture(scope="module")
def address(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """English digits into German, and the same model under the name of the other way, which only
    swapping needs."""
    folder = tmp_path_factory.mktemp("page")
    shutil.copytree(trained, folder / "back", ignore=shutil.ignore_patterns("state"))
    config = json.loads((folder / "back" / "config.json").read_text(encoding="utf-8"))
    config |= {"source_language": "de", "target_language": "en"}
    (folder / "back" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    from browser_page import served

    with served([trained, folder / "back"], folder / "corrections.db") as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from browser_page import CHROMIUM, FLAGS, api

    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def errors() -> list[str]:
    """What the console has complained of; a test that provokes a complaint clears it."""
    return []


@pytest.fixture
def page(browser: Any, address: str, errors: list[str]) -> Iterator[Any]:
    """The page, opened; no complaint of the console and no request to another host may be left
    at the end."""
    from browser_page import open_page

    context = browser.new_context(
        permissions=["clipboard-read", "clipboard-write"], color_scheme="light"
    )
    # Digits in words are too few to detect a language by.
    context.add_init_script(
        """if (!localStorage.getItem("dragoman.languages")) {
          localStorage.setItem("dragoman.languages", '{"source": "en", "target": "de"}');
        }"""
    )
    page = context.new_page()
    hosts = []
    page.on(
        "request",
        lambda request: hosts.append(request.url) if not request.url.startswith("blob:") else None,
    )
    page.on(
        "console",
        lambda message: (
            errors.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    page.on("pageerror", lambda error: errors.append(str(error)))
    open_page(page, address)
    yield page
    context.close()
    assert errors == []
    assert [url for url in hosts if not url.startswith(address + "/")] == []
