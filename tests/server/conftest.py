"""What the tests of the service share: a fleet of the tiny model, and an app without a network."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman.server.app import create_app
from dragoman.server.fleet import Fleet
from dragoman.server.guard import Guard, Limits
from dragoman.tasks.translate import Translator


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
