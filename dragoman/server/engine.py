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
from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field, replace
from typing import Any

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import DragomanError
from dragoman.server import metrics
from dragoman.server.cores import AbandonedError, Cores, Running
from dragoman.server.turns import Flow
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translate import Translator

WAIT = 0.005  # seconds without a new sentence after which a batch starts
# All of a batch are answered at its end, so sentences share one with those of like cost: up to this
# one with each other, up to the next likewise but with fewer, and above it with their own request
# alone, which can end when its client has gone.
_SHORT = 200
_LONG = 400
_FEWER = 4  # times, in a batch of longer sentences
_OF_REQUEST = 16  # of a batch, one part in so many is for a request while others wait
_OF_CLIENT = 0.5  # the share of a queue that one client may fill
# How much more than its beam says a search costs that is held to terms, or that is done twice.
_GLOSSARY = 4
_CAREFUL = 2
_FUNCTION = 8  # what a function of the translator costs, in times of a translation


class BusyError(DragomanError):
    """The queue is full."""


# Sentences with equal requests are translated together.
Work = TranslateRequest | Callable[[Translator], Any]


@dataclass(frozen=True, eq=False)
class _Item:
    """A sentence that waits."""

    text: str
    work: Work
    flow: Flow
    cost: float
    turn: float
    future: Future[Any] = field(default_factory=Future)
    since: float = field(default_factory=time.monotonic)

    @property
    def characters(self) -> int:
        return len(self.text) + 1

    @property
    def group(self) -> Hashable:
        """What those have in common that may share a batch."""
        # What is drawn depends on all that is drawn together, so a sample stays alone.
        if not isinstance(self.work, TranslateRequest) or self.work.options.sample:
            return self.future
        if self.cost > _LONG:
            return self.work, self.flow
        return self.work, self.cost > _SHORT


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
        self._groups: dict[Hashable, list[_Item]] = {}
        self._characters = 0
        self._closed = False
        self._last_arrival = 0.0
        self._last_end = 0.0  # of a batch
        self._last_seconds = 0.0  # that it took
        cores.queues.append(self)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, text: str, work: Work, flow: Flow | None = None) -> Future[Any]:
        """Return the future translation of a sentence, or what a function makes of the translator.

        `flow` is the request that it belongs to. Whoever cancels the future takes the sentence out
        of the queue; a batch for which nobody waits any longer ends.
        """
        flow = flow or Flow()
        cost = _cost(text, work)
        with self._changed:
            self._check_room(len(text), flow)
            turn = self._cores.turns.enter(flow, len(text) + 1, cost)
            item = _Item(text, work, flow, cost, turn)
            insort(self._groups.setdefault(item.group, []), item, key=lambda one: one.turn)
            self._last_arrival = item.since
            self._count(item.characters)
            self._changed.notify_all()
        item.future.add_done_callback(lambda future: self._drop(item))
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

    def work(self, most: float = math.inf, without: frozenset[Flow] = frozenset()) -> None:
        """Translate a batch of what has come by the time it is this model's turn, of at most that
        cost and of other requests."""
        batch = self._take_batch(most, without)
        if batch:
            start = time.monotonic()
            self._answer(batch)
            self._last_end = time.monotonic()
            self._last_seconds = self._last_end - start

    def _run(self) -> None:
        while self._ready():
            self._cores.submit(self.work).result()

    def _ready(self) -> bool:
        """Wait until a batch is due; return False once there will be none any more."""
        with self._changed:
            while not self._closed:
                seconds = self._seconds_left() if self._groups else None
                is_full = self._characters >= self._batch_size()
                if seconds is not None and (seconds <= 0 or is_full):
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

    def _first(self, most: float, without: frozenset[Flow]) -> _Item | None:
        """Return the sentence whose turn is next."""
        firsts = [group[0] for group in self._groups.values()]
        fitting = [item for item in firsts if item.cost <= most and item.flow not in without]
        return min(fitting, key=lambda item: item.turn, default=None)

    def _take_batch(self, most: float, without: frozenset[Flow]) -> list[_Item]:
        """Return the sentence whose turn is next and others like it."""
        batch: list[_Item] = []
        with self._changed:
            first = self._first(most, without)
            if first is None:
                return []
            size = self._batch_size()
            free = min(most, size / _FEWER if first.cost > _SHORT else size)
            for item in _shared_out(self._groups[first.group], size / _OF_REQUEST):
                self._remove(item, item.turn)
                batch.append(item)
                free -= item.cost
                if free <= 0:
                    break
        return batch

    def _remove(self, item: _Item, turn: float | None = None) -> None:
        """Take a sentence out of the queue: to be translated, if its turn is given."""
        group = self._groups[item.group]
        group.remove(item)
        if not group:
            del self._groups[item.group]
        self._cores.turns.leave(item.flow, item.characters, turn)
        self._count(-item.characters)

    def _drop(self, item: _Item) -> None:
        """Take a sentence out of the queue that nobody waits for any longer."""
        with self._changed:
            if item in self._groups.get(item.group, ()):
                self._remove(item)

    def _answer(self, batch: list[_Item]) -> None:
        wanted = [item for item in batch if not item.future.done()]
        running = Running(
            cost=sum(item.cost for item in batch),
            flows=frozenset(item.flow for item in batch),
            is_wanted=lambda: any(not item.future.done() for item in batch),
        )
        if not wanted:
            return
        texts = [item.text for item in wanted]
        try:
            results = self._cores.compute(running, lambda: self._results(texts, wanted[0].work))
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
        for item, result in zip(wanted, results, strict=True):
            _tell(item.future.set_result, result)

    def _results(self, texts: list[str], work: Work) -> list[Any]:
        if not isinstance(work, TranslateRequest):
            return [work(self.translator)]
        translations = self.translator.translate(texts, replace(work, split=False))
        characters = sum(len(text) for text in texts)
        tokens = sum(len(translation.tokens) for translation in translations)
        metrics.FILL.labels(self.name).observe(len(texts))
        metrics.CHARACTERS.labels(self.name).inc(characters)
        metrics.TOKENS.labels(self.name).inc(tokens)
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

    def _batch_size(self) -> int:
        """Return the characters of a batch.

        They are as many as the runtime likes to have of sentences of 32 tokens, four to a token.
        """
        return 128 * self.translator.runtime.batch_rows(32, SearchOptions.beam)

    def _count(self, characters: int) -> None:
        self._characters += characters
        metrics.WAITING.labels(self.name).set(self._characters)


def _shared_out(group: list[_Item], most: float) -> list[_Item]:
    """Return what may share a batch, in the order of its turns.

    A request that would fill more than `most` of it leaves the rest for later, unless nobody else
    waits.
    """
    if all(item.flow is group[0].flow for item in group):
        return list(group)
    filled: Counter[Flow] = Counter()
    chosen = []
    for item in group:
        if filled[item.flow] < most:
            chosen.append(item)
            filled[item.flow] += math.ceil(item.cost)
    return chosen


def _cost(text: str, work: Work) -> float:
    """Return what a sentence costs, in characters of a plain translation."""
    characters = len(text) + 1
    if not isinstance(work, TranslateRequest):
        return _FUNCTION * characters
    cost = characters * max(1.0, work.options.hypotheses / SearchOptions.beam)
    if work.glossary is not None:
        cost *= _GLOSSARY
    return cost * _CAREFUL if work.careful else cost


def _tell(tell: Callable[[Any], None], what: Any) -> None:
    """Give a future its result, unless its client has gone meanwhile."""
    with contextlib.suppress(InvalidStateError):
        tell(what)
