"""What the service reports about itself: figures for Prometheus and a log of JSON lines. Knows
numbers; text only if given."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from dragoman.server.shared_folder import METRICS_VARIABLE

SECONDS = Histogram(
    "dragoman_request_seconds", "From a request to the end of its answer.", ["route", "status"]
)
WAITING = Gauge(
    "dragoman_waiting_characters",
    "Characters that wait for a model.",
    ["model"],
    multiprocess_mode="livesum",
)
FILL = Histogram(
    "dragoman_batch_sentences",
    "Sentences translated together.",
    ["model"],
    buckets=[2**power for power in range(10)],
)
CHARACTERS = Counter("dragoman_source_characters", "Characters translated.", ["model"])
TOKENS = Counter("dragoman_target_tokens", "Tokens of translations.", ["model"])


@dataclass(frozen=True)
class ModelFigures:
    """The figures of one model, looked up once: each look costs as much as counting does."""

    waiting: Gauge
    fill: Histogram
    characters: Counter
    tokens: Counter


_MINUTE = 60.0
_MOST_LOGGED = 100
_logged: dict[tuple[tuple[str, str], ...], float] = {}  # when it was last logged


def of_model(name: str) -> ModelFigures:
    """Return the figures of a model."""
    return ModelFigures(
        waiting=WAITING.labels(name),
        fill=FILL.labels(name),
        characters=CHARACTERS.labels(name),
        tokens=TOKENS.labels(name),
    )


def figures() -> bytes:
    """Return all figures as Prometheus reads them: of every process, where there are several."""
    if METRICS_VARIABLE not in os.environ:
        return generate_latest()
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return generate_latest(registry)


def log(**values: object) -> None:
    """Print a JSON object on a line of standard error."""
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = json.dumps({"time": when, **values}, ensure_ascii=False)
    print(line, file=sys.stderr, flush=True)


def log_once(**values: str) -> None:
    """Log something that may happen at every request: once a minute."""
    now = time.monotonic()
    key = tuple(sorted(values.items()))
    if now - _logged.get(key, -_MINUTE) >= _MINUTE:
        if len(_logged) > _MOST_LOGGED:
            _logged.clear()
        _logged[key] = now
        log(**values)
