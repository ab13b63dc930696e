"""The work of one request in parts, so that other requests have their turn between them. Knows
asyncio; nothing of translation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

AT_ONCE = 64  # sentences of one text that wait together, so that other requests get their turn
_ASIDE = ThreadPoolExecutor(1, "aside")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


async def together(
    work: Callable[[_Item], Coroutine[Any, Any, _Result]], items: Sequence[_Item]
) -> list[_Result]:
    """Return the results for all items, in order, working on 64 at a time.

    If one fails or the request is cancelled, the others are cancelled too. Between the beginnings
    of two, other requests are looked at: each begins with locks, for which it may have to wait
    while a batch is computed. One item alone needs no task of its own.
    """
    if len(items) == 1:
        return [await work(items[0])]
    results: list[_Result] = []
    for start in range(0, len(items), AT_ONCE):
        tasks: list[asyncio.Future[_Result]] = []
        try:
            for item in items[start : start + AT_ONCE]:
                tasks.append(asyncio.ensure_future(work(item)))
                await asyncio.sleep(0)
            results += await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                _leave(task)
    return results


async def one_by_one(
    work: Callable[[_Item], _Result],
    items: Iterable[_Item],
    is_long: Callable[[_Item], bool] = lambda item: False,
) -> list[_Result]:
    """Return the results for all items, each of which takes a moment; what `is_long` is done in a
    thread, since many requests may come at the same moment."""
    results = []
    for item in items:
        results.append(await aside(is_long(item), partial(work, item)))
        await asyncio.sleep(0)
    return results


async def aside(is_long: bool, work: Callable[[], _Result]) -> _Result:
    """Do some work; what is long in a thread, one after the other: each thread that computes makes
    all others wait for the interpreter."""
    if not is_long:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_ASIDE, work)


def _leave(task: asyncio.Future[_Result]) -> None:
    """End a task; if it failed, nobody has to be told, least of all the log, which quotes it."""
    task.cancel()
    if task.done() and not task.cancelled():
        task.exception()
