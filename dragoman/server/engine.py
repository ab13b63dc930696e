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
    """The queue is full."""


# Sentences with equal requests are translated together.
Work = TranslateRequest | Callable[[Translator], Any]


@dataclass(frozen=True)
class _Item:
    """A sentence that waits."""

    text: str
    work: Work
    future: Future[Any] = field(default_factory=Future)
    since: float = field(default_factory=time.monotonic)


class Engine:
    """A model, its queue and its thread.

    What computes is `cores`, one thread for all models: two would fight for the cores, and OpenMP
    lets threads fall asleep after every product where its teams have more of them than there are
    cores.
    """

    def __init__(self, name: str, translator: Translator, queue: int, cores: Executor) -> None:
        self.name = name
        # May be replaced at any time: a batch takes the one that is there when it starts.
        self.translator = translator
        self._queue = queue  # characters that may wait
        self._cores = cores
        self._changed = threading.Condition()
        self._groups: dict[Hashable, deque[_Item]] = {}  # what may be translated together
        self._characters = 0
        self._closed = False
        self._last_arrival = 0.0
        self._last_end = 0.0  # of a batch
        self._last_seconds = 0.0  # that it took
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, text: str, work: Work) -> Future[Any]:
        """Return the future translation of a sentence, or what a function makes of the translator.

        Whoever cancels the future before its turn takes the sentence out of the queue.
        """
        item = _Item(text, work)
        # What is drawn depends on all that is drawn together, so a sample stays alone.
        alone = not isinstance(work, TranslateRequest) or work.options.sample
        with self._changed:
            if self._closed or self._characters + len(text) > max(self._queue, len(text)):
                raise BusyError(
                    f"the queue of {self.name} is full, with {self._characters:,} characters; "
                    "try again later"
                )
            key = item.future if alone else work
            self._groups.setdefault(key, deque()).append(item)
            self._last_arrival = item.since
            self._count(len(text) + 1)
            self._changed.notify()
        return item.future

    def close(self) -> None:
        """Accept no more; what was accepted is finished first."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while self._ready():
            self._cores.submit(self._work).result()

    def _work(self) -> None:
        """Translate a batch of what has come by the time it is this model's turn."""
        batch = self._take_batch()
        if batch:
            start = time.monotonic()
            self._answer(batch)
            self._last_end = time.monotonic()
            self._last_seconds = self._last_end - start

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

    def _take_batch(self) -> list[_Item]:
        """Return the sentence that has waited longest and others like it.

        Those whose clients have gone are left out.
        """
        batch: list[_Item] = []
        free = self._batch_size()
        with self._changed:
            key, group = min(self._groups.items(), key=lambda pair: pair[1][0].since)
            while group and free > 0:
                item = group.popleft()
                self._count(-len(item.text) - 1)
                if item.future.set_running_or_notify_cancel():
                    batch.append(item)
                    free -= len(item.text) + 1
            if not group:
                del self._groups[key]
        return batch

    def _answer(self, batch: list[_Item]) -> None:
        try:
            results = self._results([item.text for item in batch], batch[0].work)
        except Exception as error:
            if len(batch) == 1:
                batch[0].future.set_exception(error)
                return
            # One of them is bad: alone, the others are translated.
            for item in batch:
                self._answer([item])
        else:
            for item, result in zip(batch, results, strict=True):
                item.future.set_result(result)

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

    def _batch_size(self) -> int:
        """Return the characters of a batch.

        They are as many as the runtime likes to have of sentences of 32 tokens, four to a token.
        """
        return 128 * self.translator.runtime.batch_rows(32, SearchOptions.beam)

    def _count(self, characters: int) -> None:
        self._characters += characters
        metrics.WAITING.labels(self.name).set(self._characters)
