"""Batching: sentences of many requests wait in a model's queue and are translated together, a batch
at a time.

Knows a translator and what sentences must have in common to share a batch; nothing of HTTP, pairs
or documents.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from typing import Any

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import DragomanError
from dragoman.server import metrics
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translate import Translator

WAIT = 0.005  # seconds without a new sentence after which a batch starts


class BusyError(DragomanError):
    """As much waits already as may wait."""


# Sentences with equal requests are translated together.
Work = TranslateRequest | Callable[[Translator], Any]


@dataclass(frozen=True)
class _Item:
    text: str
    work: Work
    future: Future[Any] = field(default_factory=Future)
    since: float = field(default_factory=time.monotonic)


class Engine:
    """A model, its queue and its thread. What computes is `cores`, one thread for all models:
    two would fight for the cores, and OpenMP lets threads fall asleep after every product where
    its teams have more of them than there are cores."""

    def __init__(self, name: str, translator: Translator, queue: int, cores: Executor) -> None:
        self.name = name
        # may be replaced at any time: a batch takes the one that is there when it starts
        self.translator = translator
        self._groups: dict[Hashable, deque[_Item]] = {}  # what may be translated together
        self._queue, self._cores, self._changed, self._characters, self._closed = (
            queue,
            cores,
            threading.Condition(),
            0,
            False,
        )
        self._came = self._ended = self._took = (
            0.0  # when a sentence came and a batch ended last, and its seconds
        )
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, text: str, work: Work) -> Future[Any]:
        """The translation to come of a sentence, or what a function makes of the translator.
        Whoever cancels the future before its turn takes the sentence out of the queue."""
        item = _Item(text, work)
        # What is drawn depends on all that is drawn together, so a sample stays alone.
        alone = not isinstance(work, TranslateRequest) or work.options.sample
        with self._changed:
            if self._closed or self._characters + len(text) > max(self._queue, len(text)):
                raise BusyError(
                    f"{self._characters:,} characters wait for {self.name}, no more may; try again in a while"
                )
            self._groups.setdefault(item.future if alone else work, deque()).append(item)
            self._came = item.since
            self._count(len(text) + 1)
            self._changed.notify()
        return item.future

    def close(self) -> None:
        """Takes no more; what was accepted is finished first."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while self._ready():
            self._cores.submit(self._work).result()

    def _work(self) -> None:
        """When it is this model's turn: what has come by then is its batch."""
        if batch := self._batch():
            began = time.monotonic()
            self._answer(batch)
            self._ended = time.monotonic()
            self._took = self._ended - began

    def _ready(self) -> bool:
        """Waits until a batch is due; False once there will be none any more."""
        with self._changed:
            while not self._closed:
                left = self._left() if self._groups else None
                if left is not None and (left <= 0 or self._characters >= self._size()):
                    return True
                self._changed.wait(left)
            return bool(self._groups)

    def _left(self) -> float:
        """Seconds until a batch starts: when no sentence has come for a moment, but with no more
        waiting than a quarter of what the last one took. Those who got its answers ask again at
        once, and a full batch is worth some of them."""
        first = min(group[0].since for group in self._groups.values())
        latest = max(first, self._ended) + max(WAIT, self._took / 4)
        return min(max(self._came, self._ended) + WAIT, latest) - time.monotonic()

    def _batch(self) -> list[_Item]:
        """The sentence that has waited longest and others like it; those whose clients have gone
        are left out."""
        batch, room = [], self._size()
        with self._changed:
            key, group = min(self._groups.items(), key=lambda pair: pair[1][0].since)
            while group and room > 0:
                item = group.popleft()
                self._count(-len(item.text) - 1)
                if item.future.set_running_or_notify_cancel():
                    batch.append(item)
                    room -= len(item.text) + 1
            if not group:
                del self._groups[key]
        return batch

    def _answer(self, batch: list[_Item]) -> None:
        try:
            found = self._found([item.text for item in batch], batch[0].work)
        except Exception as error:
            if len(batch) == 1:
                batch[0].future.set_exception(error)
            else:  # one spoils it: the others shall not suffer
                for item in batch:
                    self._answer([item])
        else:
            for item, one in zip(batch, found, strict=True):
                item.future.set_result(one)

    def _found(self, texts: list[str], work: Work) -> list[Any]:
        if not isinstance(work, TranslateRequest):
            return [work(self.translator)]
        found = self.translator.translate(texts, replace(work, split=False))
        metrics.FILL.labels(self.name).observe(len(texts))
        metrics.CHARACTERS.labels(self.name).inc(sum(map(len, texts)))
        metrics.TOKENS.labels(self.name).inc(sum(len(one.tokens) for one in found))
        return found

    def _size(self) -> int:
        """Characters of a batch: as many as the runtime likes to have of sentences of 32 tokens,
        four to a token."""
        return 128 * self.translator.runtime.batch_rows(32, SearchOptions.beam)

    def _count(self, characters: int) -> None:
        self._characters += characters
        metrics.WAITING.labels(self.name).set(self._characters)
