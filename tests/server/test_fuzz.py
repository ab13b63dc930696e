"""A share of what benchmarks/serve_fuzz.py sends, by an app without a network: the same requests
every time."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman.server.corrections import Corrections

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import serve_fuzz

_COUNT = 250


def test_no_request_breaks_it(client_of: Callable[..., Any], tmp_path: Path) -> None:
    client = client_of(corrections=Corrections(tmp_path / "corrections.sqlite"))
    statuses: Counter[int] = Counter()
    for number in range(_COUNT):
        sent = serve_fuzz.request(number)
        assert sent == serve_fuzz.request(number)
        method, path = sent.line.split(" ", 1)
        headers = {b"content-type": sent.kind.encode("latin-1")}
        answer = client.request(method, path, content=sent.body, headers=headers)
        statuses[answer.status_code] += 1
        if method != "HEAD":
            assert serve_fuzz.wrong(answer.status_code, answer.content) is None, number
    assert statuses[200] > _COUNT / 10  # it is not all refused at the door
    assert statuses[400] + statuses[422] > _COUNT / 10


def test_what_counts_as_wrong() -> None:
    assert serve_fuzz.wrong(500, b"{}") == "status 500"
    assert serve_fuzz.wrong(422, b"oh") == "no sentence"
    assert serve_fuzz.wrong(422, b'{"error": "q.function-after[x]: y"}') is not None
    assert serve_fuzz.wrong(422, b'{"error": "q: must be a text"}') is None
    assert serve_fuzz.wrong(200, b"anything") is None
