"""Collections of garbage: short while a service runs, and of what it has replaced."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable, Iterator

import pytest
from starlette.testclient import TestClient

from dragoman.server.fleet import Fleet
from dragoman.server.pauses import short_pauses
from dragoman.server.waiting import Item


@pytest.fixture
def without_collections() -> Iterator[None]:
    """Nothing is collected but by the test."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Knot:
    """Something that refers to itself, so that only a collection ends it."""

    def __init__(self) -> None:
        self.itself = self


def test_collections_leave_out_what_was_there_before_and_only_that() -> None:
    before = Knot()
    with short_pauses():
        assert not any(one is before for one in gc.get_objects())
        later = Knot()
        assert any(one is later for one in gc.get_objects())
        seen = weakref.ref(later)
        del later
        gc.collect()
        assert seen() is None
    assert any(one is before for one in gc.get_objects())


def test_a_model_that_was_read_again_leaves_no_memory_behind(
    fleet_of: Callable[..., Fleet],
) -> None:
    fleet = fleet_of("en-de")
    (engine,) = fleet.engines.values()
    old = weakref.ref(engine.translator)
    engine.translator.knot = engine.translator  # type: ignore[attr-defined]
    with short_pauses():
        assert fleet.reload() == []
        assert old() is None
        assert gc.get_freeze_count() > 0


def test_a_reload_elsewhere_leaves_the_collections_as_they_are(
    fleet_of: Callable[..., Fleet],
) -> None:
    assert fleet_of("en-de").reload() == []
    assert gc.get_freeze_count() == 0


def test_what_waits_for_long_is_looked_at_rarely() -> None:
    """Twenty texts that wait are 100,000 objects: looking at them all takes 0.1 s of the processor,
    in which nothing is answered."""
    seen: list[int] = []

    def note(phase: str, facts: dict[str, int]) -> None:
        if phase == "start":
            seen.append(facts["generation"])

    before = gc.get_threshold()
    gc.callbacks.append(note)
    try:
        with short_pauses():
            gc.collect()  # as little is there besides as in a service that has just begun
            seen.clear()
            waiting = [[number] for number in range(100_000)]
    finally:
        gc.callbacks.remove(note)
    assert len(waiting) == 100_000
    assert seen.count(1) > 5
    assert seen.count(2) == 0
    assert gc.get_threshold() == before


@pytest.mark.usefixtures("without_collections")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/translate", {"q": "one. two three. four.", "source": "en", "target": "de"}),
        ("/translate", {"q": ["one", "two"], "source": "en", "target": "de", "format": "html"}),
        ("/v1/translate", {"text": ["one", "two"], "source": "en", "target": "de"}),
        ("/v2/translate", {"text": ["one", "two"], "source_lang": "EN", "target_lang": "DE"}),
    ],
)
def test_a_sentence_that_was_answered_leaves_no_garbage(
    client_of: Callable[..., TestClient], path: str, body: dict[str, object]
) -> None:
    """Each once left 28 objects in a circle, so that everything was looked at again and again."""
    assert client_of("en-de").post(path, json=body).status_code == 200
    end = time.monotonic() + 10  # in which the thread that computed begins to wait again
    while any(type(one) is Item for one in gc.get_objects()):
        assert time.monotonic() < end
        time.sleep(0.05)
