"""Collections of garbage that nobody has to wait for: they leave out what a service keeps for good.
Knows the interpreter; nothing of models and HTTP.

While Python looks for garbage among all objects, nothing else runs. Those of the libraries alone
are 200,000, which takes 0.15 s and more on a busy machine; a large request makes it do so again
and again.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

_RARELY = 1_000  # collections of what is younger before one of everything; Python has 10


@contextlib.contextmanager
def short_pauses() -> Iterator[None]:
    """Meanwhile, no collection looks at what is there already, and few at all that comes."""
    _leave_out_what_is_there()
    youngest, younger, oldest = gc.get_threshold()
    gc.set_threshold(youngest, younger, _RARELY)
    try:
        yield
    finally:
        gc.set_threshold(youngest, younger, oldest)
        gc.unfreeze()


def collect_what_was_replaced() -> None:
    """Look at everything once, where some of it is left out: a model that was read again has
    taken the place of one that refers to itself."""
    if gc.get_freeze_count():
        gc.unfreeze()
        _leave_out_what_is_there()


def _leave_out_what_is_there() -> None:
    gc.collect()
    gc.freeze()
