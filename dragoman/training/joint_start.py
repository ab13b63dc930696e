"""How the processes of a run find one another in the store of torchrun, each time they are started.
Knows a store and ranks; nothing of training.

Where machines are numbered by hand, torchrun keeps one store over all restarts, with the addresses
of processes that are gone. So each attempt has a part of the store for itself. The main process
opens it, and every other process takes its own place in it once. Whoever finds its place taken has
come after a process that died, and asks for another attempt: the main process opens one at once
while all are still starting, and otherwise when it is itself started again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from torch.distributed.distributed_c10d import PrefixStore, Store

from dragoman.errors import TrainingError

PATIENCE = timedelta(hours=12)  # the others wait while one process prepares the text or validates
STARTING = timedelta(minutes=5)  # in which all processes of a run have started
_HEARING = 60.0  # seconds in which all have read that the main process could not start
_PAUSE = 0.1  # seconds


@dataclass(frozen=True)
class Place:
    """A process among the others of a run."""

    rank: int
    size: int


def start_together(store: Store, place: Place, settle: Callable[[], str]) -> tuple[Store, str]:
    """Return the part of the store that is for this attempt, and what the main process settles,
    once every process is there. Where it settles nothing, the others exit without a message."""
    if place.rank == 0:
        return _lead(store, place, settle)
    return _follow(store, place)


def _lead(store: Store, place: Place, settle: Callable[[], str]) -> tuple[Store, str]:
    listeners = place.size - 1
    part = _next_part(store)
    try:
        answer = settle()
    except BaseException:
        part.set("settled", "")
        # The store may live in this process: it stays until all have read it, or are gone.
        _until(lambda: part.add("heard", 0) >= listeners, _HEARING)
        raise
    end = time.monotonic() + STARTING.total_seconds()
    while True:
        part.set("settled", answer)
        while not _is_refused(part) and part.add("heard", 0) < listeners:
            if time.monotonic() > end:
                raise _late(place)
            time.sleep(_PAUSE)
        if not _is_refused(part):
            part.set("begun", "")
            return part, answer
        part = _next_part(store)


def _is_refused(part: Store) -> bool:
    """Whether a process asks for another attempt."""
    return part.add("refused", 0) > 0


def _follow(store: Store, place: Place) -> tuple[Store, str]:
    end = time.monotonic() + STARTING.total_seconds()
    attempt = 0
    while time.monotonic() < end:
        latest = store.add("attempts", 0)
        if latest == attempt:
            time.sleep(_PAUSE)
            continue
        attempt = latest
        part = _part(store, attempt)
        if part.add(f"taken {place.rank}", 1) > 1:
            part.add("refused", 1)
            if part.check(["begun"]):  # the main process may be busy when another one dies
                end = time.monotonic() + PATIENCE.total_seconds()
            continue
        answer = _heard(store, attempt, end)
        if answer is not None:
            return part, answer
    raise _late(place)


def _heard(store: Store, attempt: int, end: float) -> str | None:
    """Return what the main process has settled, or nothing where there is a later attempt."""
    part = _part(store, attempt)

    def is_told(key: str) -> bool:
        _until(
            lambda: part.check([key]) or store.add("attempts", 0) > attempt, end - time.monotonic()
        )
        return part.check([key])

    if not is_told("settled"):
        return None
    answer = part.get("settled").decode()
    part.add("heard", 1)
    if not answer:
        raise SystemExit(2)
    return answer if is_told("begun") else None


def _next_part(store: Store) -> Store:
    return _part(store, store.add("attempts", 1))


def _part(store: Store, attempt: int) -> Store:
    return PrefixStore(f"attempt {attempt}", store)


def _until(is_so: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not is_so():
        time.sleep(_PAUSE)


def _late(place: Place) -> TrainingError:
    minutes = STARTING.total_seconds() / 60
    return TrainingError(
        f"process {place.rank} of {place.size} has waited {minutes:g} minutes for the others to "
        "start; see what they printed, and start all of them again, as torchrun --max-restarts does"
    )
