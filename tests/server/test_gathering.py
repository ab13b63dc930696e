"""The small tasks of one request: so many at once, and others between their beginnings."""

from __future__ import annotations

import asyncio
import threading
from itertools import pairwise

import pytest

from dragoman.server.gathering import AT_ONCE, aside, one_by_one, together


def test_results_are_in_order_and_so_many_are_worked_on_at_once() -> None:
    working = 0
    most = 0

    async def work(number: int) -> int:
        nonlocal working, most
        working += 1
        most = max(most, working)
        await asyncio.sleep(0.001 * (number % 3))
        working -= 1
        return number * number

    found = asyncio.run(together(work, range(150)))
    assert found == [number * number for number in range(150)]
    assert 1 < most <= AT_ONCE


def test_others_have_their_turn_while_tasks_begin() -> None:
    """A request of many sentences begins 64, and others must not wait for all of these."""
    begun: list[int] = []
    seen: list[int] = []

    async def work(number: int) -> None:
        begun.append(number)

    async def others() -> None:
        for _ in range(AT_ONCE):
            seen.append(len(begun))
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(together(work, range(AT_ONCE)), others())

    asyncio.run(both())
    steps = [later - earlier for earlier, later in pairwise(seen)]
    assert max(steps) == 1
    assert seen[-1] >= AT_ONCE - 2


def test_one_alone_needs_no_task() -> None:
    """Most texts have one sentence, and most sentences one part: each task is some twenty objects
    that live until the sentence is translated."""

    async def work(number: int) -> asyncio.Task[object] | None:
        await asyncio.sleep(0)
        return asyncio.current_task()

    async def alone() -> bool:
        return await together(work, range(1)) == [asyncio.current_task()]

    assert asyncio.run(alone())


def test_what_fails_or_is_cancelled_ends_the_others_and_is_not_logged() -> None:
    problems: list[dict[str, object]] = []
    ended: list[int] = []

    async def work(number: int) -> None:
        if number == 0:
            raise ValueError("the user's text")
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(number)

    async def failing() -> None:
        with pytest.raises(ValueError, match="the user's text"):
            await together(work, range(5))

    async def cancelled() -> None:
        task = asyncio.ensure_future(together(work, range(AT_ONCE)))
        for _ in range(10):  # some have begun, and the first has failed
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def both() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: problems.append(context))
        await failing()
        await asyncio.sleep(0)
        assert sorted(ended) == [1, 2, 3, 4]
        await cancelled()
        await asyncio.sleep(0)

    asyncio.run(both())
    assert problems == []


def test_others_have_their_turn_between_quick_pieces_of_work() -> None:
    done: list[int] = []
    seen: list[int] = []

    def work(number: int) -> int:
        done.append(number)
        return -number

    async def others() -> None:
        while len(done) < 50:
            seen.append(len(done))
            await asyncio.sleep(0)

    async def both() -> list[int]:
        beside = asyncio.ensure_future(others())
        found = await one_by_one(work, range(50))
        await beside
        return found

    assert asyncio.run(both()) == [-number for number in range(50)]
    assert len(seen) > 40


def test_long_work_is_done_in_one_thread_of_its_own() -> None:
    """Several would fight for the interpreter, and whoever answers would wait for all of them."""
    threads: list[threading.Thread] = []

    def work() -> int:
        threads.append(threading.current_thread())
        return len(threads)

    async def all_at_once() -> list[int]:
        return await asyncio.gather(*(aside(True, work) for _ in range(8)), aside(False, work))

    assert sorted(asyncio.run(all_at_once())) == list(range(1, 10))
    assert threads.count(threading.main_thread()) == 1
    assert len({*threads}) == 2
