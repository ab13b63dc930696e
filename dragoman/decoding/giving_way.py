"""A search that gives way: between two positions it calls whoever asked for that, who may compute
something else first or end the search by an exception. Knows neither search nor caller.

The call is a context variable, so that it reaches a search through all that lies between: whoever
translates need not know that somebody waits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

_between: ContextVar[Callable[[], None] | None] = ContextVar("between_positions", default=None)


@contextlib.contextmanager
def giving_way(between: Callable[[], None]) -> Iterator[None]:
    """Let every search inside, in this thread, call `between` after each of its positions.

    A search within `between` calls nothing, unless it is given a call of its own.
    """
    before = _between.set(between)
    try:
        yield
    finally:
        _between.reset(before)


def give_way() -> None:
    """Call whoever asked for it."""
    between = _between.get()
    if between is None:
        return
    before = _between.set(None)
    try:
        between()
    finally:
        _between.reset(before)


def is_awaited() -> bool:
    """Return whether somebody wants to be called between two positions."""
    return _between.get() is not None
