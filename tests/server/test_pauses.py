"""Collections of garbage: short while a service runs, and of what it has replaced."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

from dragoman.server.fleet import Fleet
from dragoman.server.pauses import short_pauses


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
