"""Items made by a thread while the ones before them are in use. Knows nothing of the items."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")


def prefetch(items: Iterator[T], depth: int = 3) -> Iterator[T]:
    """Yield the same items, up to `depth` of them made in advance by a thread.

    The thread ends when no more items are wanted.
    """
    made: queue.Queue[T | BaseException] = queue.Queue(depth)
    stopped = threading.Event()

    def make() -> None:
        try:
            for item in items:
                made.put(item)
                if stopped.is_set():
                    return
        except BaseException as error:
            made.put(error)

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    try:
        while True:
            item = made.get()
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        # The thread may be waiting until the queue has space.
        while not made.empty():
            made.get()
        # A thread that is inside of torch when Python ends aborts the process.
        thread.join(10)
