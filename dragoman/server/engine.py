"""Batching: sentences of many requests wait in a model's queue and are translated together, a batch
at a time.

Knows a translator and what sentences must have in common to share a batch; nothing of HTTP, pairs
or documents.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from bisect import insort
from collections.abc import Callable, Hashable
from concurrent.futures import Future, InvalidStateError
from dataclasses import replace
from typing import Any

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import DragomanError
from dragoman.server import metrics
from dragoman.server.cores import AbandonedError, Cores, Running
from dragoman.server.turns import Flow
from dragoman.server.waiting import (
    SHORT,
    Item,
    Work,
    cost_of,
    fitting,
    largest_share,
    shared_out,
)
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translate import Translator

WAIT = 0.005  # seconds without a new sentence after which a batch starts
_FEWER = 4  # times, in a batch of longer sentences
_OF_REQUEST = 16  # of a batch, one part in so many is for a request while others wait
_OF_CLIENT = 0.5  # the share of a queue that one client may fill


class BusyError(DragomanError):
    """The queue is full."""


class Engine:
    """A model, its queue and the thread that waits for a batch to be due.

    What computes is `cores`, one thread for all models: two would fight for the cores, and OpenMP
    lets threads fall asleep after every product where its teams have more of them than there are
    cores.
    """

    def __init__(self, name: str, translator: Translator, queue: int, cores: Cores) -> None:
        self.name = name
        # May be replaced at any time: a batch takes the one that is there when it starts.
        self.translator = translator
        self._queue = queue  # characters that may wait
        self._cores = cores
        self._changed = threading.Condition(cores.lock)
        # What may be translated together, in the order of its turns.
        self._groups: dict[Hashable, list[Item]] = {}
        # By its future, so that no future has to know its item: the two would be a circle, which
        # only a collection of garbage ends, while everything else stands still.
        self._waiting: dict[Future[Any], Item] = {}
        self._characters = 0
        self._figures = metrics.of_model(name)
        self._closed = False
        self._last_arrival = 0.0
        self._last_end = 0.0  # of a batch
        self._last_seconds = 0.0  # that it took
        cores.queues.append(self)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(
        self, text: str, work: Work, flow: Flow | None = None, before: tuple[str, ...] = ()
    ) -> Future[Any]:
        """Return the future translation of a sentence, or what a function makes of the translator.

        `flow` is the request that it belongs to, `before` the sentences that are read along.
        Whoever cancels the future takes the sentence out of the queue; a batch for which nobody
        waits any longer ends.
        """
        flow = flow or Flow()
        cost = cost_of("".join((text, *before)), work)
        with self._changed:
            self._check_room(len(text), flow)
            begin = self._cores.turns.begin(flow)
            turn = self._cores.turns.enter(flow, len(text) + 1, cost)
            item = Item(text, work, flow, cost, begin, turn, before)
            is_first = not self._groups
            insort(self._groups.setdefault(item.group, []), item, key=_turn)
            self._waiting[item.future] = item
            self._last_arrival = item.since
            self._count(item.characters)
            # What comes in between only lets the batch begin later, and would wake the thread once
            # for every sentence.
            if is_first or self._is_full():
                self._changed.notify_all()
        item.future.add_done_callback(self._drop)
        return item.future

    def close(self) -> None:
        """Accept no more; what was accepted is finished first."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def next_turn(self, most: float, without: frozenset[Flow]) -> float | None:
        """Return the earliest turn of what waits, of at most that cost and of other requests."""
        first = self._first(most, without)
        return None if first is None else first.turn

    def turn_of_others(self, but: Hashable) -> float | None:
        """Return the earliest turn of what waits and does not belong to a group."""
        firsts = [group[0].turn for name, group in self._groups.items() if name != but]
        return min(firsts, default=None)

    def work(self, most: float = math.inf, without: frozenset[Flow] = frozenset()) -> float:
        """Translate a batch of what has come by the time it is this model's turn, of at most that
        cost and of other requests. Returns what it cost."""
        batch = self._take_batch(most, without)
        if batch:
            start = time.monotonic()
            self._answer(batch)
            self._last_end = time.monotonic()
            self._last_seconds = self._last_end - start
        return sum(item.cost for item in batch)

    def _run(self) -> None:
        while self._ready():
            self._cores.submit(self.work).result()

    def _ready(self) -> bool:
        """Wait until a batch is due; return False once there will be none any more."""
        with self._changed:
            while not self._closed:
                seconds = self._seconds_left() if self._groups else None
                if seconds is not None and (seconds <= 0 or self._is_full()):
                    return True
                self._changed.wait(seconds)
            return bool(self._groups)

    def _seconds_left(self) -> float:
        """Return the seconds until a batch starts.

        It starts when no sentence has come for a moment, but waits at most a quarter of what the
        last one took: those who got its answers ask again at once, and a fuller batch is worth
        waiting for some of them.
        """
        first = min(group[0].since for group in self._groups.values())
        latest = max(first, self._last_end) + max(WAIT, self._last_seconds / 4)
        quiet = max(self._last_arrival, self._last_end) + WAIT
        return min(quiet, latest) - time.monotonic()

    def _first(self, most: float, without: frozenset[Flow]) -> Item | None:
        """Return the sentence whose turn is next."""
        firsts = []
        for group in self._groups.values():
            firsts += fitting(group, most, without)[:1]
        return min(firsts, key=_turn, default=None)

    def _take_batch(self, most: float, without: frozenset[Flow]) -> list[Item]:
        """Return the sentence whose turn is next and others like it."""
        batch: list[Item] = []
        with self._changed:
            first = self._first(most, without)
            if first is None:
                return []
            size = self._batch_size()
            free = min(most, size / _FEWER if first.cost > SHORT else size)
            others = fitting(self._groups[first.group], most, without)
            in_time = self._in_time(others, first)
            for item in shared_out(in_time, size / _OF_REQUEST):
                self._remove(item, item.turn)
                batch.append(item)
                free -= item.cost
                if free <= 0:
                    break
        return batch

    def _in_time(self, items: list[Item], first: Item) -> list[Item]:
        """Return those whose turn is not long after the first one's, or that of whoever waits for
        another batch; all of them where a client is alone and has nothing else.

        Or else a whole document would pass because its first sentence was next, or because those
        who got their answers just now have not asked again yet. The requests of one client share
        its pace, so that their turns lie far apart: where it is alone, what would have begun by
        then goes along.
        """
        client = first.flow.client
        is_alone = self._cores.turns.is_alone(client) and not self._cores.served_others(client)
        others = self._cores.turn_of_others(first.group)
        if others is None and is_alone:
            return items
        latest = max(first.turn, others or 0.0)
        begun = latest if is_alone else 0.0
        return [item for item in items if item.turn <= latest + SHORT or item.begin < begun]

    def _remove(self, item: Item, turn: float | None = None) -> None:
        """Take a sentence out of the queue: to be translated, if its turn is given."""
        group = self._groups[item.group]
        group.remove(item)
        if not group:
            del self._groups[item.group]
        del self._waiting[item.future]
        self._cores.turns.leave(item.flow, item.characters, turn)
        self._count(-item.characters)

    def _drop(self, future: Future[Any]) -> None:
        """Take a sentence out of the queue that nobody waits for any longer."""
        with self._changed:
            item = self._waiting.get(future)
            if item is not None:
                self._remove(item)

    def _answer(self, batch: list[Item]) -> None:
        wanted = [item for item in batch if not item.future.done()]
        running = Running(
            cost=largest_share(batch),
            flows=frozenset(item.flow for item in batch),
            is_wanted=lambda: any(not item.future.done() for item in batch),
        )
        if not wanted:
            return
        try:
            results = self._cores.compute(running, lambda: self._results(wanted))
        except AbandonedError:
            return
        except Exception as error:
            if len(wanted) == 1:
                _tell(wanted[0].future.set_exception, error)
                return
            # One of them is bad: alone, the others are translated.
            for item in wanted:
                self._answer([item])
            return
        self._cores.note_served(item.flow.client for item in wanted)
        for item, result in zip(wanted, results, strict=True):
            _tell(item.future.set_result, result)

    def _results(self, items: list[Item]) -> list[Any]:
        work = items[0].work
        if not isinstance(work, TranslateRequest):
            return [work(self.translator)]
        texts = [item.text for item in items]
        before = [item.before for item in items]
        whole = replace(work, split=False)
        translations = self.translator.translate_following(texts, before, whole)
        characters = sum(len(text) for text in texts)
        tokens = sum(len(translation.tokens) for translation in translations)
        self._figures.fill.observe(len(texts))
        self._figures.characters.inc(characters)
        self._figures.tokens.inc(tokens)
        return translations

    def _check_room(self, characters: int, flow: Flow) -> None:
        """Raise where the queue is full, or the part of it that one client may fill."""
        waiting = self._characters
        if self._closed or waiting + characters > max(self._queue, characters):
            raise BusyError(
                f"the queue of {self.name} is full, with {waiting:,} characters; try again later"
            )
        own = self._cores.turns.waiting(flow.client)
        share = int(_OF_CLIENT * self._queue)
        if flow.client and own + characters > max(share, characters):
            raise BusyError(
                f"your requests wait with {own:,} characters already, half of the queue; "
                "try again later"
            )

    def _is_full(self) -> bool:
        """Return whether as much waits as a batch has."""
        return self._characters >= self._batch_size()

    def _batch_size(self) -> int:
        """Return the characters of a batch.

        They are as many as the runtime likes to have of sentences of 32 tokens, four to a token.
        """
        return 128 * self.translator.runtime.batch_rows(32, SearchOptions.beam)

    def _count(self, characters: int) -> None:
        self._characters += characters
        self._figures.waiting.set(self._characters)


def _turn(item: Item) -> float:
    return item.turn


def _tell(tell: Callable[[Any], None], what: Any) -> None:
    """Give a future its result, unless its client has gone meanwhile."""
    with contextlib.suppress(InvalidStateError):
        tell(what)
