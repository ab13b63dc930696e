"""NeMo Curator's translation stage with this service as its backend: by the package itself where it
is installed, and by the requests that its version 1.4.0 sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from live_server import live
from starlette.testclient import TestClient

from dragoman.server.app import create_app
from dragoman.server.fleet import Fleet
from dragoman.server.guard import Guard, Limits

TEXTS = ["one two", "", "nine three eight"]


def test_the_requests_of_the_backend(client_of: Callable[..., TestClient]) -> None:
    """`{server_url}/translate` with `texts`, `src_lang` and `tgt_lang`; as many `translations` come
    back; `{server_url}/health` says that the server is up."""
    client = client_of()
    assert client.get("/nmt/health").status_code == 200
    body = {"texts": TEXTS, "src_lang": "en", "tgt_lang": "de"}
    answer = client.post("/nmt/translate", json=body)
    assert answer.status_code == 200
    plain = {"q": TEXTS, "source": "en", "target": "de"}
    expected = client.post("/translate", json=plain).json()["translatedText"]
    assert answer.json() == {"translations": expected}
    assert expected[0]


@pytest.mark.parametrize(
    ("change", "status"),
    [({"tgt_lang": "xx"}, 400), ({"texts": "one"}, 422), ({"texts": ["x" * 30_000]}, 413)],
)
def test_what_is_refused(
    client_of: Callable[..., TestClient], change: dict[str, Any], status: int
) -> None:
    body = {"texts": TEXTS, "src_lang": "en", "tgt_lang": "de"} | change
    answer = client_of().post("/nmt/translate", json=body)
    assert answer.status_code == status
    assert set(answer.json()) == {"error"}


def test_the_stage_of_nemo_curator(fleet_of: Callable[..., Fleet]) -> None:
    backends = pytest.importorskip(
        "nemo_curator.stages.text.experimental.translation.backends",
        reason="NeMo Curator is not installed (pip install nemo-curator aiohttp)",
    )
    with live(create_app(fleet_of(), Guard(Limits()))) as url:
        backend = backends.get_backend("nmt", {"server_url": f"{url}/nmt", "batch_size": 2})
        backend.setup()
        assert backend.check_server()
        translations = backend.translate_batch([text for text in TEXTS if text], "en", "de")
        backend.close()
    assert len(translations) == 2
    assert all(translations)
