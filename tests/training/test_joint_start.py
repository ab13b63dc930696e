"""Processes that find one another in a store which outlives them: threads stand for them here."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import torch.distributed as dist
from patience import LONG, wait_for
from torch.distributed.distributed_c10d import PrefixStore, Store

from dragoman.errors import OptionError, TrainingError
from dragoman.training import joint_start
from dragoman.training.joint_start import Place, start_together

Started = tuple[Store, str]
SIZE = 3


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(joint_start, "STARTING", timedelta(seconds=LONG))
    return dist.HashStore()  # type: ignore[attr-defined]  # which its stub does not export


def starting(pool: ThreadPoolExecutor, store: Store, rank: int) -> Future[Started]:
    return pool.submit(start_together, store, Place(rank, SIZE), lambda: "cpu")


def assert_together(begun: list[Future[Started]]) -> None:
    """All have what was settled, and one part of the store."""
    found = [one.result(LONG) for one in begun]
    assert [answer for _, answer in found] == ["cpu"] * SIZE
    for number, (part, _) in enumerate(found):
        part.add("arrived", 1 + number)
    assert {part.add("arrived", 0) for part, _ in found} == {6}


def died(store: Store, rank: int, *keys: str) -> None:
    """What a process of the latest attempt had written before it died."""
    part = PrefixStore(f"attempt {store.add('attempts', 0)}", store)
    for key in keys:
        part.add(key.format(rank), 1)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_all_meet_in_whatever_order_they_come(store: Store, order: tuple[int, ...]) -> None:
    with ThreadPoolExecutor(SIZE) as pool:
        begun: dict[int, Future[Started]] = {}
        for rank in order:
            begun[rank] = starting(pool, store, rank)
            time.sleep(0.3)
        assert_together([begun[rank] for rank in range(SIZE)])


@pytest.mark.parametrize("wrote", [(), ("taken {}",), ("taken {}", "heard")])
def test_a_process_that_died_while_all_were_starting_comes_again(
    store: Store, wrote: tuple[str, ...]
) -> None:
    """The launcher of its machine starts it and its neighbour again; the main process goes on."""
    with ThreadPoolExecutor(SIZE) as pool:
        main = starting(pool, store, 0)
        wait_for(lambda: store.add("attempts", 0))
        died(store, 1, *wrote)
        died(store, 2, "taken {}")
        assert_together([main, starting(pool, store, 1), starting(pool, store, 2)])


def test_all_are_started_again_and_the_main_process_comes_last(store: Store) -> None:
    with ThreadPoolExecutor(SIZE) as pool:
        assert_together([starting(pool, store, rank) for rank in range(SIZE)])
        others = [starting(pool, store, rank) for rank in (2, 1)]
        time.sleep(0.5)
        assert_together([starting(pool, store, 0), others[1], others[0]])


def test_a_main_process_that_died_before_the_others_came(store: Store) -> None:
    """They read what it has left, and go over to the attempt of the next one."""
    store.add("attempts", 1)
    PrefixStore("attempt 1", store).set("settled", "cpu")
    with ThreadPoolExecutor(SIZE) as pool:
        others = [starting(pool, store, rank) for rank in (1, 2)]
        time.sleep(0.5)
        assert_together([starting(pool, store, 0), *others])


@pytest.mark.parametrize("ranks", [(0,), (1,), (0, 1)])
def test_nobody_waits_for_ever(
    store: Store, ranks: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joint_start, "STARTING", timedelta(seconds=0.6))
    with ThreadPoolExecutor(SIZE) as pool:
        for one in [starting(pool, store, rank) for rank in ranks]:
            with pytest.raises(TrainingError, match=r"has waited 0\.01 minutes for the others"):
                one.result(LONG)


def test_a_process_that_was_killed_later_waits_until_the_main_process_notices(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That may be preparing text for an hour."""
    with ThreadPoolExecutor(SIZE) as pool:
        assert_together([starting(pool, store, rank) for rank in range(SIZE)])
        monkeypatch.setattr(joint_start, "STARTING", timedelta(seconds=0.6))
        again = starting(pool, store, 1)
        time.sleep(1.5)
        assert not again.done()
        monkeypatch.setattr(joint_start, "STARTING", timedelta(seconds=LONG))
        assert_together([starting(pool, store, 0), again, starting(pool, store, 2)])


def test_where_nothing_can_be_settled_the_others_exit_without_a_word(store: Store) -> None:
    def settle() -> Any:
        raise OptionError("no")

    said: list[object] = []

    def follow(rank: int) -> None:
        try:
            start_together(store, Place(rank, SIZE), lambda: "")
        except SystemExit as error:
            said.append(error.code)

    others = [threading.Thread(target=follow, args=(rank,)) for rank in (1, 2)]
    for one in others:
        one.start()
    with pytest.raises(OptionError, match="no"):
        start_together(store, Place(0, SIZE), settle)
    for one in others:
        one.join(LONG)
    assert said == [2, 2]
